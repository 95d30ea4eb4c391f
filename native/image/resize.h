// Resizes the part of an image in a box, antialiased or by plain interpolation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "image/resize_filter.h"

namespace penstock {

// Rows of pixels whose channels are contiguous; rows may be anywhere.
template <typename Byte>
struct Rows {
  Byte* data;
  ptrdiff_t stride;
  size_t height, width;

  Byte* row(size_t y) const { return data + static_cast<ptrdiff_t>(y) * stride; }
};

// In source pixels: the first pixel covers 0 to 1.
struct Box {
  double top, left, height, width;
};

// `channels`: 1, 3 or 4. Every pixel of `out` is a mean of the source around the middle of its share of the box, with
// weights that fall off in a straight line: down to none after a pixel of the source, or with `antialias` of the output
// where that is larger. Rows are blended first, then columns; both round to bytes. `by_scalar` leaves vector code out;
// bytes are the same.
void resize_pixels(const Rows<const uint8_t>& source, const Rows<uint8_t>& out, size_t channels, const Box& box,
                   bool antialias, bool by_scalar);

namespace detail {

inline constexpr uint32_t kRowTotal = 65535;  // weights of rows: 16 bits for each
inline constexpr uint32_t kRowHalf = 127;     // added before a sum of rows loses its low byte
inline constexpr unsigned kColumnBits = 14;   // weights of columns: 15 bits and a sign
inline constexpr size_t kRowPadding = 64;     // bytes after a row that vector code reads and does not use

// `num` rows of `bytes` bytes with weights that add up to kRowTotal; the `num_next` rows from `next` on come soon.
struct RowBlend {
  const uint8_t* rows;
  ptrdiff_t stride;
  const uint32_t* weights;
  size_t num, bytes;
  const uint8_t* next;
  size_t num_next;
};

// The sums of bytes from `begin`, an even index, on. Products lose their low bytes, halves on average. A byte at an odd
// index is summed up with the one before it below, whose sum is taken off at the end: that is how vectors come by it.
// Halves are rounded down, and halves of columns are rounded up: where an image shrinks to its half, all would get
// brighter.
inline void blend_rows_plainly(const RowBlend& blend, size_t begin, uint8_t* out) {
  for (size_t i = begin; i < blend.bytes; i++) {
    const uint8_t* p = blend.rows + i;
    uint32_t sum = 0;
    for (size_t j = 0; j < blend.num; j++, p += blend.stride) {
      const uint32_t word = static_cast<uint32_t>(*p << 8) | (i % 2 == 0 ? 0u : p[-1]);
      sum += word * blend.weights[j] >> 16;
    }
    const uint32_t below = i % 2 == 0 ? 0 : out[i - 1];
    out[i] = static_cast<uint8_t>((sum - (below < sum ? below : sum) + kRowHalf + blend.num / 2) >> 8);
  }
}

using BlendRows = void (*)(const RowBlend& blend, uint8_t* out);
extern const BlendRows blend_rows_avx2;  // null where the processor lacks AVX2

// Weights of columns in the order in which the vector code takes them.
struct ColumnLanes {
  ColumnLanes(const ResizeFilter& filter, size_t channels);

  size_t channels, num_out, most;
  size_t steps;                 // vectors of one output pixel
  std::vector<uint32_t> place;  // first byte that each output pixel reads
  std::vector<int16_t> weights;
};

// One row of `filter.num_out` pixels. Reads up to `most` + 8 pixels and kRowPadding bytes past the row.
using BlendColumns = void (*)(const uint8_t* row, const ColumnLanes& filter, uint8_t* out);
extern const BlendColumns blend_columns_avx2;  // null where the processor lacks AVX2

}  // namespace detail
}  // namespace penstock
