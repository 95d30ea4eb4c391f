// Categories as small integers: codes shifted past the reserved ones, strings and integers hashed into bins, sets of
// codes as rows of zeros and ones. Bins are part of fitted pipelines: what a value hashes to must never change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foundation/bytes.h"

namespace penstock {

// Where codes go: code c to c + first, a negative code to `unknown`, a row that is not present to `missing`.
struct CodeSlots {
  int32_t first, unknown, missing;
};

// `present` is a byte a row, or null. False if a code does not fit an int32 with `first` added.
bool place_codes(const int32_t* codes, const uint8_t* present, size_t rows, const CodeSlots& slots, int32_t* out);

// Hashes into 0…num_bins−1, with a separate key for each salt.
class Bins {
 public:
  Bins(uint32_t num_bins, uint64_t salt);
  int32_t bin(Span bytes) const;
  int32_t bin(int64_t value) const;  // the bin of the double that equals it

 private:
  int32_t reduce(uint64_t word) const;

  uint64_t key_;
  uint32_t num_bins_;
};

// Adds up the codes of each row (codes[offsets[i]] to codes[offsets[i + 1]]) into `width` floats that are set to zero
// first; or, unless `counts`, writes a one for each. Codes outside 0…width−1 are left out.
void multi_hot(const int32_t* codes, const int64_t* offsets, size_t rows, size_t width, bool counts, float* out);

}  // namespace penstock
