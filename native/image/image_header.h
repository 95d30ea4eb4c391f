// The header of an encoded image. Nothing is decoded, and no header, however hostile, makes this read more
// than the bytes that are there, or any of them often.
#pragma once

#include <cstdint>

#include "foundation/bytes.h"

namespace penstock {

inline constexpr size_t kLongestSide = size_t{1} << 20;  // of an image: keeps tables of weights below 16 MB

// Numbers cross into Python: append, never renumber.
enum class ImageFormat : int8_t { kNone = 0, kJpeg = 1, kPng = 2, kWebp = 3, kGif = 4, kBmp = 5 };

struct ImageHeader {
  ImageFormat format = ImageFormat::kNone;
  int64_t width = 0;  // 0, as the height, where the bytes end or are not valid before it
  int64_t height = 0;
  int8_t orientation = 1;
  int64_t scans = 0;  // of a JPEG whose scans may go over all pixels in a few bytes (jpeg.h); 0 for any other
};

ImageHeader read_image_header(Span data);

}  // namespace penstock
