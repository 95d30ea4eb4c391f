#include "write/digest.h"

#include "foundation/cpu.h"
#include "write/blake2b_rounds.h"

namespace penstock {
namespace {

using blake2b::kStart;
using blake2b::mix_rounds;

constexpr size_t kStripeBytes = kNumLeaves * Blake2b::kBlockBytes;

// One word, or the same word of four leaves.
typedef uint64_t Lanes __attribute__((vector_size(32)));

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

// With an instruction that rotates, which takes three in AVX2.
PENSTOCK_AVX512 void compress_with_avx512(uint64_t* states, const uint8_t* stripes, size_t num_stripes) {
  compress_lanes(states, stripes, num_stripes);
}
#endif

detail::CompressStripes choose_compress() {
  if (detail::compress_stripes_avx512 != nullptr) return detail::compress_stripes_avx512;
  return detail::compress_stripes_avx2 != nullptr ? detail::compress_stripes_avx2 : detail::compress_stripes;
}

Digest digest_tree(Span bytes) {
  const detail::CompressStripes compress = choose_compress();
  // The last block of a leaf is marked: two stripes at most are left to the leaves by themselves.
  const size_t num_stripes = (bytes.size - 1) / kStripeBytes - 1;
  uint64_t states[8 * kNumLeaves];
  for (size_t i = 0; i < kNumLeaves; i++) {
    const Blake2b leaf(detail::leaf_node(i));
    for (size_t word = 0; word < 8; word++) states[kNumLeaves * word + i] = leaf.state()[word];
  }
  compress(states, bytes.data, num_stripes);
  Blake2b root(detail::root_node());
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

Blake2bNode leaf_node(size_t number) {
  Blake2bNode node;
  node.output_bytes = 64;
  node.fanout = kNumLeaves;
  node.depth = 2;
  node.inner_bytes = 64;
  node.offset = number;
  return node;
}

Blake2bNode root_node() {
  Blake2bNode node;
  node.fanout = kNumLeaves;
  node.depth = 2;
  node.node_depth = 1;
  node.inner_bytes = 64;
  node.is_last = true;
  return node;
}

void compress_stripes(uint64_t* states, const uint8_t* stripes, size_t num_stripes) {
  compress_lanes(states, stripes, num_stripes);
}

#if defined(__x86_64__)
const CompressStripes compress_stripes_avx2 = has_avx2() ? compress_with_avx2 : nullptr;
const CompressStripes compress_stripes_avx512 = has_avx512() ? compress_with_avx512 : nullptr;
#else
const CompressStripes compress_stripes_avx2 = nullptr;
const CompressStripes compress_stripes_avx512 = nullptr;
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
