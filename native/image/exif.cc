#include "image/exif.h"

#include "foundation/bigendian.h"

namespace penstock {
namespace {

constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
constexpr size_t kEntryBytes = 12;

// Numbers of a TIFF file, which says at its beginning in what order their bytes are.
struct Tiff {
  Span data;
  bool is_big;

  uint32_t number16(size_t at) const {
    const uint8_t* const p = data.data + at;
    return is_big ? big16(p) : static_cast<uint32_t>(p[0] | p[1] << 8);
  }
  uint32_t number32(size_t at) const { return is_big ? big32(data.data + at) : load32(data.data + at); }
};

}  // namespace

uint8_t read_orientation(Span data) {
  if (data.size >= 6 && std::memcmp(data.data, "Exif\0\0", 6) == 0) data = Span{data.data + 6, data.size - 6};
  if (data.size < 8) return 1;
  const bool is_big = std::memcmp(data.data, "MM\0*", 4) == 0;
  if (!is_big && std::memcmp(data.data, "II*\0", 4) != 0) return 1;
  const Tiff tiff{data, is_big};
  const size_t directory = tiff.number32(4);
  if (data.size < 2 || directory > data.size - 2) return 1;
  size_t at = directory + 2;
  for (uint32_t left = tiff.number16(directory); left > 0 && data.size - at >= kEntryBytes; left--, at += kEntryBytes) {
    if (tiff.number16(at) != kOrientation) continue;
    const uint32_t type = tiff.number16(at + 2);
    if ((type != kShort && type != kLong) || tiff.number32(at + 4) != 1) return 1;
    const uint32_t value = type == kShort ? tiff.number16(at + 8) : tiff.number32(at + 8);
    return value >= 1 && value <= 8 ? static_cast<uint8_t>(value) : uint8_t{1};
  }
  return 1;
}

}  // namespace penstock
