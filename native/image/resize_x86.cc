// Blending of rows and columns by AVX2, chosen at run time.
#include "image/resize.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "foundation/cpu.h"

namespace penstock::detail {
namespace {

constexpr size_t kBlock = 8;  // output pixels that are blended together: four vectors of two lanes

PENSTOCK_AVX2_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Sixteen bytes at each of two addresses, one lane each.
PENSTOCK_AVX2_INLINE __m256i load_two(const uint8_t* low, const uint8_t* high) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(a), _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}

// Bytes at even and at odd indexes apart, as the high bytes of words: the high half of a product with a weight is then
// the product without its low byte. Odd ones keep the byte before them below, whose sum is taken off at the end.
template <size_t kNum>
PENSTOCK_AVX2_INLINE void blend_bytes(const uint8_t* rows, ptrdiff_t stride, const __m256i* weights, size_t some,
                                      uint8_t* out) {
  const size_t num = kNum == 0 ? some : kNum;
  __m256i v = load(rows);
  __m256i even = _mm256_mulhi_epu16(_mm256_slli_epi16(v, 8), weights[0]), odd = _mm256_mulhi_epu16(v, weights[0]);
#pragma GCC unroll 8
  for (size_t j = 1; j < num; j++) {
    rows += stride;
    v = load(rows);
    even = _mm256_add_epi16(even, _mm256_mulhi_epu16(_mm256_slli_epi16(v, 8), weights[j]));
    odd = _mm256_add_epi16(odd, _mm256_mulhi_epu16(v, weights[j]));
  }
  const __m256i half = _mm256_set1_epi16(static_cast<int16_t>(kRowHalf + num / 2));
  even = _mm256_srli_epi16(_mm256_add_epi16(even, half), 8);
  odd = _mm256_add_epi16(_mm256_subs_epu16(odd, even), half);
  odd = _mm256_and_si256(odd, _mm256_set1_epi16(static_cast<int16_t>(0xff00)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_or_si256(even, odd));
}

// Rows that come next are asked for meanwhile: an image that is not in the nearest cache takes two thirds of the time.
PENSTOCK_AVX2_INLINE void fetch_next(const RowBlend& blend, size_t i) {
  const uint8_t* p = blend.next + i;
  for (size_t k = 0; k < blend.num_next; k++, p += blend.stride) _mm_prefetch(p, _MM_HINT_T1);
}

template <size_t kNum>
PENSTOCK_AVX2 void blend_rows(const RowBlend& blend, uint8_t* out) {
  const size_t num = kNum == 0 ? blend.num : kNum, bytes = blend.bytes;
  __m256i weights[kNum == 0 ? ResizeFilter::kMostNarrow : kNum];
  for (size_t j = 0; j < num; j++) weights[j] = _mm256_set1_epi16(static_cast<int16_t>(blend.weights[j]));
  const auto blend_at = [&](size_t i) __attribute__((target("avx2"), always_inline)) {
    blend_bytes<kNum>(blend.rows + i, blend.stride, weights, num, out + i);
  };
  size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    fetch_next(blend, i);
    blend_at(i);
    blend_at(i + 32);
  }
  if (i + 32 <= bytes) {
    blend_at(i);
    i += 32;
  }
  // The last vector begins at an even index as well.
  if (bytes >= 32 && i < bytes) {
    const size_t last = (bytes - 32) & ~size_t{1};
    blend_at(last);
    i = last + 32;
  }
  blend_rows_plainly(blend, i, out);
}

struct alignas(32) Mask {
  int8_t places[32];
};

// In each lane, the bytes of pixels `first` and `first` + 1 as adjacent words, for each of four channels: -1 for
// absent pixels.
constexpr Mask pair_mask(int channels, int first, bool is_single) {
  Mask mask{};
  for (int i = 0; i < 32; i++) {
    const int channel = i % 16 / 4, second = i % 4 / 2;
    const bool is_empty = i % 2 != 0 || channel >= channels || (second != 0 && is_single);
    mask.places[i] = static_cast<int8_t>(is_empty ? -1 : (first + second) * channels + channel);
  }
  return mask;
}

template <int kChannels>
constexpr Mask kPairMasks[3] = {pair_mask(kChannels, 0, false), pair_mask(kChannels, 2, false),
                                pair_mask(kChannels, kChannels == 3 ? 4 : 0, true)};

// The sums of two output pixels, by pairs of source pixels: a load holds four pixels, or five of three channels.
template <int kChannels, size_t kSteps>
PENSTOCK_AVX2_INLINE __m256i blend_pairs(const uint8_t* low, const uint8_t* high, const int16_t* weights, size_t steps,
                                         const __m256i* masks) {
  const size_t num = kSteps == 0 ? steps : kSteps;
  __m256i sum = _mm256_set1_epi32(1 << (kColumnBits - 1));
  for (size_t step = 0; step < num; step += 2, low += 4 * kChannels, high += 4 * kChannels) {
    const __m256i v = load_two(low, high);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(v, masks[0]), load(weights + 16 * step)));
    if (step + 1 == num) break;
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(v, masks[1]), load(weights + 16 * step + 16)));
    if (kSteps == 3 && kChannels == 3) {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(v, masks[2]), load(weights + 32)));
      break;
    }
  }
  return _mm256_srai_epi32(sum, kColumnBits);
}

// Writes as many of the eight pixels as are left of the row, and nothing after it.
template <int kChannels>
PENSTOCK_AVX2_INLINE void store_pixels(__m256i pixels, size_t left, uint8_t* out) {
  if (kChannels == 4 && left >= kBlock) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), pixels);
    return;
  }
  alignas(32) uint8_t last[32];
  uint8_t* const to = left >= kBlock + 2 ? out : last;
  if (kChannels == 3) {
    const __m256i packed = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8,
                                            9, 10, 12, 13, 14, -1, -1, -1, -1);
    pixels = _mm256_shuffle_epi8(pixels, packed);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(pixels));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 12), _mm256_extracti128_si256(pixels, 1));
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(last), pixels);
  }
  if (to == last) std::memcpy(out, last, (left < kBlock ? left : kBlock) * kChannels);
}

template <int kChannels, size_t kSteps>
PENSTOCK_AVX2 void blend_colours(const uint8_t* row, const ColumnLanes& filter, uint8_t* out) {
  const size_t steps = kSteps == 0 ? filter.steps : kSteps;
  const __m256i masks[3] = {load(kPairMasks<kChannels>), load(kPairMasks<kChannels> + 1),
                            load(kPairMasks<kChannels> + 2)};
  const int16_t* weights = filter.weights.data();
  const uint32_t* place = filter.place.data();
  for (size_t left = filter.num_out; left != 0; left -= left < kBlock ? left : kBlock) {
    __m256i sums[4];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++, weights += 16 * steps) {
      sums[k] = blend_pairs<kChannels, kSteps>(row + place[k], row + place[k + 4], weights, steps, masks);
    }
    const __m256i first = _mm256_packs_epi32(sums[0], sums[1]), second = _mm256_packs_epi32(sums[2], sums[3]);
    store_pixels<kChannels>(_mm256_packus_epi16(first, second), left, out);
    place += kBlock;
    out += kBlock * kChannels;
  }
}

// The sums of two output pixels of one channel, in four parts each, by eight source pixels.
template <size_t kSteps>
PENSTOCK_AVX2_INLINE __m256i blend_eights(const uint8_t* low, const uint8_t* high, const int16_t* weights,
                                          size_t steps) {
  const size_t num = kSteps == 0 ? steps : kSteps;
  __m256i sum = _mm256_setzero_si256();
  for (size_t step = 0; step < num; step++, low += 8, high += 8, weights += 16) {
    const __m128i bytes = _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low)),
                                             _mm_loadl_epi64(reinterpret_cast<const __m128i*>(high)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), load(weights)));
  }
  return sum;
}

template <size_t kSteps>
PENSTOCK_AVX2 void blend_greys(const uint8_t* row, const ColumnLanes& filter, uint8_t* out) {
  const size_t steps = kSteps == 0 ? filter.steps : kSteps;
  const __m256i half = _mm256_set1_epi32(1 << (kColumnBits - 1));
  const int16_t* weights = filter.weights.data();
  const uint32_t* place = filter.place.data();
  for (size_t left = filter.num_out; left != 0; left -= left < kBlock ? left : kBlock) {
    __m256i sums[4];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++, weights += 16 * steps) {
      sums[k] = blend_eights<kSteps>(row + place[k], row + place[k + 4], weights, steps);
    }
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    const __m256i whole = _mm256_srai_epi32(_mm256_add_epi32(all, half), kColumnBits);
    const __m256i words = _mm256_packs_epi32(whole, whole), bytes = _mm256_packus_epi16(words, words);
    const __m128i eight = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    if (left >= kBlock) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out), eight);
    } else {
      std::memcpy(out, &eight, left);
    }
    place += kBlock;
    out += kBlock;
  }
}

template <int kChannels>
void blend_colours_of(const uint8_t* row, const ColumnLanes& filter, uint8_t* out) {
  switch (filter.steps) {
    case 1:
      return blend_colours<kChannels, 1>(row, filter, out);
    case 2:
      return blend_colours<kChannels, 2>(row, filter, out);
    case 3:
      // The third pair of three channels is half a pair in the one load.
      if (kChannels != 3 || filter.most == 5) return blend_colours<kChannels, 3>(row, filter, out);
      break;
    case 4:
      return blend_colours<kChannels, 4>(row, filter, out);
    case 5:
      return blend_colours<kChannels, 5>(row, filter, out);
    default:
      break;
  }
  blend_colours<kChannels, 0>(row, filter, out);
}

void blend_all_rows(const RowBlend& blend, uint8_t* out) {
  switch (blend.num) {
    case 2:
      return blend_rows<2>(blend, out);
    case 3:
      return blend_rows<3>(blend, out);
    case 4:
      return blend_rows<4>(blend, out);
    case 5:
      return blend_rows<5>(blend, out);
    case 6:
      return blend_rows<6>(blend, out);
    case 7:
      return blend_rows<7>(blend, out);
    default:
      return blend_rows<0>(blend, out);
  }
}

void blend_all_columns(const uint8_t* row, const ColumnLanes& filter, uint8_t* out) {
  if (filter.channels == 1)
    return filter.steps == 1 ? blend_greys<1>(row, filter, out) : blend_greys<0>(row, filter, out);
  if (filter.channels == 3) return blend_colours_of<3>(row, filter, out);
  blend_colours_of<4>(row, filter, out);
}

}  // namespace

const BlendRows blend_rows_avx2 = has_avx2() ? blend_all_rows : nullptr;
const BlendColumns blend_columns_avx2 = has_avx2() ? blend_all_columns : nullptr;

ColumnLanes::ColumnLanes(const ResizeFilter& filter, size_t num_channels)
    : channels(num_channels), num_out(filter.side.out), most(filter.most) {
  const size_t pixels_per_step = channels == 1 ? 8 : 2;
  steps = (most + pixels_per_step - 1) / pixels_per_step;
  const size_t padded = (num_out + kBlock - 1) / kBlock * kBlock;
  place.resize(padded);
  weights.resize(padded * steps * 8);
  for (size_t i = 0; i < num_out; i++) {
    place[i] = static_cast<uint32_t>((filter.first[i] - filter.left) * channels);
    const uint32_t* const from = filter.weights_of(i);
    const auto weight = [&](size_t j) { return j < most ? from[j] : 0; };
    // Output pixels i and i + 4 of a block share vectors.
    int16_t* to = weights.data() + (i / kBlock * 4 + i % 4) * steps * 16 + i % kBlock / 4 * 8;
    for (size_t step = 0; step < steps; step++, to += 16) {
      uint32_t pairs[4];
      for (size_t k = 0; k < 4; k++) {
        const size_t j = channels == 1 ? 8 * step + 2 * k : 2 * step;
        pairs[k] = weight(j) | weight(j + 1) << 16;
      }
      std::memcpy(to, pairs, sizeof pairs);
    }
  }
}

}  // namespace penstock::detail

#else

namespace penstock::detail {

const BlendRows blend_rows_avx2 = nullptr;
const BlendColumns blend_columns_avx2 = nullptr;
ColumnLanes::ColumnLanes(const ResizeFilter&, size_t) {}

}  // namespace penstock::detail

#endif
