// A cryptographic digest of 128 bits: BLAKE2b (RFC 7693) with an output of 16 bytes and no key. It decides which rows are
// equal and whether a file has changed, where the 64-bit hashes of hash.h can be made to collide on purpose.
#pragma once

#include <cstdint>
#include <cstring>

#include "bytes.h"

namespace penstock {

inline constexpr size_t kDigestBytes = 16;

// The bytes of a digest as two little-endian words.
struct Digest {
  uint64_t words[2] = {0, 0};

  bool operator==(const Digest& other) const { return words[0] == other.words[0] && words[1] == other.words[1]; }
  bool operator!=(const Digest& other) const { return !(*this == other); }
};

// Takes bytes in any number of pieces.
class Blake2b {
 public:
  Blake2b();

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

 private:
  static constexpr size_t kBlockBytes = 128;

  void add_long(Span bytes);
  void compress(const uint8_t* block, bool is_last);

  uint64_t state_[8];
  uint64_t num_bytes_ = 0;   // compressed so far
  size_t num_buffered_ = 0;  // a full buffer stays until more bytes come: the last block is marked
  uint8_t buffer_[kBlockBytes];
};

Digest digest_bytes(Span bytes);

}  // namespace penstock
