// Element types of arrays, as NumPy has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

enum class DType : uint8_t {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kOther
};

constexpr size_t item_bytes(DType dtype) {
  constexpr size_t kBytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 0};
  return kBytes[static_cast<size_t>(dtype)];
}

}  // namespace penstock
