// Pixels moved about: images turned and mirrored, covered, shifted.
#pragma once

#include "image/resize.h"

namespace penstock {

// Images of one size, contiguous.
struct Images {
  uint8_t* data;
  size_t num, height, width, channels;

  size_t row_bytes() const { return width * channels; }
  size_t image_bytes() const { return height * row_bytes(); }
  uint8_t* image(size_t i) const { return data + i * image_bytes(); }
};

// Undoes an EXIF orientation, 1 to 8; `out` has the sides of the source, swapped from 5 on.
void orient_pixels(const Rows<const uint8_t>& source, const Rows<uint8_t>& out, size_t channels, int orientation);

// Mirrors the images whose byte is not 0: left to right by `across`, top to bottom by `down`.
void flip_images(const Images& images, const uint8_t* across, const uint8_t* down, bool by_scalar);

// Paints a box of each image: four numbers, top, left, height and width, clipped to the image.
void erase_boxes(const Images& images, const int32_t* boxes, const uint8_t* colour);

// out[y, x] = image[y + rows, x + columns], mirrored at the edge pixel where that is outside. Offsets are less than a
// side.
void shift_images(const Images& images, const int32_t* offsets, uint8_t* out);

namespace detail {

// The pixels of a row in reverse.
using MirrorRow = void (*)(const uint8_t* row, size_t width, size_t channels, uint8_t* out);
extern const MirrorRow mirror_row_avx2;  // null where the processor lacks AVX2

}  // namespace detail
}  // namespace penstock
