#include "write/digest.h"

#include "foundation/cpu.h"

namespace penstock {
namespace {

constexpr uint64_t kStart[8] = {0x6a09e667f3bcc908ull, 0xbb67ae8584caa73bull, 0x3c6ef372fe94f82bull,
                                0xa54ff53a5f1d36f1ull, 0x510e527fade682d1ull, 0x9b05688c2b3e6c1full,
                                0x1f83d9abfb41bd6bull, 0x5be0cd19137e2179ull};

constexpr size_t kNumLeaves = 4;
constexpr size_t kStripeBytes = kNumLeaves * Blake2b::kBlockBytes;

// Which word of the block each half of a mixing step takes; rounds 10 and 11 repeat the first two.
constexpr uint8_t kOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

// One word, or the same word of four leaves.
typedef uint64_t Lanes __attribute__((vector_size(32)));

template <typename Word>
__attribute__((always_inline)) inline void rotate(Word& x, int count) {
  x = x >> count | x << (64 - count);
}

template <typename Word>
__attribute__((always_inline)) inline void mix_words(Word& a, Word& b, Word& c, Word& d, const Word& x, const Word& y) {
  a += b + x;
  d ^= a;
  rotate(d, 32);
  c += d;
  b ^= c;
  rotate(b, 24);
  a += b + y;
  d ^= a;
  rotate(d, 16);
  c += d;
  b ^= c;
  rotate(b, 63);
}

// With the round known at compile time the order is no table: a loop over rounds takes twice as long.
template <int kRound, typename Word>
__attribute__((always_inline)) inline void mix_round(Word (&v)[16], const Word (&m)[16]) {
  constexpr const uint8_t (&order)[16] = kOrder[kRound % 10];
  mix_words(v[0], v[4], v[8], v[12], m[order[0]], m[order[1]]);
  mix_words(v[1], v[5], v[9], v[13], m[order[2]], m[order[3]]);
  mix_words(v[2], v[6], v[10], v[14], m[order[4]], m[order[5]]);
  mix_words(v[3], v[7], v[11], v[15], m[order[6]], m[order[7]]);
  mix_words(v[0], v[5], v[10], v[15], m[order[8]], m[order[9]]);
  mix_words(v[1], v[6], v[11], v[12], m[order[10]], m[order[11]]);
  mix_words(v[2], v[7], v[8], v[13], m[order[12]], m[order[13]]);
  mix_words(v[3], v[4], v[9], v[14], m[order[14]], m[order[15]]);
}

template <typename Word>
__attribute__((always_inline)) inline void mix_rounds(Word (&v)[16], const Word (&m)[16]) {
  mix_round<0>(v, m);
  mix_round<1>(v, m);
  mix_round<2>(v, m);
  mix_round<3>(v, m);
  mix_round<4>(v, m);
  mix_round<5>(v, m);
  mix_round<6>(v, m);
  mix_round<7>(v, m);
  mix_round<8>(v, m);
  mix_round<9>(v, m);
  mix_round<10>(v, m);
  mix_round<11>(v, m);
}

__attribute__((always_inline)) inline void compress_lanes(uint64_t* states, const uint8_t* p, size_t num_stripes) {
  Lanes h[8];
  std::memcpy(h, states, sizeof h);
  uint64_t num_bytes = 0;  // that each leaf has taken
  for (size_t stripe = 0; stripe < num_stripes; stripe++, p += kStripeBytes) {
    num_bytes += Blake2b::kBlockBytes;
    Lanes m[16], v[16];
    for (size_t i = 0; i < 16; i++) {
      m[i] = Lanes{load64(p + 8 * i), load64(p + 128 + 8 * i), load64(p + 256 + 8 * i), load64(p + 384 + 8 * i)};
    }
    for (size_t i = 0; i < 8; i++) {
      v[i] = h[i];
      v[i + 8] = Lanes{kStart[i], kStart[i], kStart[i], kStart[i]};
    }
    v[12] ^= Lanes{num_bytes, num_bytes, num_bytes, num_bytes};
    mix_rounds(v, m);
    for (size_t i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
  }
  std::memcpy(states, h, sizeof h);
}

#if defined(__x86_64__)
PENSTOCK_AVX2 void compress_with_avx2(uint64_t* states, const uint8_t* stripes, size_t num_stripes) {
  compress_lanes(states, stripes, num_stripes);
}
#endif

Digest digest_tree(Span bytes) {
  const detail::CompressStripes compress =
      detail::compress_stripes_avx2 != nullptr ? detail::compress_stripes_avx2 : detail::compress_stripes;
  // The last block of a leaf is marked: two stripes at most are left to the leaves by themselves.
  const size_t num_stripes = (bytes.size - 1) / kStripeBytes - 1;
  const auto leaf_of = [](size_t i) {
    Blake2bNode node;
    node.output_bytes = 64;
    node.fanout = kNumLeaves;
    node.depth = 2;
    node.inner_bytes = 64;
    node.offset = i;
    return node;
  };
  uint64_t states[8 * kNumLeaves];
  for (size_t i = 0; i < kNumLeaves; i++) {
    const Blake2b leaf(leaf_of(i));
    for (size_t word = 0; word < 8; word++) states[kNumLeaves * word + i] = leaf.state()[word];
  }
  compress(states, bytes.data, num_stripes);
  Blake2bNode top;
  top.fanout = kNumLeaves;
  top.depth = 2;
  top.node_depth = 1;
  top.inner_bytes = 64;
  top.is_last = true;
  Blake2b root(top);
  for (size_t i = 0; i < kNumLeaves; i++) {
    uint64_t state[8];
    for (size_t word = 0; word < 8; word++) state[word] = states[kNumLeaves * word + i];
    Blake2b leaf(state, num_stripes * Blake2b::kBlockBytes, i == kNumLeaves - 1);
    for (size_t at = num_stripes * kStripeBytes + i * Blake2b::kBlockBytes; at < bytes.size; at += kStripeBytes) {
      const size_t left = bytes.size - at;
      leaf.add({bytes.data + at, left < Blake2b::kBlockBytes ? left : Blake2b::kBlockBytes});
    }
    leaf.finish();
    root.add({reinterpret_cast<const uint8_t*>(leaf.state()), 64});
  }
  return root.finish();
}

}  // namespace

namespace detail {

void compress_stripes(uint64_t* states, const uint8_t* stripes, size_t num_stripes) {
  compress_lanes(states, stripes, num_stripes);
}

#if defined(__x86_64__)
const CompressStripes compress_stripes_avx2 = has_avx2() ? compress_with_avx2 : nullptr;
#else
const CompressStripes compress_stripes_avx2 = nullptr;
#endif

}  // namespace detail

Blake2b::Blake2b(const Blake2bNode& node) : is_last_node_(node.is_last) {
  std::memcpy(state_, kStart, sizeof state_);
  // The parameter block: no key, leaves of any length.
  state_[0] ^= node.output_bytes | static_cast<uint64_t>(node.fanout) << 16 | static_cast<uint64_t>(node.depth) << 24;
  state_[1] ^= node.offset;
  state_[2] ^= node.node_depth | static_cast<uint64_t>(node.inner_bytes) << 8;
}

void Blake2b::compress(const uint8_t* block, bool is_last) {
  uint64_t m[16], v[16];
  std::memcpy(m, block, sizeof m);
  std::memcpy(v, state_, sizeof state_);
  std::memcpy(v + 8, kStart, sizeof kStart);
  v[12] ^= num_bytes_;
  if (is_last) v[14] = ~v[14];
  if (is_last && is_last_node_) v[15] = ~v[15];
  mix_rounds(v, m);
  for (int i = 0; i < 8; i++) state_[i] ^= v[i] ^ v[i + 8];
}

void Blake2b::add_long(Span bytes) {
  const size_t room = kBlockBytes - num_buffered_;
  const uint8_t* p = bytes.data;
  size_t left = bytes.size;
  if (num_buffered_ != 0) {
    std::memcpy(buffer_ + num_buffered_, p, room);
    num_bytes_ += kBlockBytes;
    compress(buffer_, false);
    p += room;
    left -= room;
  }
  for (; left > kBlockBytes; left -= kBlockBytes, p += kBlockBytes) {
    num_bytes_ += kBlockBytes;
    compress(p, false);
  }
  std::memcpy(buffer_, p, left);
  num_buffered_ = left;
}

Digest Blake2b::finish() {
  std::memset(buffer_ + num_buffered_, 0, kBlockBytes - num_buffered_);
  num_bytes_ += num_buffered_;
  compress(buffer_, true);
  return {{state_[0], state_[1]}};
}

Digest digest_bytes(Span bytes) {
  if (bytes.size >= kTreeBytes) return digest_tree(bytes);
  Blake2b digest;
  digest.add(bytes);
  return digest.finish();
}

}  // namespace penstock
