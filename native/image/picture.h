// What the header of an encoded image says. Nothing is decoded, and no header, however hostile, makes this read more
// than the bytes that are there, or any of them often.
#pragma once

#include <vector>

#include "foundation/bytes.h"

namespace penstock {

// Numbers cross into Python: append, never renumber.
enum class PictureFormat : int8_t { kNone = 0, kJpeg = 1, kPng = 2, kWebp = 3, kGif = 4, kBmp = 5 };

struct Picture {
  PictureFormat format = PictureFormat::kNone;
  int64_t width = 0;  // 0 where the bytes end, or stop making sense, before they tell; likewise the height
  int64_t height = 0;
  int8_t orientation = 1;
  int64_t scans = 0;  // of a JPEG whose scans may go over all pixels in a few bytes (jpeg.h); 0 for any other
};

Picture read_picture(Span data);

// Copies a JPEG into `out` without what decoders warn of though it costs no pixel: a few stray bytes between the
// segments of its header, and spectral bounds of sequential scans, which have none. False where there is no such thing.
bool tidy_jpeg(Span data, std::vector<uint8_t>& out);

// Whether the end of a JPEG is there, behind its header and its pixels.
bool has_jpeg_end(Span data);

}  // namespace penstock
