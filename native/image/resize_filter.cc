#include "image/resize_filter.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

// Rounds running sums, so that the whole weights add up to the total and each is less than one off.
void round_weights(const double* weights, size_t num, double factor, uint32_t* out) {
  double sum = 0;
  int64_t before = 0;
  for (size_t j = 0; j < num; j++) {
    sum += weights[j];
    const auto after = static_cast<int64_t>(sum * factor + 0.5);
    out[j] = static_cast<uint32_t>(after - before);
    before = after;
  }
}

}  // namespace

ResizeFilter::ResizeFilter(const Side& given, uint32_t total) : side(given), left(given.source), right(0), most(0) {
  const double scale = side.extent / static_cast<double>(side.out);
  const double reach = side.antialias ? std::max(scale, 1.0) : 1.0, slope = 1.0 / reach;
  const auto source = static_cast<int64_t>(side.source);
  stride = std::min(side.source, static_cast<size_t>(2.0 * reach) + 2);
  is_wide = stride > kMostNarrow;
  first.resize(side.out);
  count.resize(side.out);
  weights.resize(side.out * stride);
  std::vector<double> heights(stride);
  for (size_t i = 0; i < side.out; i++) {
    const double center = side.start + (static_cast<double>(static_cast<int64_t>(i)) + 0.5) * scale;
    const int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(center - reach + 0.5));
    const int64_t end = std::min(source, static_cast<int64_t>(center + reach + 0.5));
    const auto num = static_cast<size_t>(end - begin);
    double distance = static_cast<double>(begin) + 0.5 - center, sum = 0;
    for (size_t j = 0; j < num; j++, distance += 1.0) {
      heights[j] = std::max(0.0, 1.0 - std::fabs(distance) * slope);
      sum += heights[j];
    }
    round_weights(heights.data(), num, (is_wide ? kWideTotal : total) / sum, weights.data() + i * stride);
    trim(i, static_cast<size_t>(begin), num);
  }
}

// A source pixel without weight at either end is not read.
void ResizeFilter::trim(size_t i, size_t begin, size_t num) {
  uint32_t* const all = weights.data() + i * stride;
  while (all[num - 1] == 0) num--;
  size_t zeros = 0;
  while (all[zeros] == 0) zeros++;
  if (zeros != 0) std::fill(std::copy(all + zeros, all + num, all), all + num, 0);
  first[i] = static_cast<uint32_t>(begin + zeros);
  count[i] = static_cast<uint32_t>(num - zeros);
  left = std::min(left, begin + zeros);
  right = std::max(right, begin + num);
  most = std::max(most, num - zeros);
}

}  // namespace penstock
