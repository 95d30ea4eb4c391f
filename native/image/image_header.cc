#include "image/image_header.h"

#include "image/jpeg.h"
#include "image/png_chunks.h"

namespace penstock {
namespace {

// A JPEG has a few dozen segments before its pixels: EXIF and colour profiles come in pieces of 64 KB.
constexpr int kMostSegments = 4096;

// Numbers at offsets that need not be there: 0 where the bytes end before them.
class Fields {
 public:
  explicit Fields(Span data) : data_(data) {}

  bool has(size_t at, size_t size) const { return at <= data_.size && size <= data_.size - at; }
  int64_t big(size_t at, size_t size) const {
    int64_t value = 0;
    for (size_t i = 0; has(at, size) && i < size; i++) value = value << 8 | data_.data[at + i];
    return value;
  }
  int64_t little(size_t at, size_t size) const {
    int64_t value = 0;
    for (size_t i = size; has(at, size) && i > 0; i--) value = value << 8 | data_.data[at + i - 1];
    return value;
  }
  template <size_t kSize>
  bool reads(size_t at, const char (&text)[kSize]) const {
    return has(at, kSize - 1) && std::memcmp(data_.data + at, text, kSize - 1) == 0;
  }
  // From `at` on, `size` bytes or as many as there are.
  Span span(size_t at, size_t size) const {
    if (at > data_.size) return {};
    return Span{data_.data + at, size < data_.size - at ? size : data_.size - at};
  }

 private:
  Span data_;
};

constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
constexpr size_t kEntryBytes = 12;

// Numbers of a TIFF file, which states their byte order at its beginning.
struct Tiff {
  Span data;
  bool is_big;

  uint32_t number16(size_t at) const {
    const uint8_t* const p = data.data + at;
    return is_big ? load_big16(p) : static_cast<uint32_t>(p[0] | p[1] << 8);
  }
  uint32_t number32(size_t at) const { return is_big ? load_big32(data.data + at) : load32(data.data + at); }
};

// The orientation in EXIF data:
// 1 to 8 as EXIF numbers them; 1, upright, where there is none, or the data make no sense. `data` begin with the header
// of a TIFF file, or with "Exif" before it.
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

// A size is known as a whole or not at all.
void set_size(ImageHeader& header, int64_t width, int64_t height) {
  if (width <= 0 || height <= 0) return;
  header.width = width;
  header.height = height;
}

int64_t count_scans(JpegMarkers behind_frame) {
  int64_t count = 0;
  for (JpegMarker marker; behind_frame.next(marker) && marker.code != kJpegEnd;) count += marker.code == kJpegScan;
  return count;
}

ImageHeader read_jpeg(Span data) {
  const Fields fields(data);
  ImageHeader header{ImageFormat::kJpeg};
  bool has_frame = false, has_exif = false;
  JpegMarkers markers(data);
  JpegMarker marker;
  for (int i = 0; i < kMostSegments && markers.next(marker); i++) {
    if (marker.code == kJpegEnd || marker.code == kJpegScan) break;
    const size_t at = marker.at;
    if (marker.is_frame() && !has_frame) {
      set_size(header, fields.big(at + 5, 2), fields.big(at + 3, 2));
      if (marker.is_terse_frame()) header.scans = count_scans(markers);
      has_frame = true;
    } else if (marker.code == 0xe1 && !has_exif && marker.size > 8 && fields.reads(at + 2, "Exif\0")) {
      header.orientation = static_cast<int8_t>(read_orientation(fields.span(at + 2, marker.size - 2)));
      has_exif = true;
    }
  }
  return header;
}

ImageHeader read_png(Span data) {
  const Fields fields(data);
  ImageHeader header{ImageFormat::kPng};
  if (!fields.reads(12, "IHDR")) return header;
  set_size(header, fields.big(16, 4), fields.big(20, 4));
  PngChunks chunks(data);
  PngChunk chunk;
  for (size_t i = 0; i < kMostChunks && chunks.next(chunk) && chunk.name != chunk_name("IEND"); i++) {
    if (chunk.name != chunk_name("eXIf")) continue;
    header.orientation = static_cast<int8_t>(read_orientation(chunk.data));
    break;
  }
  return header;
}

int8_t read_webp_orientation(const Fields& fields, Span data) {
  constexpr size_t kFirst = 12, kHeader = 8;
  for (size_t at = kFirst; fields.has(at, kHeader);) {
    const auto size = static_cast<size_t>(fields.little(at + 4, 4));
    if (fields.reads(at, "EXIF")) return static_cast<int8_t>(read_orientation(fields.span(at + kHeader, size)));
    if (size > data.size - at - kHeader) break;
    at += kHeader + size + size % 2;
  }
  return 1;
}

ImageHeader read_webp(Span data) {
  const Fields fields(data);
  ImageHeader header{ImageFormat::kWebp};
  if (fields.reads(12, "VP8 ") && fields.reads(23, "\x9d\x01\x2a")) {
    set_size(header, fields.little(26, 2) & 0x3fff, fields.little(28, 2) & 0x3fff);
  } else if (fields.reads(12, "VP8L") && fields.reads(20, "\x2f") && fields.has(21, 4)) {
    const int64_t bits = fields.little(21, 4);
    set_size(header, (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1);
  } else if (fields.reads(12, "VP8X") && fields.has(24, 6)) {
    set_size(header, fields.little(24, 3) + 1, fields.little(27, 3) + 1);
    header.orientation = read_webp_orientation(fields, data);
  }
  return header;
}

ImageHeader read_bmp(Span data) {
  const Fields fields(data);
  ImageHeader header{ImageFormat::kBmp};
  switch (fields.little(14, 4)) {
    case 12:
      set_size(header, fields.little(18, 2), fields.little(20, 2));
      return header;
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124: {
      // The height is signed: a negative one means that the rows run from top to bottom.
      const int64_t width = fields.has(18, 8) ? static_cast<int32_t>(fields.little(18, 4)) : 0;
      const int64_t height = static_cast<int32_t>(fields.little(22, 4));
      set_size(header, width, height < 0 ? -height : height);
      return header;
    }
    default:
      return {};  // a text may begin with BM, too
  }
}

}  // namespace

ImageHeader read_image_header(Span data) {
  const Fields fields(data);
  if (fields.reads(0, "\xff\xd8\xff")) return read_jpeg(data);
  if (is_png(data)) return read_png(data);
  if (fields.reads(0, "RIFF") && fields.reads(8, "WEBP")) return read_webp(data);
  if (fields.reads(0, "GIF87a") || fields.reads(0, "GIF89a")) {
    ImageHeader header{ImageFormat::kGif};
    set_size(header, fields.little(6, 2), fields.little(8, 2));
    return header;
  }
  if (fields.reads(0, "BM")) return read_bmp(data);
  return {};
}

}  // namespace penstock
