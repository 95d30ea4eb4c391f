// Which source places each place of a resized side is made of, and by which whole weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

// `out` places over `extent` places from `start` on, of the `source` that there are.
struct Side {
  size_t source;
  double start, extent;
  size_t out;
  bool antialias;
};

struct Taps {
  // With more taps than this for one place the weights are 32 bits and sums 64.
  static constexpr size_t kMostNarrow = 128;
  static constexpr uint64_t kWideTotal = uint64_t{1} << 36;

  // The weights of each place add up to `total`, or to kWideTotal.
  Taps(const Side& side, uint32_t total);

  const uint32_t* weights_of(size_t i) const { return weights.data() + i * stride; }

  bool is_wide;
  size_t left, right;  // sources before `left` and from `right` on are in no place
  size_t most;         // taps of one place
  size_t stride;       // places in `weights` from one output to the next
  std::vector<uint32_t> first, count, weights;
};

}  // namespace penstock
