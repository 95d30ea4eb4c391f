// The one source of random numbers: a counter-based generator, Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3"). A draw is a function of its purpose, never of earlier draws. What it
// returns must never change (tests/golden holds it to that).
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

struct PhiloxBlock {
  uint32_t words[4];
};

PhiloxBlock philox(PhiloxBlock counter, uint64_t key);

inline constexpr size_t kMostWords = size_t{4} << 16;  // of one record, epoch and purpose

// `count` words for each record, at most kMostWords.
void draw_words(uint64_t seed, uint32_t epoch, uint16_t purpose, const int64_t* records, size_t rows, size_t count,
                uint32_t* out);

// What the numbers of the records of a batch are drawn from, one purpose after the other.
struct DrawKeys {
  uint64_t seed;
  uint32_t epoch;
  const int64_t* records;

  // `count` uniform numbers in [0, 1) of one record: 53 bits of two words each.
  void draw_uniform(uint16_t purpose, size_t row, size_t count, double* out) const;
};

}  // namespace penstock
