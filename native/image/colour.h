// Values of pixels: their means, other colours, float32.
#pragma once

#include "image/pixels.h"

namespace penstock {

// The mean of each channel of each image.
void mean_channels(const Images& images, bool by_scalar, double* out);

// Colours by a matrix for each image, k rows of k factors and a term: k is 3, or 1 for one channel; a fourth channel is
// left as it is. Sums run from left to right in float32, are clipped to 0 … 255 and rounded, halves to even.
void recolour_images(const Images& images, const float* matrices, bool by_scalar);

// out = pixel · factor + offset, rounded after each of the two; `pixels` pixels of `channels` channels.
void scale_bytes(const uint8_t* from, size_t pixels, size_t channels, const float* factor, const float* offset,
                 bool by_scalar, float* out);

namespace detail {

// These do as many of the first pixels as fit their vectors, and return how many; null where the processor lacks AVX2.
using AddChannels = size_t (*)(const uint8_t* from, size_t pixels, size_t channels, uint64_t* sums);
using Recolour = size_t (*)(uint8_t* from, size_t pixels, size_t channels, const float* matrix);
using ScaleBytes = size_t (*)(const uint8_t* from, size_t pixels, size_t channels, const float* factor,
                              const float* offset, float* out);
extern const AddChannels add_channels_avx2;
extern const Recolour recolour_avx2;
extern const ScaleBytes scale_bytes_avx2;

}  // namespace detail
}  // namespace penstock
