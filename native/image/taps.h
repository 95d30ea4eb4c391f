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

  bool operator==(const Side& other) const {
    return source == other.source && start == other.start && extent == other.extent && out == other.out &&
           antialias == other.antialias;
  }
};

class Taps {
 public:
  // A place with more taps than this has weights of 32 bits and sums of 64.
  static constexpr size_t kMostNarrow = 128;
  static constexpr uint32_t kWideTotal = 1u << 30;

  // The weights of each place add up to `total`, or to kWideTotal.
  Taps(const Side& side, uint32_t total);

  const uint32_t* weights_of(size_t i) const { return weights.data() + i * stride; }

  Side side;
  bool is_wide;
  size_t left, right;  // sources before `left` and from `right` on are in no place
  size_t most;         // taps of one place
  size_t stride;       // from the weights of one place to those of the next; those behind its taps are 0
  std::vector<uint32_t> first, count, weights;

 private:
  void trim(size_t i, size_t begin, size_t num);
};

}  // namespace penstock
