// The source pixels that each output pixel of a resized side is made of, with their integer weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

// `out` output pixels over `extent` source pixels from `start` on; the source has `source` pixels.
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

class ResizeFilter {
 public:
  // An output pixel of more source pixels than this has weights of 32 bits and sums of 64.
  static constexpr size_t kMostNarrow = 128;
  static constexpr uint32_t kWideTotal = 1u << 30;

  // The weights of each output pixel add up to `total`, or to kWideTotal.
  ResizeFilter(const Side& side, uint32_t total);

  const uint32_t* weights_of(size_t i) const { return weights.data() + i * stride; }

  Side side;
  bool is_wide;
  size_t left, right;  // source pixels before `left` and from `right` on are not used
  size_t most;         // source pixels of one output pixel, at most
  size_t stride;       // from the weights of one output pixel to the weights of the next; unused ones are 0
  std::vector<uint32_t> first, count, weights;

 private:
  void trim(size_t i, size_t begin, size_t num);
};

}  // namespace penstock
