// The three vector operations that the parsers use: SSE2 on x86-64, NEON on ARM64, plain C++ elsewhere.
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

// A prefix of up to 32 bytes in which some bytes are fixed and others are a fixed distance below one number n.
struct Prefix {
  alignas(16) uint8_t fixed[32] = {};     // the byte, or what to add to n
  alignas(16) uint8_t relative[32] = {};  // 0xff where n is added
  alignas(16) uint8_t compared[32] = {};  // 0xff where the byte counts

  // Whether the 32 bytes at p fit.
  bool matches(const uint8_t* p, uint8_t n) const {
#if defined(__x86_64__)
    const __m128i number = _mm_set1_epi8(static_cast<char>(n));
    const auto differs = [&](int at) {
      const auto load = [&](const uint8_t* q) { return _mm_load_si128(reinterpret_cast<const __m128i*>(q + at)); };
      const __m128i wanted = _mm_add_epi8(load(fixed), _mm_and_si128(number, load(relative)));
      const __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at));
      return _mm_and_si128(_mm_xor_si128(there, wanted), load(compared));
    };
    const __m128i any = _mm_or_si128(differs(0), differs(16));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(any, _mm_setzero_si128())) == 0xffff;
#elif defined(__aarch64__)
    const uint8x16_t number = vdupq_n_u8(n);
    const auto differs = [&](int at) {
      const uint8x16_t wanted = vaddq_u8(vld1q_u8(fixed + at), vandq_u8(number, vld1q_u8(relative + at)));
      return vandq_u8(veorq_u8(vld1q_u8(p + at), wanted), vld1q_u8(compared + at));
    };
    return vmaxvq_u8(vorrq_u8(differs(0), differs(16))) == 0;
#else
    for (int i = 0; i < 32; i++) {
      const uint8_t wanted = static_cast<uint8_t>(fixed[i] + (n & relative[i]));
      if ((p[i] ^ wanted) & compared[i]) return false;
    }
    return true;
#endif
  }
};

}  // namespace penstock
