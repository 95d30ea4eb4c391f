// Mean and spread of each element of many arrays of one size, and statistics of all their numbers together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

// Numbers that are converted at once: they stay in the second-level cache while they are passed over several times.
inline constexpr size_t kElementPiece = size_t{1} << 15;

template <typename T>
struct ElementMoments {
  int64_t num_rows = 0, num_nan = 0, num_inf = 0, num_zero = 0;
  T least = 0, greatest = 0;           // of the finite numbers, if there are any
  std::vector<int64_t> counts;         // how many finite numbers each element has
  std::vector<double> means, squares;  // of each element; squares are sums of squared distances from the mean
};

// Measures the rows of a matrix with `width` columns for which `keep` is true; all of them, if it is null. Sums are
// taken row by row (pairwise, of a single column) over pieces of kElementPiece numbers, and pieces are merged in order,
// so that every bit of the result depends on the numbers alone. T is int64_t, float or double.
template <typename T>
ElementMoments<T> measure_elements(const T* values, size_t num_rows, size_t width, const bool* keep);

}  // namespace penstock
