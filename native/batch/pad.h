// Lists of different lengths as one array: cut where they are longer than a row, filled at the end where they are
// shorter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// The padding: one number of `bytes` bytes (1, 4 or 8), low byte first.
struct PadValue {
  uint64_t bits;
  size_t bytes;
};

// Rows of `length` items, each of `width` numbers. A longer list keeps its first `length` items, or its last ones.
void pad_lists(const uint8_t* values, const int64_t* offsets, size_t rows, size_t length, size_t width, PadValue value,
               bool from_end, uint8_t* out);

// One byte per element of such rows: 1 for an item, 0 for padding.
void mask_lists(const int64_t* offsets, size_t rows, size_t length, uint8_t* out);

}  // namespace penstock
