#include "decode/key_order.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

// A record with many misses counts as much as this many good ones.
constexpr uint32_t kDistrust = 8;
constexpr uint32_t kMostDistrust = 3 * kDistrust;
constexpr uint32_t kMostRestarts = 3;
constexpr uint32_t kIgnoredRecords = 2048;

constexpr size_t kAnySize = 127;  // of an entry: the bytes that depend on it are computed for this one

KeyOrder::Expected expect(const KeyTable::Slot& slot) {
  KeyOrder::Expected out;
  const size_t key_size = slot.key_size, prefix_size = slot.prefix_size;
  uint8_t bytes[64] = {0x0a, 0, 0x0a, slot.key_size};
  uint8_t steps[64] = {};
  uint8_t* const key = bytes + 4;
  std::memcpy(key, &slot.first, 8);
  if (key_size > 16) std::memcpy(key + 8, slot.middle, key_size - 16);
  if (key_size > 8) std::memcpy(key + key_size - 8, &slot.last, 8);
  const uint64_t tail = slot.tail + kAnySize * KeyTable::kTailStep;
  std::memcpy(key + key_size, &tail, 8);
  std::memcpy(steps + 4 + key_size, &KeyTable::kTailStep, 8);
  bytes[1] = kAnySize;
  steps[1] = 1;
  out.head = load64(bytes) & ~uint64_t{0xff00};
  out.head_mask = ~uint64_t{0x7f00};
  out.tail_step = load64(steps + prefix_size - 8);
  out.tail = load64(bytes + prefix_size - 8) - kAnySize * out.tail_step;
  out.field = slot.field;
  out.prefix_size = slot.prefix_size;
  if (prefix_size > 16) {
    out.middle_size = static_cast<uint8_t>(prefix_size - 16);
    std::memcpy(out.middle, bytes + 8, out.middle_size);
  }
  return out;
}

}  // namespace

const KeyOrder::Expected* KeyOrder::move_after(const KeyTable& table, const KeyTable::Slot& slot, const Expected* at) {
  const size_t index = table.index_of(slot);
  if (next_.size() <= index) next_.resize(index + 1, 0);
  if (next_[index] != 0) return expected_.data() + next_[index];
  if (slot.prefix_size < 8) return at;  // its head and its tail would overlap other bytes
  const auto here = static_cast<uint32_t>(at - expected_.data());
  expected_.insert(expected_.begin() + here, expect(slot));
  for (uint32_t& next : next_) next += next > here;
  next_[index] = here + 1;
  has_grown_ = true;
  return expected_.data() + here + 1;
}

void KeyOrder::count_misses(size_t num_matched, size_t num_missed) {
  if (has_grown_) {
    has_grown_ = false;
    return;
  }
  if (4 * num_missed <= num_matched + num_missed) {
    distrust_ -= distrust_ != 0;
    return;
  }
  distrust_ += kDistrust;
  if (distrust_ < kMostDistrust) return;
  // Perhaps the first record was unlike the others: learn the order anew, but not again and again.
  expected_.assign(1, Expected{});
  std::fill(next_.begin(), next_.end(), 0);
  distrust_ = 0;
  if (++num_restarts_ < kMostRestarts) return;
  num_restarts_ = 0;
  num_ignored_ = kIgnoredRecords;
}

}  // namespace penstock
