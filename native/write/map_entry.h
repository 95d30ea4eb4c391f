// One entry of a record's map of features: how large it is, and the bytes before its values.
#pragma once

#include <cstdint>
#include <string>

#include "foundation/bytes.h"

namespace penstock {

// The layout of a field's values in the input.
enum class Source : uint8_t {
  kInts = 0,      // int64
  kFloats = 1,    // float
  kStrings = 2,   // byte strings: arena, starts, stops
  kRaw = 3,       // one byte string of `count` bytes per row, contiguous
  kDeferred = 4,  // nothing but a hash: the value comes when the record is framed
};

inline constexpr size_t kShortPrefix = 48;   // longest that is copied whole, in vector moves
inline constexpr size_t kShortLength = 127;  // what a varint of one byte holds

inline constexpr uint8_t kFirstTag = 0x0a;   // field 1, length-delimited: an entry, its key, the values of a list
inline constexpr uint8_t kSecondTag = 0x12;  // field 2, length-delimited: the value of an entry

struct EncodeField {
  std::string key;
  Source source = Source::kInts;
  bool is_feature_list = false;
  uint8_t prefix[kShortPrefix] = {};  // of a short entry, with the lengths of an empty list in it

  EncodeField(std::string name, Source from, bool in_lists);

  // Tag of the list in its Feature: bytes_list, float_list or int64_list.
  uint8_t kind_tag() const;
  // The most payload with which an entry has lengths of one byte each; negative if its key does not fit `prefix`.
  int64_t longest_short_payload() const {
    return key.size() + 10 > kShortPrefix ? -1 : static_cast<int64_t>(kShortLength - 8 - key.size());
  }
};

// Nine sixty-fourths are a seventh, nearly enough for 64 bits.
inline size_t varint_size(uint64_t value) {
  return static_cast<size_t>((63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

inline uint8_t* put_varint(uint8_t* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<uint8_t>(value | 0x80);
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// The same without a branch for values below 2^28, whose length is hard to foresee; writes eight bytes.
inline uint8_t* put_varint_wide(uint8_t* out, uint64_t value) {
  if (PENSTOCK_UNLIKELY(value >= uint64_t{1} << 28)) return put_varint(out, value);
  const size_t size = varint_size(value);
  const uint64_t spread = (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 | (value & 0xfe00000) << 3;
  const uint64_t bytes = spread | (0x80808080ull & ((uint64_t{1} << (8 * (size - 1))) - 1));
  std::memcpy(out, &bytes, 8);
  return out + size;
}

// A length-delimited field: its size, and its tag and length.
inline size_t tagged_size(size_t inner) { return 1 + varint_size(inner) + inner; }

inline uint8_t* put_tagged(uint8_t* out, uint8_t tag, size_t length) {
  *out++ = tag;
  return put_varint(out, length);
}

// A map entry whose value, a Feature or a FeatureList, takes `value` bytes.
inline size_t entry_size(const EncodeField& field, size_t value) {
  return tagged_size(tagged_size(field.key.size()) + tagged_size(value));
}

// A map entry with one list of one piece: packed numbers, or one byte string, of `payload` bytes.
inline size_t plain_entry_size(const EncodeField& field, size_t payload) {
  if (PENSTOCK_LIKELY(static_cast<int64_t>(payload) <= field.longest_short_payload())) {
    return field.key.size() + 10 + payload;
  }
  return entry_size(field, tagged_size(tagged_size(payload)));
}

// Writes what comes before the value of an entry; returns where the value goes.
uint8_t* put_entry(uint8_t* out, const EncodeField& field, size_t value);

// Writes what comes before the payload of a plain entry whose lengths may take several bytes.
uint8_t* put_long_entry(uint8_t* out, const EncodeField& field, size_t payload);

// Writes what comes before the payloads of plain entries of one field. A copy of the field's prefix: bytes that are
// written cannot be part of it, so that a loop may keep it in registers.
class PlainEntry {
 public:
  explicit PlainEntry(const EncodeField& field)
      : field_(field), key_(field.key.size()), longest_(field.longest_short_payload()) {
    std::memcpy(words_, field.prefix, kShortPrefix);
  }

  // Returns where the payload goes. Bytes up to out + kShortPrefix are overwritten, unless `end` is nearer than that.
  uint8_t* put(uint8_t* out, const uint8_t* end, size_t payload) const {
    if (PENSTOCK_UNLIKELY(static_cast<int64_t>(payload) > longest_)) return put_long_entry(out, field_, payload);
    if (PENSTOCK_LIKELY(end - out >= static_cast<ptrdiff_t>(kShortPrefix))) {
      std::memcpy(out, words_, 32);
      if (key_ > 22) std::memcpy(out + 32, words_ + 4, kShortPrefix - 32);
    } else {
      std::memcpy(out, words_, key_ + 10);
    }
    const auto size = static_cast<uint8_t>(payload);
    out[1] = static_cast<uint8_t>(key_ + 8 + payload);
    uint8_t* const behind = out + key_;
    behind[5] = static_cast<uint8_t>(size + 4);
    behind[7] = static_cast<uint8_t>(size + 2);
    behind[9] = size;
    return behind + 10;
  }

 private:
  const EncodeField& field_;
  const size_t key_;
  const int64_t longest_;
  uint64_t words_[kShortPrefix / 8];
};

}  // namespace penstock
