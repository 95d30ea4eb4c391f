// Lists of different lengths as one array: cut where they are longer than a row, filled behind where they are shorter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// What a place without an item gets: one number of `bytes` bytes (1, 4 or 8), low byte first.
struct PadValue {
  uint64_t bits;
  size_t bytes;
};

// Rows of `length` items, each of `width` numbers. A longer list keeps its first `length` items, or its last ones.
void pad_lists(const uint8_t* values, const int64_t* offsets, size_t rows, size_t length, size_t width, PadValue value,
               bool from_end, uint8_t* out);

// For each place of such rows a byte: 1 where an item is, 0 where padding is.
void mask_lists(const int64_t* offsets, size_t rows, size_t length, uint8_t* out);

}  // namespace penstock
