// Numbers as another element type, refused where one does not fit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "foundation/dtype.h"

namespace penstock {

// Calls function(T()) with the C++ type of an element type; false for types without one. A bool is its byte.
template <typename Function>
bool with_type(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return function(uint8_t());
    case DType::kInt8:
      return function(int8_t());
    case DType::kInt16:
      return function(int16_t());
    case DType::kUInt16:
      return function(uint16_t());
    case DType::kInt32:
      return function(int32_t());
    case DType::kUInt32:
      return function(uint32_t());
    case DType::kInt64:
      return function(int64_t());
    case DType::kUInt64:
      return function(uint64_t());
    case DType::kFloat32:
      return function(float());
    case DType::kFloat64:
      return function(double());
    default:
      return false;
  }
}

// False if a number is out of the range of `To`, or if floats would become integers.
template <typename From, typename To>
bool cast_numbers(const From* values, size_t count, To* out) {
  if constexpr (std::is_same_v<From, To>) {
    if (count != 0) std::memcpy(out, values, count * sizeof(To));
    return true;
  } else if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
    return false;
  } else {
    bool all_fit = true;
    for (size_t i = 0; i < count; i++) {
      if constexpr (std::is_same_v<From, double>) {
        // A number that is too large is undefined behaviour in a cast, unless floats follow IEEE 754.
        static_assert(std::numeric_limits<float>::is_iec559);
        const bool fits = std::fabs(values[i]) < 0x1.ffffffp+127 || !std::isfinite(values[i]);
        all_fit &= fits;
        out[i] = fits ? static_cast<To>(values[i]) : To();
      } else if constexpr (std::is_floating_point_v<To>) {
        out[i] = static_cast<To>(values[i]);
      } else {
        out[i] = static_cast<To>(values[i]);
        all_fit &= static_cast<From>(out[i]) == values[i] && (out[i] < 0) == (values[i] < 0);
      }
    }
    return all_fit;
  }
}

// The same with types that are known when it runs; types of equal name are copied. False also for float16 and others.
bool cast_array(const uint8_t* values, DType from, size_t count, DType to, uint8_t* out);

// Whether cast_array can convert between two types.
bool can_cast(DType from, DType to);

// 64-bit integers as a smaller type, without a check: the conversion had one when they were written.
bool narrow_array(const int64_t* values, size_t count, DType to, uint8_t* out);

}  // namespace penstock
