// The order of keys in the records so far. Most writers write the same keys in the same order, so that an entry need
// only be compared with the one that is expected next; no key is looked up.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/plan.h"
#include "foundation/bytes.h"

namespace penstock {

class KeyOrder {
 public:
  // All bytes of a short entry before its values (see KeyTable::Slot), with e as the length of the entry. The default
  // matches nothing: an entry of zeros is shorter than its prefix.
  struct alignas(64) Expected {
    uint64_t head = 0;                  // the first eight bytes, with e as zero
    uint64_t head_mask = ~uint64_t{0};  // which of their bits count: all but the bits of e, except its highest
    uint64_t tail = 0;                  // the last eight bytes, less what e adds to them
    uint64_t tail_step = 0;             // what each unit of e adds to them
    uint32_t field = 0;
    uint8_t prefix_size = 8;
    uint8_t middle_size = 0;
    uint8_t middle[24] = {};  // the bytes between head and tail, if any

    // Whether these bytes begin the entry at p. `first` is its first eight bytes, `entry_size` is e.
    bool matches(const uint8_t* p, uint64_t first, size_t entry_size) const {
      const uint64_t last = load64(p + prefix_size - 8);
      const uint64_t differs = ((first ^ head) & head_mask) | (last ^ (tail + entry_size * tail_step));
      if (PENSTOCK_UNLIKELY(differs != 0 || prefix_size > entry_size + 2)) return false;
      return middle_size == 0 || same_middle(p + 8);
    }

   private:
    bool same_middle(const uint8_t* p) const {
      uint64_t differs = 0;
      size_t at = 0;
      for (; at + 8 < middle_size; at += 8) differs |= load64(p + at) ^ load64(middle + at);
      differs |= (load64(p + at) ^ load64(middle + at)) & KeyTable::kMasks[middle_size - at];
      return differs == 0;
    }
  };

  // Whether recent records were in this order. If not, comparing costs more than it saves.
  bool is_reliable() const { return num_ignored_ == 0; }

  // The entry that is expected first; each is followed by the next, and the last by one that matches nothing.
  const Expected* begin() const { return expected_.data(); }

  // The entry that follows one with the key of `slot`, which was found at `at` in place of the expected one. A new key
  // is added there.
  const Expected* move_after(const KeyTable& table, const KeyTable::Slot& slot, const Expected* at);

  // After each record: how many of its entries were as expected, and how many had another known key.
  void count(size_t num_matched, size_t num_missed) {
    if (PENSTOCK_LIKELY(num_missed == 0 && distrust_ == 0)) return;
    count_misses(num_matched, num_missed);
  }
  // After each record that was read without the order.
  void count_ignored() { num_ignored_--; }

 private:
  void count_misses(size_t num_matched, size_t num_missed);

  std::vector<Expected> expected_ = std::vector<Expected>(1);
  std::vector<uint32_t> next_;  // by slot: index of the entry after it; 0 if the key is not in the order
  bool has_grown_ = false;      // in the current record
  uint32_t distrust_ = 0;
  uint32_t num_restarts_ = 0;
  uint32_t num_ignored_ = 0;  // records to be read before the order is tried again
};

}  // namespace penstock
