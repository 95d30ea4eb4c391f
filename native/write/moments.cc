#include "write/moments.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace penstock {
namespace {

constexpr size_t kPiece = 2048;  // doubles that stay in the first-level cache between two passes
constexpr size_t kLanes = 8;     // sums that are computed in parallel: an addition has a latency of four cycles

template <typename Term>
double add_up(size_t count, const Term& term) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; lane++) lanes[lane] += term(i + lane);
  }
  for (size_t lane = 0; i < count; i++, lane++) lanes[lane] += term(i);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// Adds the mean and the squares of a piece (Chan, Golub and LeVeque's rule).
template <typename T>
void add_piece(const double* piece, size_t count, int64_t num_before, Moments<T>& moments) {
  if (count == 0) return;
  const auto number = static_cast<double>(count), before = static_cast<double>(num_before);
  double mean = add_up(count, [&](size_t i) { return piece[i]; }) / number;
  // Each is in the range of doubles, and so is the mean; their sum may not be.
  if (!std::isfinite(mean)) mean = add_up(count, [&](size_t i) { return piece[i] / number; });
  const double squares = add_up(count, [&](size_t i) { return (piece[i] - mean) * (piece[i] - mean); });
  const double distance = mean - moments.mean, share = number / (before + number);
  moments.mean += distance * share;
  moments.squares += squares + distance * (distance * (before * share));
}

}  // namespace

template <typename T>
Moments<T> measure_numbers(const T* values, const bool* keep, size_t count) {
  Moments<T> moments;
  double piece[kPiece];
  size_t in_piece = 0;
  int64_t num_added = 0;
  bool is_first = true;
  for (size_t i = 0; i < count; i++) {
    if (keep != nullptr && !keep[i]) continue;
    const T value = values[i];
    moments.num_values++;
    if constexpr (!std::is_integral_v<T>) {
      if (!std::isfinite(value)) {
        std::isnan(value) ? moments.num_nan++ : moments.num_inf++;
        continue;
      }
    }
    moments.num_zero += value == 0;
    moments.least = is_first ? value : std::min(moments.least, value);
    moments.greatest = is_first ? value : std::max(moments.greatest, value);
    is_first = false;
    piece[in_piece++] = static_cast<double>(value);
    if (in_piece == kPiece) {
      add_piece(piece, in_piece, num_added, moments);
      num_added += static_cast<int64_t>(in_piece);
      in_piece = 0;
    }
  }
  add_piece(piece, in_piece, num_added, moments);
  return moments;
}

template Moments<int64_t> measure_numbers(const int64_t*, const bool*, size_t);
template Moments<float> measure_numbers(const float*, const bool*, size_t);
template Moments<double> measure_numbers(const double*, const bool*, size_t);

}  // namespace penstock
