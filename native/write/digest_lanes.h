// Digests of many byte strings at once: four or eight of them go through the rounds of BLAKE2b together, each in a lane
// of vectors. A digest is the same as one that is computed by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foundation/bytes.h"
#include "write/digest.h"

namespace penstock {

// The digest of each message, as Blake2b computes it.
void digest_messages(const Span* messages, size_t count, Digest* out);

// The digest of each value, as digest_bytes computes it.
void digest_values(const Span* values, size_t count, Digest* out);

namespace detail {

// One block of each lane: where it is, how many bytes the lane has taken with it, and whether it is the last one
// (all bits set, or none) of its message and of a message that is the last of its level in a tree.
struct LaneBlocks {
  static constexpr size_t kMaxLanes = 8;
  const uint8_t* data[kMaxLanes];
  uint64_t num_bytes[kMaxLanes], is_last[kMaxLanes], is_last_node[kMaxLanes];
};

// Compresses one block of each lane. Word i of lane j is states[num_lanes * i + j].
using CompressLanes = void (*)(uint64_t* states, const LaneBlocks& blocks);
extern const CompressLanes compress_lanes_avx2;    // four lanes; null where the processor lacks AVX2
extern const CompressLanes compress_lanes_avx512;  // eight lanes; null where the processor lacks AVX-512 F or VL

}  // namespace detail

}  // namespace penstock
