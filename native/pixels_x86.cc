// Rows of pixels mirrored by shuffles, chosen at run time.
#include "pixels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>
#include <utility>

#include "avx2.h"

namespace penstock::detail {
namespace {

PENSTOCK_AVX2_INLINE __m128i load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

PENSTOCK_AVX2_INLINE void store(uint8_t* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

// The pixels of sixteen bytes in reverse. With three channels there are five: `kFirst` is the byte that is none of
// theirs at the beginning (1) or at the end (0), and it comes out at the other end of the vector.
template <int kChannels, int kFirst>
PENSTOCK_AVX2_INLINE __m128i reversed(__m128i v) {
  if constexpr (kChannels == 1) {
    return _mm_shuffle_epi8(v, _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  } else if constexpr (kChannels == 4) {
    return _mm_shuffle_epi32(v, 0x1b);
  } else if constexpr (kFirst == 0) {
    return _mm_shuffle_epi8(v, _mm_setr_epi8(15, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2));
  } else {
    return _mm_shuffle_epi8(v, _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0));
  }
}

// Swaps pieces of the two ends while they do not meet. With three channels the sixteenth byte of each vector belongs to
// the next pixel inwards and is kept: the piece that is written over it comes with what lay there.
template <int kChannels>
PENSTOCK_AVX2 void mirror(uint8_t* row, size_t width) {
  constexpr size_t kPiece = 16 / kChannels, kBytes = kPiece * kChannels;
  uint8_t *low = row, *high = row + width * kChannels;
  for (; static_cast<size_t>(high - low) >= 32; low += kBytes, high -= kBytes) {
    const __m128i first = load(low), last = load(high - 16);
    __m128i to_low = reversed<kChannels, 1>(last), to_high = reversed<kChannels, 0>(first);
    if constexpr (kChannels == 3) {
      const __m128i end = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1);
      const __m128i begin = _mm_setr_epi8(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
      to_low = _mm_blendv_epi8(to_low, first, end);
      to_high = _mm_blendv_epi8(to_high, last, begin);
    }
    store(low, to_low);
    store(high - 16, to_high);
  }
  for (high -= kChannels; low < high; low += kChannels, high -= kChannels) {
    for (int c = 0; c < kChannels; c++) std::swap(low[c], high[c]);
  }
}

}  // namespace

void mirror_row_avx2(uint8_t* row, size_t width, size_t channels) {
  if (channels == 1) mirror<1>(row, width);
  else if (channels == 3) mirror<3>(row, width);
  else mirror<4>(row, width);
}

}  // namespace penstock::detail

#else

namespace penstock::detail {
void mirror_row_avx2(uint8_t*, size_t, size_t) {}
}  // namespace penstock::detail

#endif
