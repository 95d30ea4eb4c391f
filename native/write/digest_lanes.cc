#include "write/digest_lanes.h"

#include <algorithm>
#include <vector>

#include "foundation/cpu.h"
#include "write/blake2b_rounds.h"

namespace penstock {
namespace {

using blake2b::kStart;
using blake2b::mix_rounds;
using detail::LaneBlocks;

constexpr size_t kBlockBytes = Blake2b::kBlockBytes;
constexpr size_t kGroupBytes = 256 << 10;  // values that stay in the second-level cache while they are hashed

#if defined(__x86_64__)
typedef uint64_t FourLanes __attribute__((vector_size(32)));
typedef uint64_t EightLanes __attribute__((vector_size(64)));

__attribute__((always_inline)) inline void load_word(const LaneBlocks& blocks, size_t i, FourLanes& out) {
  const auto& p = blocks.data;
  out = FourLanes{load64(p[0] + i), load64(p[1] + i), load64(p[2] + i), load64(p[3] + i)};
}

__attribute__((always_inline)) inline void load_word(const LaneBlocks& blocks, size_t i, EightLanes& out) {
  const auto& p = blocks.data;
  out = EightLanes{load64(p[0] + i), load64(p[1] + i), load64(p[2] + i), load64(p[3] + i),
                   load64(p[4] + i), load64(p[5] + i), load64(p[6] + i), load64(p[7] + i)};
}

template <typename Lanes>
__attribute__((always_inline)) inline void compress(uint64_t* states, const LaneBlocks& blocks) {
  Lanes h[8], m[16], v[16], num_bytes, is_last, is_last_node;
  std::memcpy(h, states, sizeof h);
  std::memcpy(&num_bytes, blocks.num_bytes, sizeof num_bytes);
  std::memcpy(&is_last, blocks.is_last, sizeof is_last);
  std::memcpy(&is_last_node, blocks.is_last_node, sizeof is_last_node);
  for (size_t i = 0; i < 16; i++) load_word(blocks, 8 * i, m[i]);
  for (size_t i = 0; i < 8; i++) {
    v[i] = h[i];
    v[i + 8] = Lanes{} + kStart[i];
  }
  v[12] ^= num_bytes;
  v[14] ^= is_last;
  v[15] ^= is_last_node;
  mix_rounds(v, m);
  for (size_t i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
  std::memcpy(states, h, sizeof h);
}

PENSTOCK_AVX2 void compress_four(uint64_t* states, const LaneBlocks& blocks) { compress<FourLanes>(states, blocks); }

PENSTOCK_AVX512 void compress_eight(uint64_t* states, const LaneBlocks& blocks) {
  compress<EightLanes>(states, blocks);
}
#endif

// A message whose blocks lie `stride` bytes apart; the last one has `last_bytes`.
struct Message {
  const uint8_t* data;
  size_t num_blocks, last_bytes, stride;
  const uint64_t* start;  // eight words
  bool is_last_node;
  uint64_t* out;  // eight words
};

// Runs messages through the lanes: a lane whose message ends takes the next one.
class LaneRunner {
 public:
  LaneRunner(detail::CompressLanes compress, size_t num_lanes) : compress_(compress), num_lanes_(num_lanes) {}

  void run(const std::vector<Message>& messages) {
    const Message* next = messages.data();
    const Message* const end = next + messages.size();
    size_t num_busy = 0;
    for (size_t lane = 0; lane < num_lanes_; lane++) num_busy += take(lane, next, end);
    while (num_busy != 0) {
      for (size_t lane = 0; lane < num_lanes_; lane++) prepare(lane);
      compress_(states_, blocks_);
      for (size_t lane = 0; lane < num_lanes_; lane++) {
        if (messages_[lane] == nullptr) continue;
        blocks_.data[lane] += messages_[lane]->stride;
        if (--num_left_[lane] != 0) continue;
        for (size_t i = 0; i < 8; i++) messages_[lane]->out[i] = states_[num_lanes_ * i + lane];
        if (!take(lane, next, end)) num_busy--;
      }
    }
  }

 private:
  // Whether there was a message for the lane; an idle lane compresses blocks of zeros.
  bool take(size_t lane, const Message*& next, const Message* end) {
    const bool is_busy = next != end;
    messages_[lane] = is_busy ? next : nullptr;
    num_left_[lane] = is_busy ? next->num_blocks : 0;
    blocks_.data[lane] = is_busy ? next->data : kZeros;
    blocks_.num_bytes[lane] = blocks_.is_last[lane] = blocks_.is_last_node[lane] = 0;
    if (!is_busy) return false;
    for (size_t i = 0; i < 8; i++) states_[num_lanes_ * i + lane] = next->start[i];
    next++;
    return true;
  }

  void prepare(size_t lane) {
    const Message* const message = messages_[lane];
    if (message == nullptr) return;
    if (PENSTOCK_LIKELY(num_left_[lane] != 1)) {
      blocks_.num_bytes[lane] += kBlockBytes;
      return;
    }
    blocks_.num_bytes[lane] += message->last_bytes;
    blocks_.is_last[lane] = ~uint64_t{0};
    blocks_.is_last_node[lane] = message->is_last_node ? ~uint64_t{0} : 0;
    if (message->last_bytes == kBlockBytes) return;
    uint8_t* const tail = tails_[lane];
    if (message->last_bytes != 0) std::memcpy(tail, blocks_.data[lane], message->last_bytes);
    std::memset(tail + message->last_bytes, 0, kBlockBytes - message->last_bytes);
    blocks_.data[lane] = tail;
  }

  static constexpr size_t kMaxLanes = LaneBlocks::kMaxLanes;
  alignas(64) static constexpr uint8_t kZeros[kBlockBytes] = {};

  detail::CompressLanes compress_;
  size_t num_lanes_;
  alignas(64) uint64_t states_[8 * kMaxLanes] = {};
  LaneBlocks blocks_ = {};
  const Message* messages_[kMaxLanes] = {};
  size_t num_left_[kMaxLanes] = {};
  uint8_t tails_[kMaxLanes][kBlockBytes];
};

size_t num_lanes() {
  return detail::compress_lanes_avx512 != nullptr ? 8 : detail::compress_lanes_avx2 != nullptr ? 4 : 1;
}

void run_lanes(const std::vector<Message>& messages) {
  const bool is_wide = detail::compress_lanes_avx512 != nullptr;
  LaneRunner(is_wide ? detail::compress_lanes_avx512 : detail::compress_lanes_avx2, num_lanes()).run(messages);
}

// The digests of values from kTreeBytes on, by their leaves.
void digest_trees(const std::vector<Span>& values, const std::vector<size_t>& numbers, Digest* out) {
  const Blake2b starts[kNumLeaves] = {Blake2b(detail::leaf_node(0)), Blake2b(detail::leaf_node(1)),
                                      Blake2b(detail::leaf_node(2)), Blake2b(detail::leaf_node(3))};
  std::vector<uint64_t> states(values.size() * kNumLeaves * 8);
  std::vector<Message> messages;
  for (size_t i = 0; i < values.size(); i++) {
    for (size_t leaf = 0; leaf < kNumLeaves; leaf++) {
      const size_t stride = kNumLeaves * kBlockBytes, skipped = leaf * kBlockBytes;
      const size_t num_blocks = (values[i].size - skipped + stride - 1) / stride;
      const size_t last_at = skipped + (num_blocks - 1) * stride;
      const size_t last_bytes = std::min(kBlockBytes, values[i].size - last_at);
      messages.push_back({values[i].data + skipped, num_blocks, last_bytes, stride, starts[leaf].state(),
                          leaf == kNumLeaves - 1, states.data() + (i * kNumLeaves + leaf) * 8});
    }
  }
  run_lanes(messages);
  for (size_t i = 0; i < values.size(); i++) {
    Blake2b root(detail::root_node());
    for (size_t leaf = 0; leaf < kNumLeaves; leaf++) {
      root.add({reinterpret_cast<const uint8_t*>(states.data() + (i * kNumLeaves + leaf) * 8), 64});
    }
    out[numbers[i]] = root.finish();
  }
}

}  // namespace

namespace detail {

#if defined(__x86_64__)
const CompressLanes compress_lanes_avx2 = has_avx2() ? compress_four : nullptr;
const CompressLanes compress_lanes_avx512 = has_avx512() ? compress_eight : nullptr;
#else
const CompressLanes compress_lanes_avx2 = nullptr;
const CompressLanes compress_lanes_avx512 = nullptr;
#endif

}  // namespace detail

void digest_messages(const Span* messages, size_t count, Digest* out) {
  const size_t lanes = num_lanes();
  if (lanes == 1 || count < lanes / 2) {
    for (size_t i = 0; i < count; i++) {
      Blake2b digest;
      digest.add(messages[i]);
      out[i] = digest.finish();
    }
    return;
  }
  const Blake2b start;
  std::vector<uint64_t> states(count * 8);
  std::vector<Message> jobs;
  jobs.reserve(count);
  for (size_t i = 0; i < count; i++) {
    const Span message = messages[i];
    const size_t num_blocks = message.size == 0 ? 1 : (message.size + kBlockBytes - 1) / kBlockBytes;
    jobs.push_back({message.data, num_blocks, message.size - (num_blocks - 1) * kBlockBytes, kBlockBytes, start.state(),
                    false, states.data() + i * 8});
  }
  run_lanes(jobs);
  for (size_t i = 0; i < count; i++) out[i] = {{states[i * 8], states[i * 8 + 1]}};
}

void digest_values(const Span* values, size_t count, Digest* out) {
  if (num_lanes() == 1) {
    for (size_t i = 0; i < count; i++) out[i] = digest_bytes(values[i]);
    return;
  }
  std::vector<Span> group;
  std::vector<size_t> numbers;
  size_t num_bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (values[i].size < kTreeBytes) {
      out[i] = digest_bytes(values[i]);
      continue;
    }
    group.push_back(values[i]);
    numbers.push_back(i);
    num_bytes += values[i].size;
    if (num_bytes < kGroupBytes) continue;
    digest_trees(group, numbers, out);
    group.clear();
    numbers.clear();
    num_bytes = 0;
  }
  if (!group.empty()) digest_trees(group, numbers, out);
}

}  // namespace penstock
