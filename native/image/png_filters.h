// The five filters of PNG undone, a row at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr uint8_t kNumFilters = 5;  // none, left, above, average, Paeth's
inline constexpr uint8_t kPaethFilter = 4;

// Undoes `filter` of `size` bytes from `raw` into `out`; `above` is the row before it, undone, or zeros. `pixel_bytes`
// are 1 to 8: bytes of a whole pixel, 1 where pixels are smaller. No two of the rows may share bytes.
void unfilter(uint8_t filter, const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size, size_t pixel_bytes);

// The same byte by byte, as a check on the other.
void unfilter_by_byte(uint8_t filter, const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size,
                      size_t pixel_bytes);

// Two rows, one below the other.
struct RowPair {
  const uint8_t* raw;
  const uint8_t* raw_below;
  uint8_t* out;
  uint8_t* out_below;
};

// Undoes Paeth's filter of two rows at once, in 0.6 of the time of one after the other; false, and nothing is done, if
// pixels are of a size that there is no vector code for.
bool unfilter_two(const RowPair& rows, const uint8_t* above, size_t size, size_t pixel_bytes);

namespace detail {

using Unfilter = void (*)(const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size);

using UnfilterTwo = void (*)(const RowPair& rows, const uint8_t* above, size_t size);

inline constexpr size_t kMostPixelBytes = 8;

// Vector code by filter and bytes of a pixel: SSE2, and SSE4.1 for Paeth's filter. Null where there is none, or the
// processor lacks the instructions.
struct VectorFilters {
  Unfilter one[kNumFilters][kMostPixelBytes + 1];
  UnfilterTwo two[kMostPixelBytes + 1];
};
extern const VectorFilters unfilter_sse;

}  // namespace detail
}  // namespace penstock
