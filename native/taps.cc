#include "taps.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

// Rounds running sums, so that the whole weights add up to `total` and each is less than one off.
void round_weights(const double* weights, size_t count, double factor, uint32_t* out) {
  double sum = 0;
  uint64_t before = 0;
  for (size_t i = 0; i < count; i++) {
    sum += weights[i];
    const auto after = static_cast<uint64_t>(sum * factor + 0.5);
    out[i] = static_cast<uint32_t>(after - before);
    before = after;
  }
}

}  // namespace

Taps::Taps(const Side& side, uint32_t total) : left(side.source), right(0), most(0) {
  const double scale = side.extent / static_cast<double>(side.out);
  const double reach = side.antialias ? std::max(scale, 1.0) : 1.0, slope = 1.0 / reach;
  stride = std::min(side.source, static_cast<size_t>(2.0 * reach) + 2);
  is_wide = stride > kMostNarrow;
  first.resize(side.out);
  count.resize(side.out);
  weights.resize(side.out * stride);
  const double wanted = is_wide ? static_cast<double>(kWideTotal) : static_cast<double>(total);
  std::vector<double> exact(stride);
  for (size_t i = 0; i < side.out; i++) {
    const double center = side.start + (static_cast<double>(i) + 0.5) * scale;
    const auto low = static_cast<int64_t>(center - reach + 0.5), high = static_cast<int64_t>(center + reach + 0.5);
    size_t begin = low < 0 ? 0 : static_cast<size_t>(low);
    size_t num = std::min(side.source, static_cast<size_t>(high)) - begin;
    double sum = 0;
    for (size_t j = 0; j < num; j++) {
      const double distance = std::fabs(static_cast<double>(begin + j) + 0.5 - center);
      exact[j] = std::max(0.0, 1.0 - distance * slope);
      sum += exact[j];
    }
    // A place without weight at either end is not read.
    const double* from = exact.data();
    uint32_t* const to = weights.data() + i * stride;
    round_weights(from, num, wanted / sum, to);
    while (to[num - 1] == 0) num--;
    if (to[0] == 0) {
      const size_t zeros = static_cast<size_t>(std::find_if(to, to + num, [](uint32_t w) { return w != 0; }) - to);
      std::copy(to + zeros, to + num, to);
      begin += zeros;
      num -= zeros;
    }
    first[i] = static_cast<uint32_t>(begin);
    count[i] = static_cast<uint32_t>(num);
    left = std::min(left, begin);
    right = std::max(right, begin + num);
    most = std::max(most, num);
  }
}

}  // namespace penstock
