// PNG images into pixels. A file that is cut or damaged gives a fault and no pixels.
#pragma once

#include "image/png_chunks.h"

namespace penstock {

// How many bytes the stream of an image inflates to: rows with a byte for the filter before each.
uint64_t inflated_bytes(const PngLayout& layout);

// Whether the stream is long enough to become that many. If it is not, no memory may be allocated for it.
std::string check_stream(const PngLayout& layout);

// Makes the pixels of an image whose layout, and stream, are sound so far: rows of width * channels bytes, `row_bytes`
// apart. Channels are 1, 3 or 4. Returns the fault, or nothing.
std::string read_pixels(const PngLayout& layout, unsigned channels, uint8_t* out, ptrdiff_t row_bytes);

}  // namespace penstock
