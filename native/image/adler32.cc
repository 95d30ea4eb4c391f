#include "image/adler32.h"

#include <algorithm>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace penstock {
namespace {

constexpr uint32_t kModulus = 65521;
constexpr size_t kMostAtOnce = 5552;  // bytes before the second sum outgrows 32 bits

inline void add_bytes(const uint8_t* data, size_t size, uint32_t& first, uint32_t& second) {
  for (size_t i = 0; i < size; i++) {
    first += data[i];
    second += first;
  }
}

#if defined(__x86_64__)

inline uint32_t sum32(__m128i v) {
  v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(v));
}

// Sixteen bytes at a time: byte i of them counts 16 - i times in the second sum, all bytes before them 16 times.
inline size_t add_vectors(const uint8_t* data, size_t size, uint32_t& first, uint32_t& second) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i high_weights = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
  const __m128i low_weights = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
  __m128i sums = zero, before = zero, weighted = zero;
  const size_t whole = size & ~size_t{15};
  for (size_t i = 0; i < whole; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i));
    before = _mm_add_epi32(before, sums);
    sums = _mm_add_epi32(sums, _mm_sad_epu8(bytes, zero));
    weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpacklo_epi8(bytes, zero), high_weights));
    weighted = _mm_add_epi32(weighted, _mm_madd_epi16(_mm_unpackhi_epi8(bytes, zero), low_weights));
  }
  second += static_cast<uint32_t>(whole) * first + 16 * sum32(before) + sum32(weighted);
  first += sum32(sums);
  return whole;
}

#else

inline size_t add_vectors(const uint8_t*, size_t, uint32_t&, uint32_t&) { return 0; }

#endif

}  // namespace

uint32_t adler32(const uint8_t* data, size_t size) {
  uint32_t first = 1, second = 0;
  while (size != 0) {
    const size_t now = std::min(size, kMostAtOnce);
    const size_t done = add_vectors(data, now, first, second);
    add_bytes(data + done, now - done, first, second);
    first %= kModulus;
    second %= kModulus;
    data += now;
    size -= now;
  }
  return second << 16 | first;
}

}  // namespace penstock
