// A cryptographic digest of 128 bits: BLAKE2b (RFC 7693) with an output of 16 bytes and no key. It decides which rows
// are equal and whether a file has changed, where the 64-bit hashes of hash.h can be made to collide on purpose.
#pragma once

#include <cstdint>
#include <cstring>

#include "foundation/bytes.h"

namespace penstock {

inline constexpr size_t kDigestBytes = 16;

// The bytes of a digest as two little-endian words.
struct Digest {
  uint64_t words[2] = {0, 0};

  bool operator==(const Digest& other) const { return words[0] == other.words[0] && words[1] == other.words[1]; }
  bool operator!=(const Digest& other) const { return !(*this == other); }
};

// The position of a hash in a tree of hashes: the defaults are for a single hash.
struct Blake2bNode {
  uint8_t output_bytes = kDigestBytes, fanout = 1, depth = 1, node_depth = 0, inner_bytes = 0;
  uint64_t offset = 0;
  bool is_last = false;  // of its level
};

// Takes bytes in any number of pieces.
class Blake2b {
 public:
  static constexpr size_t kBlockBytes = 128;

  Blake2b() : Blake2b(Blake2bNode{}) {}
  explicit Blake2b(const Blake2bNode& node);

  // One that has taken whole blocks already, of `num_bytes` in all, and is in that state.
  Blake2b(const uint64_t (&state)[8], uint64_t num_bytes, bool is_last_node)
      : num_bytes_(num_bytes), is_last_node_(is_last_node) {
    std::memcpy(state_, state, sizeof state_);
  }

  void add(Span bytes) {
    if (bytes.size <= kBlockBytes - num_buffered_) {
      if (bytes.size != 0) std::memcpy(buffer_ + num_buffered_, bytes.data, bytes.size);
      num_buffered_ += bytes.size;
    } else {
      add_long(bytes);
    }
  }
  template <typename T>
  void add_value(T value) {
    add({reinterpret_cast<const uint8_t*>(&value), sizeof value});
  }
  // The digest of all bytes so far; nothing may be added after it.
  Digest finish();
  const uint64_t (&state() const)[8] { return state_; }

 private:
  void add_long(Span bytes);
  void compress(const uint8_t* block, bool is_last);

  uint64_t state_[8];
  uint64_t num_bytes_ = 0;  // compressed so far
  bool is_last_node_ = false;
  size_t num_buffered_ = 0;  // a full buffer stays until more bytes come: the last block is marked
  uint8_t buffer_[kBlockBytes];
};

// The digest of a byte string. From kTreeBytes on it is the digest of a tree: 128-byte blocks are dealt in turn to four
// leaves, whose digests of 64 bytes are hashed by the root. Four independent hashes are computed in the time of two or
// less.
inline constexpr size_t kTreeBytes = 4096;
inline constexpr size_t kNumLeaves = 4;
Digest digest_bytes(Span bytes);

namespace detail {

// The positions of a leaf and of the root in that tree.
Blake2bNode leaf_node(size_t number);
Blake2bNode root_node();

// Four states, word by word: word i of leaf j is states[4 * i + j].
// Compresses `num_stripes` times one block of each leaf; none of them is a last one.
using CompressStripes = void (*)(uint64_t* states, const uint8_t* stripes, size_t num_stripes);
void compress_stripes(uint64_t* states, const uint8_t* stripes, size_t num_stripes);
extern const CompressStripes compress_stripes_avx2;    // null where the processor lacks AVX2
extern const CompressStripes compress_stripes_avx512;  // null where the processor lacks AVX-512 F or VL

}  // namespace detail

}  // namespace penstock
