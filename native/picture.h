// What the header of an encoded image says. Nothing is decoded, and no header, however hostile, makes this read more
// than the bytes that are there, or any of them often.
#pragma once

#include "bytes.h"

namespace penstock {

// Numbers cross into Python: append, never renumber.
enum class PictureFormat : int8_t { kNone = 0, kJpeg = 1, kPng = 2, kWebp = 3, kGif = 4, kBmp = 5 };

struct Picture {
  PictureFormat format = PictureFormat::kNone;
  int64_t width = 0;  // 0 where the bytes end, or stop making sense, before they tell; likewise the height
  int64_t height = 0;
  int8_t orientation = 1;
  int8_t components = 0;  // of JPEG and PNG: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA or CMYK; 0 where not known
};

Picture read_picture(Span data);

}  // namespace penstock
