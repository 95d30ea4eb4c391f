#include "batch/pad.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

template <typename T>
void pad_items(const T* values, const int64_t* offsets, size_t rows, size_t length, size_t width, T value,
               bool from_end, T* out) {
  for (size_t row = 0; row < rows; row++, out += length * width) {
    auto first = static_cast<size_t>(offsets[row]);
    const auto last = static_cast<size_t>(offsets[row + 1]);
    const size_t kept = std::min(last - first, length);
    if (from_end) first = last - kept;
    if (kept * width != 0) std::memcpy(out, values + first * width, kept * width * sizeof(T));
    std::fill(out + kept * width, out + length * width, value);
  }
}

}  // namespace

void pad_lists(const uint8_t* values, const int64_t* offsets, size_t rows, size_t length, size_t width, PadValue value,
               bool from_end, uint8_t* out) {
  if (value.bytes == 8) {
    pad_items(reinterpret_cast<const uint64_t*>(values), offsets, rows, length, width, value.bits, from_end,
              reinterpret_cast<uint64_t*>(out));
  } else if (value.bytes == 4) {
    pad_items(reinterpret_cast<const uint32_t*>(values), offsets, rows, length, width,
              static_cast<uint32_t>(value.bits), from_end, reinterpret_cast<uint32_t*>(out));
  } else {
    pad_items(values, offsets, rows, length, width, static_cast<uint8_t>(value.bits), from_end, out);
  }
}

void mask_lists(const int64_t* offsets, size_t rows, size_t length, uint8_t* out) {
  for (size_t row = 0; row < rows; row++, out += length) {
    const size_t kept = std::min(static_cast<size_t>(offsets[row + 1] - offsets[row]), length);
    std::memset(out, 1, kept);
    std::memset(out + kept, 0, length - kept);
  }
}

}  // namespace penstock
