// Byte strings and integers that are known beforehand, each with its number: what makes codes of values. Looking up
// changes nothing and takes any number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/bytes.h"

namespace penstock {

// The secret key of hashes of values. With it, one could write values that all fall into one slot.
struct Seeds {
  uint64_t first = 0, second = 0;

  static Seeds draw();
  // Both halves of a 128-bit product, folded into one; a secret is in both factors.
  uint64_t fold(uint64_t a, uint64_t b) const noexcept { return multiply(a ^ first, b ^ second); }
  static uint64_t multiply(uint64_t a, uint64_t b) noexcept {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
};

class Vocabulary {
 public:
  static constexpr size_t kMostValues = size_t{1} << 30;
  static constexpr size_t kMostSmall = 512;  // values of a vocabulary that stays in the processor's first caches
  static constexpr size_t kShort = 16;  // strings of up to this many bytes are stored in the table itself, as two words

  Vocabulary();
  // Numbers the values in their order. Throws std::invalid_argument if one is there twice.
  explicit Vocabulary(const std::vector<std::string>& values);

  // The number of a value, or -1. Nothing is read past its end.
  int32_t find(Span value) const noexcept {
    if (PENSTOCK_UNLIKELY(value.size > kShort)) return find_long(value, hash_long(value));
    const Words words = load_short(value);
    return find_short(words.low, words.high, value.size, hash_short(words.low, words.high));
  }

  // The same where kShort bytes past the end of the value may be read, also of an empty one.
  int32_t find_padded(Span value) const noexcept {
    if (PENSTOCK_UNLIKELY(value.size > kShort)) return find_long(value, hash_long(value));
    const Words& mask = kMasks.of[value.size];
    const uint64_t low = load64(value.data) & mask.low, high = load64(value.data + 8) & mask.high;
    return find_short(low, high, value.size, hash_short(low, high));
  }

  // A lookup in three steps; each step prefetches the memory that the next one needs: many values are looked up step
  // by step, so that they wait for memory together. For values as find_padded() takes them; pays where the vocabulary
  // is larger than the processor's cache.
  class Lookup {
   public:
    __attribute__((always_inline)) void begin(const Vocabulary& words, Span value) noexcept {
      value_ = value;
      if (PENSTOCK_UNLIKELY(value.size > kShort)) {
        hash_ = words.hash_long(value);
      } else {
        const Words& mask = kMasks.of[value.size];
        low_ = load64(value.data) & mask.low;
        high_ = load64(value.data + 8) & mask.high;
        hash_ = words.hash_short(low_, high_);
      }
      __builtin_prefetch(words.slots_.data() + (static_cast<uint32_t>(hash_) & words.mask_));
    }
    __attribute__((always_inline)) void touch(const Vocabulary& words) const noexcept {
      const uint32_t found = words.slots_.data()[static_cast<uint32_t>(hash_) & words.mask_] & words.mask_;
      __builtin_prefetch(words.entries_.data() + found - (found != 0));
    }
    int32_t end(const Vocabulary& words) const noexcept {
      if (PENSTOCK_UNLIKELY(value_.size > kShort)) return words.find_long(value_, hash_);
      return words.find_short(low_, high_, value_.size, hash_);
    }

   private:
    Span value_;
    uint64_t low_, high_, hash_;
  };
  bool is_large() const noexcept { return entries_.size() > kMostSmall; }

  size_t size() const noexcept { return entries_.size(); }
  // Stays where it is until the next add().
  Span value(size_t number) const noexcept {
    const Entry& entry = entries_[number];
    if (entry.size <= kShort) return Span{reinterpret_cast<const uint8_t*>(&entry), static_cast<size_t>(entry.size)};
    return Span{arena_.data() + entry.high, static_cast<size_t>(entry.size)};
  }

  // The number of a value, which is the last one if it is new. Throws std::length_error beyond kMostValues.
  int32_t add(Span value);
  void reserve(size_t num_values);

  // The largest distance of a value from the slot of its hash.
  size_t longest_probe() const noexcept { return longest_; }

 private:
  struct Words {
    uint64_t low, high;
  };
  // A short string padded with zeros; of a long one its hash, and where it begins in the arena.
  struct Entry {
    uint64_t low, high, size;
  };
  struct Masks {
    Words of[kShort + 1] = {};
    constexpr Masks() {
      for (size_t size = 0; size <= kShort; size++) {
        of[size].low = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
        of[size].high = size >= 16 ? ~uint64_t{0} : size <= 8 ? 0 : (uint64_t{1} << (8 * (size - 8))) - 1;
      }
    }
  };
  static const Masks kMasks;

  // Up to 16 bytes as two words padded with zeros; by loads that overlap rather than by a call.
  static Words load_short(Span value) noexcept {
    const uint8_t* const p = value.data;
    const size_t size = value.size;
    if (size >= 8) return {load64(p), size == 8 ? 0 : load64(p + size - 8) >> (8 * (16 - size))};
    if (size >= 4) return {load32(p) | static_cast<uint64_t>(load32(p + size - 4)) << (8 * (size - 4)), 0};
    if (size == 0) return {0, 0};
    const size_t middle = size / 2, last = size - 1;
    return {p[0] | static_cast<uint64_t>(p[middle]) << (8 * middle) | static_cast<uint64_t>(p[last]) << (8 * last), 0};
  }

  // "a" and "a\0" are the same words; there are no more than 17 such.
  uint64_t hash_short(uint64_t low, uint64_t high) const noexcept { return seeds_.fold(low, high); }
  uint64_t hash_long(Span value) const noexcept;

  // Visits the slots from the slot of a hash on; calls `is_same` with the numbers that may be the right one. Returns
  // that number, or -1; `at` is then the empty slot.
  template <typename Same>
  int32_t probe(uint64_t hash, uint32_t& at, const Same& is_same) const noexcept {
    const uint32_t mask = mask_, tag = static_cast<uint32_t>(hash >> 32) & ~mask;
    const uint32_t* const slots = slots_.data();  // no bounds check: the mask keeps `at` below the number of slots
    for (at = static_cast<uint32_t>(hash) & mask;; at = (at + 1) & mask) {
      const uint32_t slot = slots[at];
      if (slot == 0) return -1;
      if ((slot & ~mask) == tag && is_same((slot & mask) - 1)) return static_cast<int32_t>((slot & mask) - 1);
    }
  }
  int32_t find_short(uint64_t low, uint64_t high, uint64_t size, uint64_t hash) const noexcept {
    uint32_t at;
    return probe(hash, at, [&](uint32_t number) {
      const Entry& entry = entries_.data()[number];  // no bounds check: slots hold numbers of entries alone
      return entry.low == low && entry.high == high && entry.size == size;
    });
  }
  int32_t find_long(Span value, uint64_t hash) const noexcept;
  bool is_long_value(uint32_t number, uint64_t hash, Span value) const noexcept;

  void place_all(size_t num_slots);
  void rebuild(size_t num_slots);

  Seeds seeds_ = Seeds::draw();
  uint32_t mask_ = 0;
  size_t longest_ = 0;
  int reseeds_left_ = 16;
  // At most half full: the number of a value plus one in the bits of the mask, bits of its hash above; 0 is empty.
  std::vector<uint32_t> slots_;
  std::vector<Entry> entries_;  // by number: those that occur most are first, and share few cache lines
  std::vector<uint8_t> arena_;  // the long strings
};

inline constexpr Vocabulary::Masks Vocabulary::kMasks;

// The same for integers.
class IntVocabulary {
 public:
  // Throws std::invalid_argument if a value is there twice.
  IntVocabulary(const int64_t* values, size_t count);

  int32_t find(int64_t value) const noexcept {
    const Slot* const slots = slots_.data();  // no bounds check: the mask keeps `at` below the number of slots
    for (uint32_t at = place_of(value);; at = (at + 1) & mask_) {
      const Slot& slot = slots[at];
      if (slot.number < 0 || slot.value == value) return slot.number;
    }
  }
  size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    int64_t value = 0;
    int32_t number = -1;
  };
  uint32_t place_of(int64_t value) const noexcept {
    return static_cast<uint32_t>(seeds_.fold(static_cast<uint64_t>(value), 0)) & mask_;
  }

  Seeds seeds_;
  uint32_t mask_;
  size_t size_;
  std::vector<Slot> slots_;
};

}  // namespace penstock
