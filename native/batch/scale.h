// Numbers to the float32 that a model takes: clipped, logged, shifted, scaled, with a number for missing values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

struct ScaleOptions {
  double low, high;  // clipped to these first; infinite: not
  double fill;       // what a missing value becomes
  bool log;          // sign(x) · log1p(|x|) after clipping
  bool nan_is_missing;
};

// `width` numbers a row. `shift` and `factor` hold one number, or one for each of the `width` (then both do).
struct ScaleTerms {
  const double* shift;
  const double* factor;
  bool per_element;
};

// out = (g(clip(x)) − shift) · factor, in double. `present` is a byte a row, or null. T: float, double, int64_t,
// int32_t, uint8_t.
template <typename T>
void scale_numbers(const T* values, const uint8_t* present, size_t rows, size_t width, const ScaleTerms& terms,
                   const ScaleOptions& options, float* out);

}  // namespace penstock
