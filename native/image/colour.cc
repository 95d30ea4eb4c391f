#include "image/colour.h"

#include <algorithm>

namespace penstock {
namespace {

uint8_t byte_of(float value) {
  constexpr float kWhole = 12582912.0f;  // 1.5 · 2^23: a float of this size has no fraction
  const float low = value > 0.0f ? value : 0.0f, clipped = low < 255.0f ? low : 255.0f;
  return static_cast<uint8_t>((clipped + kWhole) - kWhole);
}

bool is_identity(const float* matrix, size_t side) {
  for (size_t row = 0; row < side; row++) {
    for (size_t column = 0; column <= side; column++) {
      if (*matrix++ != (row == column ? 1.0f : 0.0f)) return false;
    }
  }
  return true;
}

void recolour_greys(uint8_t* pixels, size_t num, const float* matrix) {
  uint8_t table[256];
  for (int i = 0; i < 256; i++) table[i] = byte_of(matrix[0] * static_cast<float>(i) + matrix[1]);
  for (size_t i = 0; i < num; i++) pixels[i] = table[pixels[i]];
}

void recolour_plainly(uint8_t* pixels, size_t num, size_t channels, const float* matrix) {
  for (size_t i = 0; i < num; i++, pixels += channels) {
    const float red = pixels[0], green = pixels[1], blue = pixels[2];
    for (size_t c = 0; c < 3; c++) {
      const float* const row = matrix + 4 * c;
      pixels[c] = byte_of(row[0] * red + row[1] * green + row[2] * blue + row[3]);
    }
  }
}

}  // namespace

void mean_channels(const Images& images, bool by_scalar, double* out) {
  const size_t pixels = images.height * images.width, channels = images.channels;
  for (size_t i = 0; i < images.num; i++, out += channels) {
    const uint8_t* from = images.image(i);
    uint64_t sums[4] = {};
    const bool by_vector = !by_scalar && detail::add_channels_avx2 != nullptr;
    const size_t done = by_vector ? detail::add_channels_avx2(from, pixels, channels, sums) : 0;
    from += done * channels;
    for (size_t j = done; j < pixels; j++, from += channels) {
      for (size_t c = 0; c < channels; c++) sums[c] += from[c];
    }
    for (size_t c = 0; c < channels; c++) out[c] = static_cast<double>(sums[c]) / static_cast<double>(pixels);
  }
}

void recolour_images(const Images& images, const float* matrices, bool by_scalar) {
  const size_t side = images.channels == 1 ? 1 : 3, pixels = images.height * images.width;
  for (size_t i = 0; i < images.num; i++) {
    const float* const matrix = matrices + i * side * (side + 1);
    uint8_t* const image = images.image(i);
    if (is_identity(matrix, side)) continue;
    if (side == 1) {
      recolour_greys(image, pixels, matrix);
      continue;
    }
    const bool by_vector = !by_scalar && detail::recolour_avx2 != nullptr;
    const size_t done = by_vector ? detail::recolour_avx2(image, pixels, images.channels, matrix) : 0;
    recolour_plainly(image + done * images.channels, pixels - done, images.channels, matrix);
  }
}

void scale_bytes(const uint8_t* from, size_t pixels, size_t channels, const float* factor, const float* offset,
                 bool by_scalar, float* out) {
  const bool by_vector = !by_scalar && detail::scale_bytes_avx2 != nullptr;
  const size_t done = by_vector ? detail::scale_bytes_avx2(from, pixels, channels, factor, offset, out) : 0;
  for (size_t i = done * channels; i < pixels * channels; i += channels) {
    for (size_t c = 0; c < channels; c++) out[i + c] = static_cast<float>(from[i + c]) * factor[c] + offset[c];
  }
}

}  // namespace penstock
