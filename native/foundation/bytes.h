// Loads of numbers and a view of bytes. TFRecord and protobuf are little-endian; so are the machines we build for.
// Headers of images are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the core reads little-endian formats in place");

namespace penstock {

inline uint32_t load32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline uint64_t load64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline uint32_t load_big16(const uint8_t* p) { return static_cast<uint32_t>(p[0]) << 8 | p[1]; }

inline uint32_t load_big32(const uint8_t* p) { return __builtin_bswap32(load32(p)); }

struct Span {
  const uint8_t* data = nullptr;
  size_t size = 0;

  const uint8_t* begin() const { return data; }
  const uint8_t* end() const { return data + size; }
};

// Parsers may load this many bytes past the end of a record, so the owner of the records keeps them readable.
inline constexpr size_t kReadablePadding = 64;

#define PENSTOCK_LIKELY(x) __builtin_expect(!!(x), 1)
#define PENSTOCK_UNLIKELY(x) __builtin_expect(!!(x), 0)

}  // namespace penstock
