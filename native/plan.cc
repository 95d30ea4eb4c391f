#include "plan.h"

#include <utility>

namespace penstock {
namespace {

constexpr size_t kMostLearnt = 1024;
constexpr size_t kLongestLearnt = 64;
constexpr int kTriesPerSize = 64;
constexpr int kSmallestBits = 6;
constexpr int kLargestBits = 16;

// A short entry begins, with e its length and k the key's:  0a e  0a k KEY  12 e-k-4  and, where it holds a plain list of
// one piece,  KIND e-k-6  0a e-k-8.  All is fixed but e: the whole prefix is compared at once. That the value reaches to
// the end of the entry is part of it, so that no second key can follow.
void write_prefix(KeyTable::Slot& slot, Kind kind) {
  const size_t key_size = slot.key.size();
  const size_t size = key_size + (kind == Kind::kUnset ? 6 : 10);
  if (size > sizeof slot.prefix.fixed) return;
  size_t at = 0;
  const auto put = [&](size_t byte, bool relative) {
    slot.prefix.fixed[at] = static_cast<uint8_t>(byte);
    slot.prefix.relative[at] = relative ? 0xff : 0;
    slot.prefix.compared[at] = 0xff;
    at++;
  };
  put(0x0a, false);
  put(0, true);
  put(0x0a, false);
  put(key_size, false);
  for (char c : slot.key) put(static_cast<uint8_t>(c), false);
  put(0x12, false);
  put(0 - (key_size + 4), true);
  if (kind != Kind::kUnset) {
    put(static_cast<size_t>(kind) << 3 | 2, false);
    put(0 - (key_size + 6), true);
    put(0x0a, false);
    put(0 - (key_size + 8), true);
  }
  slot.prefix_size = static_cast<uint8_t>(size);
}

}  // namespace

void KeyTable::add(const std::string& key, int32_t field, Kind kind) {
  Slot slot;
  slot.key = key;
  slot.field = field;
  write_prefix(slot, kind);
  slots_.push_back(std::move(slot));
}

void KeyTable::insert(int32_t index) {
  const std::string& key = slots_[static_cast<size_t>(index)].key;
  // hash() reads 16 bytes whatever the key's length.
  uint8_t padded[kLongestLearnt + 16] = {};
  std::string copy;
  const uint8_t* bytes = padded;
  if (key.size() <= kLongestLearnt) {
    std::memcpy(padded, key.data(), key.size());
  } else {
    copy = key + std::string(16, '\0');
    bytes = reinterpret_cast<const uint8_t*>(copy.data());
  }
  uint32_t at = hash(bytes, key.size());
  const uint32_t mask = static_cast<uint32_t>(table_.size() - 1);
  while (table_[at] >= 0) at = (at + 1) & mask;
  table_[at] = index;
}

bool KeyTable::place_all() {
  std::fill(table_.begin(), table_.end(), -1);
  size_t collisions = 0;
  for (size_t i = 0; i < slots_.size(); i++) {
    insert(static_cast<int32_t>(i));
    uint8_t padded[kLongestLearnt + 16] = {};
    const std::string& key = slots_[i].key;
    if (key.size() > kLongestLearnt) continue;
    std::memcpy(padded, key.data(), key.size());
    collisions += table_[hash(padded, key.size())] != static_cast<int32_t>(i);
  }
  return collisions == 0;
}

void KeyTable::settle() {
  int bits = kSmallestBits;
  while ((size_t{1} << bits) < 4 * slots_.size()) bits++;
  for (const int most = bits + 3; bits <= most && bits <= kLargestBits; bits++) {
    table_.assign(size_t{1} << bits, -1);
    shift_ = 64 - bits;
    for (int i = 0; i < kTriesPerSize; i++) {
      if (place_all()) return;
      multiplier_ = (multiplier_ * 6364136223846793005ull + 1442695040888963407ull) | 1;
    }
  }
  // Keys alike in length, first and last eight bytes cannot be told apart by the hash: find() walks to the next slot.
  while ((size_t{1} << (64 - shift_)) < 4 * slots_.size()) shift_--;
  table_.assign(size_t{1} << (64 - shift_), -1);
  place_all();
}

const KeyTable::Slot* KeyTable::find(const uint8_t* key, size_t size) const {
  const uint32_t mask = static_cast<uint32_t>(table_.size() - 1);
  for (uint32_t at = hash(key, size);; at = (at + 1) & mask) {
    const int32_t index = table_[at];
    if (index < 0) return nullptr;
    const Slot& slot = slots_[static_cast<size_t>(index)];
    if (slot.key.size() == size && std::memcmp(slot.key.data(), key, size) == 0) return &slot;
  }
}

void KeyTable::learn(const uint8_t* key, size_t size) {
  if (num_learnt_ >= kMostLearnt || size > kLongestLearnt) return;
  num_learnt_++;
  add(std::string(reinterpret_cast<const char*>(key), size), kUnwanted, Kind::kUnset);
  if (table_.size() < 4 * slots_.size()) {
    settle();
  } else {
    insert(static_cast<int32_t>(slots_.size() - 1));
  }
}

Plan::Plan(std::vector<FieldSpec> specs, bool strict_wire) : fields(std::move(specs)), strict(strict_wire) {
  for (size_t i = 0; i < fields.size(); i++) {
    const FieldSpec& field = fields[i];
    const bool in_list = field.layout == Layout::kSteps;
    (in_list ? feature_lists : features).add(field.key, static_cast<int32_t>(i), in_list ? Kind::kUnset : field.kind);
    has_lists |= in_list;
  }
  features.settle();
  feature_lists.settle();
}

}  // namespace penstock
