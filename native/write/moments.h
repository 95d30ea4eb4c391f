// Count, mean and spread of numbers in one go over them. The order of every sum depends on the numbers alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Statistics of some numbers; mean, squares and extremes cover the finite ones.
template <typename T>
struct Moments {
  int64_t num_values = 0, num_nan = 0, num_inf = 0, num_zero = 0;
  T least = 0, greatest = 0;
  double mean = 0;
  double squares = 0;  // sum of the squared distances from the mean

  int64_t num_finite() const { return num_values - num_nan - num_inf; }
};

// Measures the numbers for which `keep` is true; all of them, if it is null. T is int64_t, float or double.
template <typename T>
Moments<T> measure_numbers(const T* values, const bool* keep, size_t count);

}  // namespace penstock
