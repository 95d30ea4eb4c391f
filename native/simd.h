// The two vector operations that the parsers use: SSE2 on x86-64, NEON on ARM64, plain C++ elsewhere.
#pragma once

#include "bytes.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace penstock {

// Bit i of the result is the highest bit of p[i], for the 64 bytes at p.
inline uint64_t high_bits64(const uint8_t* p) {
#if defined(__x86_64__)
  const auto bits = [](const uint8_t* q) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(v)));
  };
  return bits(p) | bits(p + 16) << 16 | bits(p + 32) << 32 | bits(p + 48) << 48;
#else
  uint64_t result = 0;
  for (int i = 0; i < 8; i++) {
    // Gathers the eight high bits of a word: each lands in its own place of the product's top byte.
    const uint64_t high = (load64(p + 8 * i) & 0x8080808080808080ull) >> 7;
    result |= ((high * 0x0102040810204080ull) >> 56) << (8 * i);
  }
  return result;
#endif
}

// Bit i of the result says whether a[i] == b[i], for 32 bytes.
inline uint32_t equal_bytes32(const uint8_t* a, const uint8_t* b) {
#if defined(__x86_64__)
  const auto half = [](const uint8_t* x, const uint8_t* y) {
    const __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)),
                                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(y)));
    return static_cast<uint32_t>(_mm_movemask_epi8(equal));
  };
  return half(a, b) | half(a + 16, b + 16) << 16;
#elif defined(__aarch64__)
  const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto half = [&](const uint8_t* x, const uint8_t* y) {
    const uint8x16_t equal = vandq_u8(vceqq_u8(vld1q_u8(x), vld1q_u8(y)), bit);
    return static_cast<uint32_t>(vaddv_u8(vget_low_u8(equal))) |
           static_cast<uint32_t>(vaddv_u8(vget_high_u8(equal))) << 8;
  };
  return half(a, b) | half(a + 16, b + 16) << 16;
#else
  uint32_t result = 0;
  for (int i = 0; i < 32; i++) result |= static_cast<uint32_t>(a[i] == b[i]) << i;
  return result;
#endif
}

}  // namespace penstock
