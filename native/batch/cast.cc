#include "batch/cast.h"

namespace penstock {

bool cast_array(const uint8_t* values, DType from, size_t count, DType to, uint8_t* out) {
  if (from == to && from != DType::kOther) {
    if (count != 0) std::memcpy(out, values, count * item_bytes(from));
    return true;
  }
  return with_type(from, [&](auto source) {
    using From = decltype(source);
    return with_type(to, [&](auto target) {
      using To = decltype(target);
      return cast_numbers(reinterpret_cast<const From*>(values), count, reinterpret_cast<To*>(out));
    });
  });
}

bool can_cast(DType from, DType to) {
  if (from == to) return from != DType::kOther;
  const bool is_known = with_type(from, [](auto) { return true; }) && with_type(to, [](auto) { return true; });
  const auto is_float = [](DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; };
  return is_known && to != DType::kBool && (is_float(to) || !is_float(from));
}

bool narrow_array(const int64_t* values, size_t count, DType to, uint8_t* out) {
  if (to == DType::kBool) {
    for (size_t i = 0; i < count; i++) out[i] = values[i] != 0;
    return true;
  }
  return with_type(to, [&](auto target) {
    using To = decltype(target);
    if constexpr (std::is_floating_point_v<To>) {
      return false;
    } else {
      for (size_t i = 0; i < count; i++) reinterpret_cast<To*>(out)[i] = static_cast<To>(values[i]);
      return true;
    }
  });
}

}  // namespace penstock
