// Values of pixels by AVX2, chosen at run time. No fused products: the bytes equal the bytes of the plain code.
#include "image/colour.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "foundation/cpu.h"

namespace penstock::detail {
namespace {

PENSTOCK_AVX2_INLINE __m256i load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

PENSTOCK_AVX2_INLINE uint64_t sum_of(__m256i v) {
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return static_cast<uint64_t>(_mm_extract_epi64(two, 0)) + static_cast<uint64_t>(_mm_extract_epi64(two, 1));
}

// Three vectors hold 96, 32 or 24 whole pixels, and the same channels at the same indexes each time.
template <int kChannels>
PENSTOCK_AVX2 size_t add_channels(const uint8_t* from, size_t pixels, uint64_t* sums) {
  __m256i masks[kChannels][3], totals[kChannels];
  for (int c = 0; c < kChannels; c++) {
    alignas(32) uint8_t mask[96];
    for (int i = 0; i < 96; i++) mask[i] = i % kChannels == c ? 255 : 0;
    for (int k = 0; k < 3; k++) masks[c][k] = load(mask + 32 * k);
    totals[c] = _mm256_setzero_si256();
  }
  constexpr size_t kPixels = 96 / kChannels;
  size_t done = 0;
  for (; kPixels <= pixels - done; done += kPixels, from += 96) {
    for (int k = 0; k < 3; k++) {
      const __m256i v = load(from + 32 * k);
      for (int c = 0; c < kChannels; c++) {
        const __m256i ours = _mm256_and_si256(v, masks[c][k]);
        totals[c] = _mm256_add_epi64(totals[c], _mm256_sad_epu8(ours, _mm256_setzero_si256()));
      }
    }
  }
  for (int c = 0; c < kChannels; c++) sums[c] += sum_of(totals[c]);
  return done;
}

struct alignas(32) Mask {
  int8_t places[32];
};

// In each lane, one channel of four pixels as whole words of 32 bits.
constexpr Mask channel_mask(int channels, int channel) {
  Mask mask{};
  for (int i = 0; i < 32; i++) mask.places[i] = static_cast<int8_t>(i % 4 == 0 ? i % 16 / 4 * channels + channel : -1);
  return mask;
}

template <int kChannels>
constexpr Mask kChannelMasks[3] = {channel_mask(kChannels, 0), channel_mask(kChannels, 1), channel_mask(kChannels, 2)};

// One channel of eight pixels as floats.
template <int kChannels>
PENSTOCK_AVX2_INLINE __m256 channel_of(__m256i pixels, int channel) {
  const auto* const mask = reinterpret_cast<const __m256i*>(kChannelMasks<kChannels> + channel);
  return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, _mm256_load_si256(mask)));
}

PENSTOCK_AVX2_INLINE __m256i bytes_of(__m256 red, __m256 green, __m256 blue, const __m256* row) {
  __m256 sum = _mm256_add_ps(_mm256_mul_ps(row[0], red), _mm256_mul_ps(row[1], green));
  sum = _mm256_add_ps(_mm256_add_ps(sum, _mm256_mul_ps(row[2], blue)), row[3]);
  sum = _mm256_min_ps(_mm256_max_ps(sum, _mm256_setzero_ps()), _mm256_set1_ps(255.0f));
  return _mm256_cvtps_epi32(sum);
}

// Twelve bytes, and no more: the bytes after them are read later.
PENSTOCK_AVX2_INLINE void store_four(uint8_t* p, __m128i rgb) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), rgb);
  const int last = _mm_extract_epi32(rgb, 2);
  std::memcpy(p + 8, &last, sizeof last);
}

template <int kChannels>
PENSTOCK_AVX2 size_t recolour(uint8_t* from, size_t pixels, const float* matrix) {
  __m256 m[12];
  for (int i = 0; i < 12; i++) m[i] = _mm256_set1_ps(matrix[i]);
  constexpr size_t kBytes = 8 * kChannels, kRead = kChannels == 3 ? 28 : 32;
  size_t done = 0;
  for (; kRead <= (pixels - done) * kChannels; done += 8, from += kBytes) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 4 * kChannels));
    const __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    const __m256 red = channel_of<kChannels>(v, 0), green = channel_of<kChannels>(v, 1);
    const __m256 blue = channel_of<kChannels>(v, 2);
    const __m256i green_blue = _mm256_or_si256(_mm256_slli_epi32(bytes_of(red, green, blue, m + 4), 8),
                                               _mm256_slli_epi32(bytes_of(red, green, blue, m + 8), 16));
    const __m256i rgb = _mm256_or_si256(bytes_of(red, green, blue, m), green_blue);
    if constexpr (kChannels == 4) {
      const __m256i alpha = _mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xff000000u)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(from), _mm256_or_si256(rgb, alpha));
    } else {
      const __m256i packed =
          _mm256_shuffle_epi8(rgb, _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4,
                                                    5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
      store_four(from, _mm256_castsi256_si128(packed));
      store_four(from + 12, _mm256_extracti128_si256(packed, 1));
    }
  }
  return done;
}

// Numbers that do not stay in the nearer caches anyway: they go past them, and take half the time to write.
constexpr size_t kManyBytes = size_t{8} << 20;

template <bool kPastCaches>
PENSTOCK_AVX2 size_t scale_24(const uint8_t* from, size_t pixels, size_t channels, const float* factor,
                              const float* offset, float* out) {
  alignas(32) float factors[24], offsets[24];
  for (size_t i = 0; i < 24; i++) {
    factors[i] = factor[i % channels];
    offsets[i] = offset[i % channels];
  }
  const size_t step = 24 / channels;
  size_t done = 0;
  for (; step <= pixels - done; done += step, from += 24, out += 24) {
#pragma GCC unroll 3
    for (int k = 0; k < 3; k++) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * k));
      const __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
      const __m256 product = _mm256_mul_ps(v, _mm256_load_ps(factors + 8 * k));
      const __m256 sum = _mm256_add_ps(product, _mm256_load_ps(offsets + 8 * k));
      kPastCaches ? _mm256_stream_ps(out + 8 * k, sum) : _mm256_storeu_ps(out + 8 * k, sum);
    }
  }
  if (kPastCaches) _mm_sfence();
  return done;
}

size_t add_all_channels(const uint8_t* from, size_t pixels, size_t channels, uint64_t* sums) {
  if (channels == 1) return add_channels<1>(from, pixels, sums);
  if (channels == 3) return add_channels<3>(from, pixels, sums);
  return add_channels<4>(from, pixels, sums);
}

size_t recolour_pixels(uint8_t* from, size_t pixels, size_t channels, const float* matrix) {
  return channels == 3 ? recolour<3>(from, pixels, matrix) : recolour<4>(from, pixels, matrix);
}

size_t scale_pixels(const uint8_t* from, size_t pixels, size_t channels, const float* factor, const float* offset,
                    float* out) {
  if (channels > 24 || 24 % channels != 0) return 0;
  const bool is_aligned = reinterpret_cast<uintptr_t>(out) % 32 == 0;
  if (is_aligned && pixels * channels * sizeof(float) >= kManyBytes) {
    return scale_24<true>(from, pixels, channels, factor, offset, out);
  }
  return scale_24<false>(from, pixels, channels, factor, offset, out);
}

}  // namespace

const AddChannels add_channels_avx2 = has_avx2() ? add_all_channels : nullptr;
const Recolour recolour_avx2 = has_avx2() ? recolour_pixels : nullptr;
const ScaleBytes scale_bytes_avx2 = has_avx2() ? scale_pixels : nullptr;

}  // namespace penstock::detail

#else

namespace penstock::detail {

const AddChannels add_channels_avx2 = nullptr;
const Recolour recolour_avx2 = nullptr;
const ScaleBytes scale_bytes_avx2 = nullptr;

}  // namespace penstock::detail

#endif
