// Blending of rows and columns by AVX2, chosen at run time.
#include "resize.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "avx2.h"

namespace penstock::detail {
namespace {

constexpr size_t kBlock = 8;  // places that are blended together: four vectors of two lanes

PENSTOCK_AVX2_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Sixteen bytes at each of two places, a lane each.
PENSTOCK_AVX2_INLINE __m256i load_two(const uint8_t* low, const uint8_t* high) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(a), _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}

// Bytes at even and at odd places apart, as the high bytes of words: the high half of a product with a weight is then
// the product without its low byte.
template <size_t kVectors>
PENSTOCK_AVX2_INLINE void blend_bytes(const uint8_t* rows, ptrdiff_t stride, const uint32_t* weights, size_t num,
                                 uint8_t* out) {
  const __m256i high = _mm256_set1_epi16(static_cast<int16_t>(0xff00));
  __m256i even[kVectors], odd[kVectors];
  for (size_t k = 0; k < kVectors; k++) even[k] = odd[k] = _mm256_set1_epi16(static_cast<int16_t>(128 + num / 2));
  for (size_t j = 0; j < num; j++, rows += stride) {
    const __m256i weight = _mm256_set1_epi32(static_cast<int32_t>(weights[j]));
    for (size_t k = 0; k < kVectors; k++) {
      const __m256i v = load(rows + 32 * k);
      even[k] = _mm256_add_epi16(even[k], _mm256_mulhi_epu16(_mm256_slli_epi16(v, 8), weight));
      odd[k] = _mm256_add_epi16(odd[k], _mm256_mulhi_epu16(_mm256_and_si256(v, high), weight));
    }
  }
  for (size_t k = 0; k < kVectors; k++) {
    const __m256i v = _mm256_or_si256(_mm256_srli_epi16(even[k], 8), _mm256_and_si256(odd[k], high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * k), v);
  }
}

// Byte `channel` of pixels `first` and `first` + 1 as two words, for the four channels of a lane.
template <int kChannels>
PENSTOCK_AVX2_INLINE __m256i pair_mask(int first, bool is_single) {
  alignas(32) int8_t mask[32];
  for (int i = 0; i < 32; i++) {
    const int channel = i % 16 / 4, second = i % 4 / 2;
    const bool is_empty = i % 2 != 0 || channel >= kChannels || (second != 0 && is_single);
    mask[i] = static_cast<int8_t>(is_empty ? -1 : (first + second) * kChannels + channel);
  }
  return load(mask);
}

// The sums of two places, by pairs of taps: a load holds four pixels, or five of three channels.
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

// Writes `num` pixels of the eight; `room` says that there is some behind them in the row.
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
PENSTOCK_AVX2 void blend_colours(const uint8_t* row, const ColumnLanes& taps, uint8_t* out) {
  const size_t steps = kSteps == 0 ? taps.steps : kSteps;
  const __m256i masks[3] = {pair_mask<kChannels>(0, false), pair_mask<kChannels>(2, false),
                            pair_mask<kChannels>(4, true)};
  const int16_t* weights = taps.weights.data();
  const uint32_t* place = taps.place.data();
  for (size_t left = taps.num_out; left != 0; left -= left < kBlock ? left : kBlock) {
    __m256i sums[4];
    for (size_t k = 0; k < 4; k++, weights += 16 * steps) {
      sums[k] = blend_pairs<kChannels, kSteps>(row + place[k], row + place[k + 4], weights, steps, masks);
    }
    const __m256i first = _mm256_packs_epi32(sums[0], sums[1]), second = _mm256_packs_epi32(sums[2], sums[3]);
    store_pixels<kChannels>(_mm256_packus_epi16(first, second), left, out);
    place += kBlock;
    out += kBlock * kChannels;
  }
}

// One channel: eight taps of two places at a time.
PENSTOCK_AVX2 void blend_greys(const uint8_t* row, const ColumnLanes& taps, uint8_t* out) {
  const int16_t* weights = taps.weights.data();
  const uint32_t* place = taps.place.data();
  for (size_t left = taps.num_out; left != 0; left -= left < kBlock ? left : kBlock) {
    __m256i sums[4];
    for (size_t k = 0; k < 4; k++) {
      const uint8_t *low = row + place[k], *high = row + place[k + 4];
      sums[k] = _mm256_setzero_si256();
      for (size_t step = 0; step < taps.steps; step++, low += 8, high += 8, weights += 16) {
        const __m128i bytes = _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low)),
                                                 _mm_loadl_epi64(reinterpret_cast<const __m128i*>(high)));
        sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), load(weights)));
      }
    }
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    const __m256i whole = _mm256_srai_epi32(_mm256_add_epi32(all, _mm256_set1_epi32(1 << (kColumnBits - 1))), kColumnBits);
    const __m256i words = _mm256_packs_epi32(whole, whole), bytes = _mm256_packus_epi16(words, words);
    alignas(8) uint32_t last[2] = {static_cast<uint32_t>(_mm256_extract_epi32(bytes, 0)),
                                   static_cast<uint32_t>(_mm256_extract_epi32(bytes, 4))};
    std::memcpy(out, last, left < kBlock ? left : kBlock);
    place += kBlock;
    out += kBlock;
  }
}

template <int kChannels>
void blend_colours_of(const uint8_t* row, const ColumnLanes& taps, uint8_t* out) {
  switch (taps.steps) {
    case 1: return blend_colours<kChannels, 1>(row, taps, out);
    case 2: return blend_colours<kChannels, 2>(row, taps, out);
    case 3:
      // The third pair of three channels is half a pair in the one load.
      if (kChannels != 3 || taps.most == 5) return blend_colours<kChannels, 3>(row, taps, out);
      break;
    case 4: return blend_colours<kChannels, 4>(row, taps, out);
    case 5: return blend_colours<kChannels, 5>(row, taps, out);
    default: break;
  }
  blend_colours<kChannels, 0>(row, taps, out);
}

}  // namespace

PENSTOCK_AVX2 void blend_rows_avx2(const uint8_t* rows, ptrdiff_t stride, const uint32_t* weights, size_t num,
                                   size_t bytes, uint8_t* out) {
  uint32_t doubled[Taps::kMostNarrow];
  for (size_t j = 0; j < num; j++) doubled[j] = weights[j] * 0x10001u;
  size_t i = 0;
  for (; i + 64 <= bytes; i += 64) blend_bytes<2>(rows + i, stride, doubled, num, out + i);
  if (i + 32 <= bytes) {
    blend_bytes<1>(rows + i, stride, doubled, num, out + i);
    i += 32;
  }
  if (i == bytes) return;
  if (bytes >= 32) return blend_bytes<1>(rows + bytes - 32, stride, doubled, num, out + bytes - 32);
  for (; i < bytes; i++) {
    uint32_t sum = static_cast<uint32_t>(128 + num / 2);
    for (size_t j = 0; j < num; j++) sum += rows[static_cast<ptrdiff_t>(j) * stride + static_cast<ptrdiff_t>(i)] * weights[j] >> 8;
    out[i] = static_cast<uint8_t>(sum >> 8);
  }
}

void blend_columns_avx2(const uint8_t* row, const ColumnLanes& taps, uint8_t* out) {
  if (taps.channels == 1) return blend_greys(row, taps, out);
  if (taps.channels == 3) return blend_colours_of<3>(row, taps, out);
  blend_colours_of<4>(row, taps, out);
}

ColumnLanes::ColumnLanes(const Taps& taps, size_t num_channels)
    : channels(num_channels), num_out(taps.first.size()), most(taps.most) {
  const size_t taps_a_step = channels == 1 ? 8 : 2;
  steps = (most + taps_a_step - 1) / taps_a_step;
  const size_t padded = (num_out + kBlock - 1) / kBlock * kBlock;
  place.resize(padded);
  weights.resize(padded * steps * 8);
  for (size_t i = 0; i < num_out; i++) {
    place[i] = static_cast<uint32_t>((taps.first[i] - taps.left) * channels);
    const uint32_t* const from = taps.weights_of(i);
    // Places i and i + 4 of a block share vectors.
    const size_t vector = i / kBlock * 4 + i % 4, lane = i % kBlock / 4;
    for (size_t j = 0; j < taps.count[i]; j++) {
      int16_t* const to = weights.data() + (vector * steps + j / taps_a_step) * 16 + lane * 8;
      const auto weight = static_cast<int16_t>(from[j]);
      if (channels == 1) {
        to[j % 8] = weight;
      } else {
        for (size_t c = 0; c < 4; c++) to[2 * c + j % 2] = weight;
      }
    }
  }
}

}  // namespace penstock::detail

#else

namespace penstock::detail {

void blend_rows_avx2(const uint8_t*, ptrdiff_t, const uint32_t*, size_t, size_t, uint8_t*) {}
void blend_columns_avx2(const uint8_t*, const ColumnLanes&, uint8_t*) {}
ColumnLanes::ColumnLanes(const Taps&, size_t) {}

}  // namespace penstock::detail

#endif
