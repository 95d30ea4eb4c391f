// Filters undone with a pixel of 3 or 4 bytes in one register. SSE2, but for Paeth's, which is chosen at run time.
#include "unfilter.h"

#if defined(__x86_64__)

#include <tmmintrin.h>

#include <cstring>

namespace penstock::detail {
namespace {

inline __m128i load4(const uint8_t* p) {
  int word;
  std::memcpy(&word, p, 4);
  return _mm_cvtsi32_si128(word);
}

inline void store4(uint8_t* p, __m128i v) {
  const int word = _mm_cvtsi128_si32(v);
  std::memcpy(p, &word, 4);
}

// A pixel at the end of a row, where four bytes may be too many.
template <size_t kPixelBytes>
inline __m128i load_last(const uint8_t* p) {
  int word = 0;
  std::memcpy(&word, p, kPixelBytes);
  return _mm_cvtsi32_si128(word);
}

template <size_t kPixelBytes>
inline void store_last(uint8_t* p, __m128i v) {
  const int word = _mm_cvtsi128_si32(v);
  std::memcpy(p, &word, kPixelBytes);
}

// Runs `step` over all pixels but the last by four bytes at once, of which the fourth is written over by the next pixel.
template <size_t kPixelBytes, typename Step>
__attribute__((always_inline)) inline void run(const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size,
                                               Step& step) {
  if (size < kPixelBytes) return;
  size_t i = 0;
  for (; size - i > kPixelBytes; i += kPixelBytes) store4(out + i, step(load4(raw + i), load4(above + i)));
  store_last<kPixelBytes>(out + i, step(load_last<kPixelBytes>(raw + i), load_last<kPixelBytes>(above + i)));
}

struct LeftStep {
  __m128i left = _mm_setzero_si128();

  inline __m128i operator()(__m128i raw, __m128i) { return left = _mm_add_epi8(left, raw); }
};

struct AverageStep {
  __m128i left = _mm_setzero_si128();

  inline __m128i operator()(__m128i raw, __m128i above) {
    // The instruction rounds up; the filter does not.
    const __m128i odd = _mm_and_si128(_mm_xor_si128(left, above), _mm_set1_epi8(1));
    return left = _mm_add_epi8(raw, _mm_sub_epi8(_mm_avg_epu8(left, above), odd));
  }
};

template <size_t kPixelBytes>
void undo_left(const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size) {
  LeftStep step;
  run<kPixelBytes>(raw, above, out, size, step);
}

template <size_t kPixelBytes>
void undo_average(const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size) {
  AverageStep step;
  run<kPixelBytes>(raw, above, out, size, step);
}

#define PENSTOCK_SSSE3 __attribute__((target("ssse3")))

// Paeth's filter, in sixteen bits a byte.
struct PaethStep {
  __m128i left, corner;

  PENSTOCK_SSSE3 PaethStep() : left(_mm_setzero_si128()), corner(_mm_setzero_si128()) {}

  PENSTOCK_SSSE3 inline __m128i operator()(__m128i raw_bytes, __m128i above_bytes) {
    const __m128i zero = _mm_setzero_si128();
    const __m128i raw = _mm_unpacklo_epi8(raw_bytes, zero), above = _mm_unpacklo_epi8(above_bytes, zero);
    const __m128i rise = _mm_sub_epi16(above, corner), run = _mm_sub_epi16(left, corner);
    const __m128i by_left = _mm_abs_epi16(rise), by_above = _mm_abs_epi16(run);
    const __m128i by_corner = _mm_abs_epi16(_mm_add_epi16(rise, run));
    const __m128i least = _mm_min_epi16(by_corner, _mm_min_epi16(by_left, by_above));
    const __m128i is_left = _mm_cmpeq_epi16(least, by_left), is_above = _mm_cmpeq_epi16(least, by_above);
    const __m128i other = _mm_or_si128(_mm_and_si128(is_above, above), _mm_andnot_si128(is_above, corner));
    const __m128i nearest = _mm_or_si128(_mm_and_si128(is_left, left), _mm_andnot_si128(is_left, other));
    corner = above;
    left = _mm_add_epi8(raw, nearest);
    return _mm_packus_epi16(left, left);
  }
};

template <size_t kPixelBytes>
PENSTOCK_SSSE3 __attribute__((flatten)) void undo_paeth(const uint8_t* raw, const uint8_t* above, uint8_t* out,
                                                        size_t size) {
  PaethStep step;
  run<kPixelBytes>(raw, above, out, size, step);
}

template <size_t kPixelBytes>
Unfilter choose(uint8_t filter) {
  __builtin_cpu_init();  // this may run before the library's own constructors
  if (filter == 1) return undo_left<kPixelBytes>;
  if (filter == 3) return undo_average<kPixelBytes>;
  return filter == 4 && __builtin_cpu_supports("ssse3") ? undo_paeth<kPixelBytes> : nullptr;
}

}  // namespace

// Filter 2 needs none: the compiler makes vectors of it.
Unfilter unfilter_for_x86(uint8_t filter, size_t pixel_bytes) {
  if (pixel_bytes == 3) return choose<3>(filter);
  return pixel_bytes == 4 ? choose<4>(filter) : nullptr;
}

}  // namespace penstock::detail

#else

namespace penstock::detail {
Unfilter unfilter_for_x86(uint8_t, size_t) { return nullptr; }
}  // namespace penstock::detail

#endif
