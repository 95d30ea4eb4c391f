#include "decode/plan.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kMostLearnt = 1024;
constexpr size_t kLongestLearnt = 64;
constexpr int kTriesPerSize = 64;
constexpr int kSmallestBits = 6;
constexpr size_t kMostTried = 512;

// A key with bytes after it that may be read with it.
class PaddedKey {
 public:
  explicit PaddedKey(const std::string& key) : bytes_(key + std::string(16, '\0')) {}
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(bytes_.data()); }

 private:
  std::string bytes_;
};

void describe_entry(KeyTable::Slot& slot, const std::string& key, Kind kind) {
  const size_t k = key.size();
  if (k > KeyTable::kLongestShortKey) return;
  const KeyTable::ShortKey words(PaddedKey(key).data(), k);
  slot.first = words.first;
  slot.last = words.last;
  if (k > 16) std::memcpy(slot.middle, key.data() + 8, k - 16);
  slot.key_size = static_cast<uint8_t>(k);
  // An entry is long enough for its prefix, so no byte of the sum in match() borrows from its neighbour.
  const auto byte = [](uint64_t value, int at) { return value << (8 * at); };
  const bool plain = kind != Kind::kUnset;
  slot.prefix_size = static_cast<uint8_t>(k + (plain ? 10 : 6));
  slot.tail_mask = plain ? 0xffffffffffffull : 0xffffull;
  slot.tail = byte(0x12, 0) - byte(k + 4, 1);
  if (plain) {
    slot.tail += byte(static_cast<uint64_t>(kind) << 3 | 2, 2) - byte(k + 6, 3) + byte(0x0a, 4) - byte(k + 8, 5);
  }
}

}  // namespace

void KeyTable::add(const std::string& key, uint32_t field, Kind kind) {
  Slot slot;
  slot.field = field;
  describe_entry(slot, key, kind);
  slots_.push_back(slot);
  keys_.push_back(key);
}

// Puts a slot into the table; returns whether it got the slot of its hash.
bool KeyTable::insert(uint32_t index) {
  uint32_t at = hash(PaddedKey(keys_[index]).data(), keys_[index].size());
  const uint32_t mask = static_cast<uint32_t>(table_.size() - 1);
  const bool first = table_[at] == 0;
  while (table_[at] != 0) at = (at + 1) & mask;
  table_[at] = index;
  return first;
}

bool KeyTable::place_all() {
  std::fill(table_.begin(), table_.end(), 0);
  bool all = true;
  for (uint32_t i = 1; i < slots_.size(); i++) all &= insert(i);
  return all;
}

bool KeyTable::same_middle(const uint8_t* key, const Slot& slot) {
  return std::memcmp(key + 8, slot.middle, slot.key_size - size_t{16}) == 0;
}

// A hash of the bytes between the first and the last eight.
uint64_t KeyTable::mix_middle(const uint8_t* key, size_t size) {
  uint64_t mixed = 0;
  for (size_t at = 8; at + 8 < size; at += 8) {
    mixed = (mixed ^ load64(key + at)) * 0x9fb21c651e98df25ull;  // the last word may overlap the end of the key
    mixed ^= mixed >> 32;
  }
  return mixed;
}

bool KeyTable::try_hashes(int bits) {
  table_.assign(size_t{1} << bits, 0);
  shift_ = 64 - bits;
  for (const Parts parts : {Parts::kLast, Parts::kEnds, Parts::kAll}) {
    parts_ = parts;
    for (int i = 0; i < kTriesPerSize; i++) {
      if (place_all()) return true;
      multiplier_ = (multiplier_ * 6364136223846793005ull + 1442695040888963407ull) | 1;
    }
  }
  return false;
}

void KeyTable::settle() {
  num_displaced_ = 0;
  int bits = kSmallestBits;
  while ((size_t{1} << bits) < 4 * slots_.size()) bits++;
  // A hash without collisions needs about n^2 / 2 slots: worth trying while that is small.
  if (slots_.size() <= kMostTried) {
    for (int more = 0; more <= 3; more++) {
      if (try_hashes(bits + more)) return;
    }
  }
  // A few keys are then in a slot after the slot of their hash, and find() continues to them.
  table_.assign(size_t{1} << bits, 0);
  shift_ = 64 - bits;
  parts_ = Parts::kAll;
  place_all();
}

const KeyTable::Slot* KeyTable::find(const uint8_t* key, size_t size) const {
  const uint32_t mask = static_cast<uint32_t>(table_.size() - 1);
  for (uint32_t at = hash(key, size);; at = (at + 1) & mask) {
    const uint32_t index = table_[at];
    if (index == 0) return nullptr;
    const std::string& known = keys_[index];
    if (known.size() == size && std::memcmp(known.data(), key, size) == 0) return &slots_[index];
  }
}

void KeyTable::learn(const uint8_t* key, size_t size, uint32_t field) {
  if (num_learnt_ >= kMostLearnt || size > kLongestLearnt) return;
  num_learnt_++;
  add(std::string(reinterpret_cast<const char*>(key), size), field, Kind::kUnset);
  if (table_.size() < 4 * slots_.size()) {
    settle();
  } else if (!insert(static_cast<uint32_t>(slots_.size() - 1)) && ++num_displaced_ >= settle_at_) {
    settle_at_ *= 2;  // keys that look alike displace one another often; a new hash for each would never end
    settle();
  }
}

Plan::Plan(std::vector<FieldSpec> specs, bool strict_wire) : fields(std::move(specs)), strict(strict_wire) {
  for (size_t i = 0; i < fields.size(); i++) {
    const FieldSpec& field = fields[i];
    const bool in_list = field.layout == Layout::kSteps;
    (in_list ? feature_lists : features).add(field.key, static_cast<uint32_t>(i), in_list ? Kind::kUnset : field.kind);
    has_lists |= in_list;
  }
  features.settle();
  feature_lists.settle();
}

}  // namespace penstock
