// Rows of pixels mirrored by shuffles, chosen at run time.
#include "image/pixels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "foundation/cpu.h"

namespace penstock::detail {
namespace {

PENSTOCK_AVX2_INLINE __m128i load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

PENSTOCK_AVX2_INLINE void store(uint8_t* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

// The pixels of sixteen bytes in reverse. Of three channels there are five, and the first byte belongs to none of them.
template <int kChannels>
PENSTOCK_AVX2_INLINE __m128i reversed(__m128i v) {
  if constexpr (kChannels == 1) {
    return _mm_shuffle_epi8(v, _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  } else if constexpr (kChannels == 3) {
    return _mm_shuffle_epi8(v, _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0));
  } else {
    return _mm_shuffle_epi32(v, 0x1b);
  }
}

// The sixteenth byte of a piece of three channels is written over by the next piece.
template <int kChannels>
PENSTOCK_AVX2 void mirror(const uint8_t* row, size_t width, uint8_t* out) {
  constexpr size_t kBytes = 16 / kChannels * kChannels;
  size_t left = width * kChannels;
  for (; left >= 16; left -= kBytes, out += kBytes) store(out, reversed<kChannels>(load(row + left - 16)));
  for (; left != 0; left -= kChannels, out += kChannels) std::memcpy(out, row + left - kChannels, kChannels);
}

void mirror_row(const uint8_t* row, size_t width, size_t channels, uint8_t* out) {
  if (channels == 1) mirror<1>(row, width, out);
  else if (channels == 3) mirror<3>(row, width, out);
  else mirror<4>(row, width, out);
}

}  // namespace

const MirrorRow mirror_row_avx2 = has_avx2() ? mirror_row : nullptr;

}  // namespace penstock::detail

#else

namespace penstock::detail {
const MirrorRow mirror_row_avx2 = nullptr;
}  // namespace penstock::detail

#endif
