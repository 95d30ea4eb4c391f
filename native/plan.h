// What to decode: the fields wanted, how each lies in the output, and a table that finds a field by its key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bytes.h"
#include "simd.h"
#include "status.h"

namespace penstock {

// How a field's values lie in the output.
enum class Layout : uint8_t {
  kScalar = 0,   // one number a row: a row of the matrix of its kind
  kFixed = 1,    // `count` numbers a row
  kList = 2,     // any number of numbers a row: values + row offsets
  kString = 3,   // one byte string a row: arena + offsets
  kStrings = 4,  // any number of byte strings a row: arena + value offsets + row offsets
  kRaw = 5,      // one byte string of `count` bytes a row, taken as an array
  kSteps = 6,    // a feature list: values + step offsets + row offsets (and value offsets, for byte strings)
};

struct FieldSpec {
  std::string key;
  Kind kind = Kind::kUnset;
  Layout layout = Layout::kScalar;
  int64_t count = -1;     // values a row (a step, for kSteps; bytes, for kRaw); -1 for any number
  bool required = true;   // a record without the field is a fault
  bool has_default = false;
  std::vector<int64_t> default_ints;         // the default by kind
  std::vector<float> default_floats;
  std::vector<std::string> default_strings;
};

// Finds what to do with a map entry by its key. Keys that the plan does not want are learnt as they are met, so that
// they too are passed over at the first look.
class KeyTable {
 public:
  static constexpr int32_t kUnwanted = -1;
  static constexpr size_t kLongestPrefixKey = 26;

  struct Slot {
    Prefix prefix;            // how a short entry with this key begins
    uint8_t prefix_size = 0;  // 0: the key is too long for a prefix
    int32_t field = kUnwanted;
    std::string key;
  };

  // Number `field` is wanted under `key`, and a plain entry holds a list of `kind`.
  void add(const std::string& key, int32_t field, Kind kind);

  // Chooses the hash so that the keys added so far do not collide. Call after the last add().
  void settle();

  // The first candidate for the key: right in all but odd cases, and the caller compares. Null if there is none.
  // Reads up to 16 bytes at `key`.
  const Slot* guess(const uint8_t* key, size_t size) const {
    const int32_t index = table_[hash(key, size)];
    return index < 0 ? nullptr : &slots_[static_cast<size_t>(index)];
  }

  // The slot of exactly this key, or null.
  const Slot* find(const uint8_t* key, size_t size) const;

  // Notes an unwanted key. Does nothing once many are known: data with a new key in each record must not fill memory.
  void learn(const uint8_t* key, size_t size);

 private:
  uint32_t hash(const uint8_t* key, size_t size) const {
    const size_t part = size < 8 ? size : 8;
    const uint64_t mask = size ? ~0ull >> (64 - 8 * part) : 0;
    const uint64_t first = load64(key) & mask;
    const uint64_t last = load64(key + (size > 8 ? size - 8 : 0)) & mask;
    const uint64_t mixed = first ^ ((last << 23 | last >> 41) * 0xd6e8feb86659fd93ull) ^ size;
    return static_cast<uint32_t>((mixed * multiplier_) >> shift_);
  }
  bool place_all();
  void insert(int32_t index);

  std::vector<Slot> slots_;
  std::vector<int32_t> table_ = std::vector<int32_t>(2, -1);
  uint64_t multiplier_ = 0x9e3779b97f4a7c15ull;
  int shift_ = 63;
  size_t num_learnt_ = 0;
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
