// The one vector operation that the parsers use: SSE2 on x86-64, words elsewhere.
#pragma once

#include "foundation/bytes.h"

#if defined(__x86_64__)
#include <emmintrin.h>
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

}  // namespace penstock
