// SHA-256 (FIPS 180-4), of one stream of bytes or of two at once. The instructions of x86 for it have a long latency:
// two streams that do not depend on each other take about the time of one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foundation/bytes.h"

namespace penstock {

class Sha256 {
 public:
  static constexpr size_t kBlockBytes = 64, kDigestBytes = 32;

  // Takes more bytes.
  void add(Span bytes);
  // Takes more bytes of two different streams.
  static void add_two(Sha256& one, Span bytes, Sha256& other, Span other_bytes);
  // The digest of all bytes so far; more can be added after it.
  void digest(uint8_t* out) const;

 private:
  // Completes and takes a block that is partly buffered; takes those bytes from `bytes`.
  void fill(Span& bytes);
  // Takes whole blocks.
  void add_blocks(Span& bytes, size_t num_blocks);
  // Keeps less than a block.
  void keep(Span bytes);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t num_bytes_ = 0;
  size_t num_buffered_ = 0;
  uint8_t buffer_[kBlockBytes] = {};
};

// Whether this processor has instructions for SHA-256. Without them, OpenSSL's versions for other vectors are faster.
bool has_sha256_instructions();

namespace detail {

// Takes `num_blocks` blocks of one stream.
using Sha256Blocks = void (*)(uint32_t* state, const uint8_t* blocks, size_t num_blocks);
// Takes as many blocks of each of two streams.
using Sha256TwoBlocks = void (*)(uint32_t* state, const uint8_t* blocks, uint32_t* other, const uint8_t* other_blocks,
                                 size_t num_blocks);
void sha256_blocks(uint32_t* state, const uint8_t* blocks, size_t num_blocks);
extern const Sha256Blocks sha256_blocks_ni;         // null where the processor lacks the SHA extensions
extern const Sha256TwoBlocks sha256_two_blocks_ni;  // null where the processor lacks the SHA extensions

}  // namespace detail

}  // namespace penstock
