// Filters undone with a pixel of 3 or 4 bytes in one register. SSE2, and SSE4.1 for Paeth's.
#include "image/png_filters.h"

#if defined(__x86_64__)

#include <smmintrin.h>

#include <cstring>

#include "foundation/cpu.h"

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

// Runs `step` over all pixels but the last by four bytes at once; the next pixel overwrites the excess bytes.
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

#define PENSTOCK_SSE41 __attribute__((target("sse4.1")))

// Paeth's filter, in sixteen bits a byte. What does not need the pixel on the left is made beside the chain that does:
// of the three results that there can be, one is chosen at the end. 1.5 times as fast as to choose, then add.
PENSTOCK_SSE41 inline __m128i add_nearest(__m128i raw, __m128i above, __m128i left, __m128i corner) {
  const __m128i rise = _mm_sub_epi16(above, corner);
  const __m128i by_left = _mm_abs_epi16(rise), by_above = _mm_abs_epi16(_mm_sub_epi16(left, corner));
  const __m128i by_corner = _mm_abs_epi16(_mm_add_epi16(left, _mm_sub_epi16(rise, corner)));
  const __m128i is_corner = _mm_cmpgt_epi16(by_above, by_corner);
  const __m128i not_left = _mm_cmpgt_epi16(by_left, _mm_min_epi16(by_above, by_corner));
  const __m128i other = _mm_blendv_epi8(_mm_add_epi8(raw, above), _mm_add_epi8(raw, corner), is_corner);
  return _mm_blendv_epi8(_mm_add_epi8(raw, left), other, not_left);
}

struct PaethStep {
  __m128i left, corner;

  PENSTOCK_SSE41 PaethStep() : left(_mm_setzero_si128()), corner(_mm_setzero_si128()) {}
  PENSTOCK_SSE41 PaethStep(__m128i left_pixel, __m128i corner_pixel) : left(left_pixel), corner(corner_pixel) {}

  PENSTOCK_SSE41 inline __m128i operator()(__m128i raw_bytes, __m128i above_bytes) {
    const __m128i above = _mm_cvtepu8_epi16(above_bytes);
    left = add_nearest(_mm_cvtepu8_epi16(raw_bytes), above, left, corner);
    corner = above;
    return _mm_packus_epi16(left, left);
  }
};

template <size_t kPixelBytes>
PENSTOCK_SSE41 __attribute__((flatten)) void undo_paeth(const uint8_t* raw, const uint8_t* above, uint8_t* out,
                                                        size_t size) {
  PaethStep step;
  run<kPixelBytes>(raw, above, out, size, step);
}

// Two rows in the two halves of a register. The lower row is two pixels behind: the pixel above was made two steps
// before, and the chain from step to step grows no longer.
template <size_t kPixelBytes>
PENSTOCK_SSE41 __attribute__((flatten)) void undo_two_paeth(const RowPair& rows, const uint8_t* above, size_t size) {
  constexpr size_t kLag = 2 * kPixelBytes;
  if (size < 4 * kPixelBytes) {
    undo_paeth<kPixelBytes>(rows.raw, above, rows.out, size);
    undo_paeth<kPixelBytes>(rows.raw_below, rows.out, rows.out_below, size);
    return;
  }
  PaethStep upper;
  store4(rows.out, upper(load4(rows.raw), load4(above)));
  __m128i before = upper.left;
  store4(rows.out + kPixelBytes, upper(load4(rows.raw + kPixelBytes), load4(above + kPixelBytes)));
  __m128i left = upper.left, corner = upper.corner;
  size_t i = kLag;
  for (; size - i > kPixelBytes; i += kPixelBytes) {
    const __m128i raw = _mm_unpacklo_epi32(load4(rows.raw + i), load4(rows.raw_below + i - kLag));
    const __m128i over = _mm_unpacklo_epi64(_mm_cvtepu8_epi16(load4(above + i)), before);
    before = left;
    left = add_nearest(_mm_cvtepu8_epi16(raw), over, left, corner);
    corner = over;
    const __m128i bytes = _mm_packus_epi16(left, left);
    store4(rows.out + i, bytes);
    store4(rows.out_below + i - kLag, _mm_srli_si128(bytes, 4));
  }
  upper = PaethStep(left, corner);
  store_last<kPixelBytes>(rows.out + i, upper(load_last<kPixelBytes>(rows.raw + i), load_last<kPixelBytes>(above + i)));
  PaethStep lower(_mm_srli_si128(left, 8), _mm_srli_si128(corner, 8));
  i -= kLag;
  run<kPixelBytes>(rows.raw_below + i, rows.out + i, rows.out_below + i, size - i, lower);
}

// Filter 2 needs none: the compiler makes vectors of it.
template <size_t kPixelBytes>
void add_filters(VectorFilters& filters) {
  filters.one[1][kPixelBytes] = undo_left<kPixelBytes>;
  filters.one[3][kPixelBytes] = undo_average<kPixelBytes>;
  filters.one[kPaethFilter][kPixelBytes] = has_sse41() ? undo_paeth<kPixelBytes> : nullptr;
  filters.two[kPixelBytes] = has_sse41() ? undo_two_paeth<kPixelBytes> : nullptr;
}

VectorFilters find_filters() {
  VectorFilters filters = {};
  add_filters<3>(filters);
  add_filters<4>(filters);
  return filters;
}

}  // namespace

const VectorFilters unfilter_sse = find_filters();

}  // namespace penstock::detail

#else

namespace penstock::detail {
const VectorFilters unfilter_sse = {};
}  // namespace penstock::detail

#endif
