// What to decode: the fields wanted, the layout of each in the output, and a table that finds a field by its key.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foundation/bytes.h"
#include "record/status.h"
#include "text/vocabulary.h"

namespace penstock {

// The layout of a field's values in the output.
enum class Layout : uint8_t {
  kScalar = 0,   // one number a row: a row of the matrix of its kind
  kFixed = 1,    // `count` numbers a row
  kList = 2,     // any number of numbers a row: values + row offsets
  kString = 3,   // one byte string a row: arena + offsets
  kStrings = 4,  // any number of byte strings a row: arena + value offsets + row offsets
  kRaw = 5,      // one byte string of `count` bytes a row, taken as an array
  kSteps = 6,    // a feature list: values + step offsets + row offsets (and value offsets, for byte strings)
  kCoded = 7,    // one byte string a row: its number in a vocabulary, or -1
};

struct FieldSpec {
  std::string key;
  Kind kind = Kind::kUnset;
  Layout layout = Layout::kScalar;
  int64_t count = -1;                 // values a row (a step, for kSteps; bytes, for kRaw); -1 for any number
  bool required = true;               // a record without the field is a fault
  std::vector<int64_t> default_ints;  // the default by kind
  std::vector<float> default_floats;
  std::vector<std::string> default_strings;
  std::vector<size_t> default_steps;             // of kSteps: how many of those values each step has
  std::shared_ptr<const Vocabulary> vocabulary;  // of kCoded
};

// Finds what to do with a map entry by its key. Keys that the plan does not want are learnt as they are met, so that
// they too are skipped at the first lookup.
class KeyTable {
 public:
  // What keeps the first 0 to 8 bytes of a word.
  static constexpr uint64_t kMasks[9] = {0,           0xff,        0xffff,     0xffffff, 0xffffffff,
                                         ~0ull >> 24, ~0ull >> 16, ~0ull >> 8, ~0ull};

  // What each unit of e below adds to the eight bytes after a key.
  static constexpr uint64_t kTailStep = 0x010001000100;

  // Longest key and longest entry that a single lookup of a slot can decide on.
  static constexpr size_t kLongestShortKey = 26;
  static constexpr size_t kLongestShortEntry = 127;

  // How a short entry with one key looks. With e the entry's length and k the key's, it is
  //     0a e   0a k KEY   12 e-k-4   KIND e-k-6   0a e-k-8   values
  // for a plain list of one piece, where all before the values is a function of e. Of an unwanted key, and of a feature
  // list, it ends behind e-k-4. That the value reaches to the end of the entry is part of it: no second key can follow.
  struct alignas(64) Slot {
    uint64_t first = 0, last = 0;  // the first and the last eight bytes of the key, or all of it in both
    uint8_t middle[16] = {};       // the bytes between them
    uint64_t tail = 0;             // the eight bytes after the key, less what e adds to them
    uint64_t tail_mask = 0;        // which of them count
    uint32_t field = 0;            // number in the plan; num_fields for an unwanted key
    uint8_t key_size = 0xff;       // 0xff: the key is too long for this
    uint8_t prefix_size = 0;       // where the values begin
  };

  // A short key in the form in which it is looked up and compared. Reads eight bytes past the key's end.
  struct ShortKey {
    uint64_t first, last;
    size_t size;

    ShortKey(const uint8_t* key, size_t key_size) : size(key_size) {
      const size_t part = size < 8 ? size : 8;
      first = load64(key) & kMasks[part];
      last = load64(key + (size - part)) & kMasks[part];
    }
  };

  // Number `field` is wanted under `key`; a plain entry holds a list of `kind`, or anything if that is unset.
  void add(const std::string& key, uint32_t field, Kind kind);

  // Chooses the hash so that the keys added so far do not collide. Call after the last add().
  void settle();

  static bool same_middle(const uint8_t* key, const Slot& slot);
  static uint64_t mix_middle(const uint8_t* key, size_t size);

  // Which parts of a key its hash is made of: as few as tell the keys apart.
  enum class Parts : uint8_t { kLast, kEnds, kAll };

  // What match() needs, in a form that a loop can keep in registers. Good until the next learn().
  struct View {
    const Slot* slots;
    const uint32_t* table;
    uint64_t multiplier;
    int shift;
    Parts parts;

    uint32_t hash(const uint8_t* key, const ShortKey& words) const {
      uint64_t mixed = words.last ^ words.size;
      if (PENSTOCK_UNLIKELY(parts != Parts::kLast)) {
        mixed ^= words.first * 0xd6e8feb86659fd93ull;
        if (parts == Parts::kAll && words.size > 16) mixed ^= mix_middle(key, words.size);
      }
      return static_cast<uint32_t>((mixed * multiplier) >> shift);
    }

    // The slot of a short entry, whose bytes begin at `entry`, if it looks as its slot says; else null.
    const Slot* match(const uint8_t* entry, size_t entry_size, size_t key_size) const {
      const uint8_t* const key = entry + 4;
      const ShortKey wanted(key, key_size);
      const Slot& slot = slots[table[hash(key, wanted)]];
      const uint64_t tail = slot.tail + entry_size * kTailStep;
      const uint64_t differs = (wanted.first ^ slot.first) | (wanted.last ^ slot.last) | (key_size ^ slot.key_size) |
                               ((load64(key + key_size) ^ tail) & slot.tail_mask);
      if (PENSTOCK_UNLIKELY(differs != 0 || slot.prefix_size > entry_size + 2)) return nullptr;
      if (key_size > 16 && !same_middle(key, slot)) return nullptr;
      return &slot;
    }
  };
  View view() const { return {slots_.data(), table_.data(), multiplier_, shift_, parts_}; }

  // The number of a slot, which stays the same.
  size_t index_of(const Slot& slot) const { return static_cast<size_t>(&slot - slots_.data()); }

  // The slot of exactly this key, or null.
  const Slot* find(const uint8_t* key, size_t size) const;

  // Notes an unwanted key, as `field`. Does nothing once many are known: data with a new key in each record must not
  // fill memory.
  void learn(const uint8_t* key, size_t size, uint32_t field);

 private:
  uint32_t hash(const uint8_t* key, size_t size) const { return view().hash(key, ShortKey(key, size)); }
  bool place_all();
  bool try_hashes(int bits);
  bool insert(uint32_t index);

  std::vector<Slot> slots_ = std::vector<Slot>(1);  // the first fits nothing: empty cells lead to it
  std::vector<std::string> keys_ = std::vector<std::string>(1);
  std::vector<uint32_t> table_ = std::vector<uint32_t>(2, 0);
  uint64_t multiplier_ = 0x9e3779b97f4a7c15ull;
  int shift_ = 63;
  Parts parts_ = Parts::kLast;
  size_t num_learnt_ = 0;
  size_t num_displaced_ = 0;  // learnt keys that did not get the slot of their hash
  size_t settle_at_ = 1;      // settle anew when there are so many
};

struct Plan {
  std::vector<FieldSpec> fields;
  KeyTable features;       // keys of an Example's features, of a SequenceExample's context
  KeyTable feature_lists;  // keys of a SequenceExample's feature lists
  bool has_lists = false;
  bool strict = false;

  explicit Plan(std::vector<FieldSpec> specs, bool strict_wire);
};

}  // namespace penstock
