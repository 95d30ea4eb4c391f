#include "write/sha256.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "foundation/cpu.h"

namespace penstock {
namespace {

alignas(16) constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate_right(uint32_t x, int count) { return x >> count | x << (32 - count); }

#if defined(__x86_64__)
// One stream in a lane of registers; the instructions want the words of the state in the order FEBA, HGDC.
struct Lane {
  __m128i abef, cdgh;
};

PENSTOCK_SHA __attribute__((always_inline)) inline void load_lane(const uint32_t* state, Lane& lane) {
  const __m128i first = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state)), 0xb1);
  const __m128i second = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4)), 0x1b);
  lane.abef = _mm_alignr_epi8(first, second, 8);
  lane.cdgh = _mm_blend_epi16(second, first, 0xf0);
}

PENSTOCK_SHA __attribute__((always_inline)) inline void store_lane(const Lane& lane, uint32_t* state) {
  const __m128i first = _mm_shuffle_epi32(lane.abef, 0x1b), second = _mm_shuffle_epi32(lane.cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(first, second, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(second, first, 8));
}

// Unrolled completely: the compiler then interleaves the instructions of the lanes.
template <int kLanes>
PENSTOCK_SHA __attribute__((always_inline)) inline void take_blocks(uint32_t* const (&states)[kLanes],
                                                                    const uint8_t* (&blocks)[kLanes],
                                                                    size_t num_blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);  // words are big-endian
  Lane lanes[kLanes];
  for (int i = 0; i < kLanes; i++) load_lane(states[i], lanes[i]);
  for (size_t block = 0; block < num_blocks; block++) {
    Lane before[kLanes];
    __m128i words[kLanes][4];
    for (int i = 0; i < kLanes; i++) {
      before[i] = lanes[i];
      for (int k = 0; k < 4; k++) {
        const auto* const four = reinterpret_cast<const __m128i*>(blocks[i] + 16 * k);
        words[i][k] = _mm_shuffle_epi8(_mm_loadu_si128(four), swap);
      }
      blocks[i] += Sha256::kBlockBytes;
    }
#pragma GCC unroll 16
    for (int round = 0; round < 16; round++) {
      const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds + 4 * round));
#pragma GCC unroll 2
      for (int i = 0; i < kLanes; i++) {
        __m128i(&w)[4] = words[i];
        const __m128i now = w[round % 4], last = w[(round + 3) % 4];
        const __m128i sum = _mm_add_epi32(now, constants);
        lanes[i].cdgh = _mm_sha256rnds2_epu32(lanes[i].cdgh, lanes[i].abef, sum);
        lanes[i].abef = _mm_sha256rnds2_epu32(lanes[i].abef, lanes[i].cdgh, _mm_shuffle_epi32(sum, 0x0e));
        if (round >= 12) continue;
        // The words of four rounds later.
        const __m128i next = _mm_sha256msg1_epu32(now, w[(round + 1) % 4]);
        w[round % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(next, _mm_alignr_epi8(last, w[(round + 2) % 4], 4)), last);
      }
    }
    for (int i = 0; i < kLanes; i++) {
      lanes[i].abef = _mm_add_epi32(lanes[i].abef, before[i].abef);
      lanes[i].cdgh = _mm_add_epi32(lanes[i].cdgh, before[i].cdgh);
    }
  }
  for (int i = 0; i < kLanes; i++) store_lane(lanes[i], states[i]);
}

PENSTOCK_SHA void take_one(uint32_t* state, const uint8_t* blocks, size_t num_blocks) {
  uint32_t* const states[1] = {state};
  const uint8_t* streams[1] = {blocks};
  take_blocks<1>(states, streams, num_blocks);
}

PENSTOCK_SHA void take_two(uint32_t* state, const uint8_t* blocks, uint32_t* other, const uint8_t* other_blocks,
                           size_t num_blocks) {
  uint32_t* const states[2] = {state, other};
  const uint8_t* streams[2] = {blocks, other_blocks};
  take_blocks<2>(states, streams, num_blocks);
}
#endif

}  // namespace

namespace detail {

void sha256_blocks(uint32_t* state, const uint8_t* blocks, size_t num_blocks) {
  for (size_t block = 0; block < num_blocks; block++, blocks += Sha256::kBlockBytes) {
    uint32_t w[64];
    for (size_t i = 0; i < 16; i++) w[i] = load_big32(blocks + 4 * i);
    for (size_t i = 16; i < 64; i++) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
             (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
    uint32_t s[8];
    std::memcpy(s, state, sizeof s);
    for (size_t i = 0; i < 64; i++) {
      const uint32_t first = s[7] + (rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25)) +
                             ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRounds[i] + w[i];
      const uint32_t second = (rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22)) +
                              ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      std::memmove(s + 1, s, 7 * sizeof s[0]);
      s[4] += first;
      s[0] = first + second;
    }
    for (size_t i = 0; i < 8; i++) state[i] += s[i];
  }
}

#if defined(__x86_64__)
const Sha256Blocks sha256_blocks_ni = has_sha() ? take_one : nullptr;
const Sha256TwoBlocks sha256_two_blocks_ni = has_sha() ? take_two : nullptr;
#else
const Sha256Blocks sha256_blocks_ni = nullptr;
const Sha256TwoBlocks sha256_two_blocks_ni = nullptr;
#endif

}  // namespace detail

bool has_sha256_instructions() { return detail::sha256_blocks_ni != nullptr; }

void Sha256::add(Span bytes) {
  num_bytes_ += bytes.size;
  fill(bytes);
  add_blocks(bytes, bytes.size / kBlockBytes);
  keep(bytes);
}

void Sha256::add_two(Sha256& one, Span bytes, Sha256& other, Span other_bytes) {
  one.num_bytes_ += bytes.size;
  other.num_bytes_ += other_bytes.size;
  one.fill(bytes);
  other.fill(other_bytes);
  const size_t num_blocks = std::min(bytes.size, other_bytes.size) / kBlockBytes;
  if (detail::sha256_two_blocks_ni != nullptr && num_blocks != 0) {
    detail::sha256_two_blocks_ni(one.state_, bytes.data, other.state_, other_bytes.data, num_blocks);
    bytes = {bytes.data + num_blocks * kBlockBytes, bytes.size - num_blocks * kBlockBytes};
    other_bytes = {other_bytes.data + num_blocks * kBlockBytes, other_bytes.size - num_blocks * kBlockBytes};
  }
  one.add_blocks(bytes, bytes.size / kBlockBytes);
  one.keep(bytes);
  other.add_blocks(other_bytes, other_bytes.size / kBlockBytes);
  other.keep(other_bytes);
}

void Sha256::fill(Span& bytes) {
  if (num_buffered_ == 0) return;
  const size_t count = std::min(kBlockBytes - num_buffered_, bytes.size);
  if (count != 0) std::memcpy(buffer_ + num_buffered_, bytes.data, count);
  num_buffered_ += count;
  bytes = {bytes.data + count, bytes.size - count};
  if (num_buffered_ != kBlockBytes) return;
  Span block{buffer_, kBlockBytes};
  add_blocks(block, 1);
  num_buffered_ = 0;
}

void Sha256::add_blocks(Span& bytes, size_t num_blocks) {
  if (num_blocks == 0) return;
  const detail::Sha256Blocks take =
      detail::sha256_blocks_ni != nullptr ? detail::sha256_blocks_ni : detail::sha256_blocks;
  take(state_, bytes.data, num_blocks);
  bytes = {bytes.data + num_blocks * kBlockBytes, bytes.size - num_blocks * kBlockBytes};
}

void Sha256::keep(Span bytes) {
  if (bytes.size == 0) return;
  std::memcpy(buffer_ + num_buffered_, bytes.data, bytes.size);
  num_buffered_ += bytes.size;
}

void Sha256::digest(uint8_t* out) const {
  Sha256 copy = *this;
  uint8_t end[2 * kBlockBytes] = {0x80};  // a one, zeros, and the number of bits
  const size_t num_zeros = (kBlockBytes + 55 - num_buffered_) % kBlockBytes;
  const uint64_t num_bits = __builtin_bswap64(num_bytes_ * 8);
  std::memcpy(end + 1 + num_zeros, &num_bits, sizeof num_bits);
  copy.add({end, 1 + num_zeros + sizeof num_bits});
  for (size_t i = 0; i < 8; i++) {
    const uint32_t word = __builtin_bswap32(copy.state_[i]);
    std::memcpy(out + 4 * i, &word, sizeof word);
  }
}

}  // namespace penstock
