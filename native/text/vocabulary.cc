#include "text/vocabulary.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace penstock {
namespace {

constexpr size_t kFewestSlots = 16;
// Hashes without a pattern stay below 100 with 10^8 values; more than this is bad luck, or made on purpose.
constexpr size_t kLongestProbe = 128;

// A power of two that `count` values fill to half at most.
size_t slots_for(size_t count) {
  if (count > Vocabulary::kMostValues) throw std::length_error("a vocabulary has more than 2^30 values");
  size_t slots = kFewestSlots;
  while (slots < 2 * count) slots *= 2;
  return slots;
}

}  // namespace

Seeds Seeds::draw() {
  // A factor of 0, or of a few bits, would make nothing of the other.
  Seeds seeds;
  do {
    // Not std::random_device: inside the module, the one of newer compilers needs the newest glibc.
    uint64_t words[2];
    if (getentropy(words, sizeof words) != 0) throw std::system_error(errno, std::generic_category(), "getentropy");
    seeds.first = words[0];
    seeds.second = words[1];
  } while (seeds.second >> 32 == 0);
  return seeds;
}

Vocabulary::Vocabulary() { place_all(kFewestSlots); }

Vocabulary::Vocabulary(const std::vector<std::string>& values) : Vocabulary() {
  reserve(values.size());
  for (size_t i = 0; i < values.size(); i++) {
    const Span value{reinterpret_cast<const uint8_t*>(values[i].data()), values[i].size()};
    if (static_cast<size_t>(add(value)) != i) throw std::invalid_argument("a value is in the vocabulary twice");
  }
}

void Vocabulary::reserve(size_t num_values) {
  const size_t wanted = slots_for(num_values);
  if (wanted > slots_.size()) rebuild(wanted);
  entries_.reserve(num_values);
}

uint64_t Vocabulary::hash_long(Span value) const noexcept {
  const uint8_t* p = value.data;
  uint64_t state = seeds_.second + value.size;
  for (size_t left = value.size; left > 16; left -= 16, p += 16) {
    state = Seeds::multiply(load64(p) ^ seeds_.first, load64(p + 8) ^ state);
  }
  // The last 16 bytes, some of them again: there are more than 16.
  return Seeds::multiply(load64(value.end() - 16) ^ seeds_.first, load64(value.end() - 8) ^ state);
}

bool Vocabulary::is_long_value(uint32_t number, uint64_t hash, Span value) const noexcept {
  const Entry& entry = entries_[number];
  return entry.size == value.size && entry.low == hash &&
         std::memcmp(arena_.data() + entry.high, value.data, value.size) == 0;
}

int32_t Vocabulary::find_long(Span value, uint64_t hash) const noexcept {
  uint32_t at;
  return probe(hash, at, [&](uint32_t number) { return is_long_value(number, hash, value); });
}

int32_t Vocabulary::add(Span value) {
  const bool is_long = value.size > kShort;
  const Words words = is_long ? Words{hash_long(value), arena_.size()} : load_short(value);
  const uint64_t hash = is_long ? words.low : hash_short(words.low, words.high);
  uint32_t at;
  const int32_t known = probe(hash, at, [&](uint32_t number) {
    if (is_long) return is_long_value(number, hash, value);
    const Entry& entry = entries_[number];
    return entry.low == words.low && entry.high == words.high && entry.size == value.size;
  });
  if (known >= 0) return known;
  if (entries_.size() == kMostValues) throw std::length_error("a vocabulary has more than 2^30 values");
  if (is_long) arena_.insert(arena_.end(), value.begin(), value.end());
  entries_.push_back({words.low, words.high, value.size});
  const auto number = static_cast<uint32_t>(entries_.size());
  slots_[at] = (static_cast<uint32_t>(hash >> 32) & ~mask_) | number;
  longest_ = std::max<size_t>(longest_, (at - static_cast<uint32_t>(hash)) & mask_);
  if (2 * entries_.size() > slots_.size()) {
    rebuild(2 * slots_.size());
  } else if (longest_ > kLongestProbe && reseeds_left_ > 0) {
    rebuild(slots_.size());
  }
  return static_cast<int32_t>(number - 1);
}

// Puts all values into empty slots.
void Vocabulary::place_all(size_t num_slots) {
  slots_.assign(num_slots, 0);
  mask_ = static_cast<uint32_t>(num_slots - 1);
  longest_ = 0;
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    const uint64_t hash = entry.size > kShort ? entry.low : hash_short(entry.low, entry.high);
    uint32_t at = static_cast<uint32_t>(hash) & mask_;
    while (slots_[at] != 0) at = (at + 1) & mask_;
    slots_[at] = (static_cast<uint32_t>(hash >> 32) & ~mask_) | static_cast<uint32_t>(i + 1);
    longest_ = std::max<size_t>(longest_, (at - static_cast<uint32_t>(hash)) & mask_);
  }
}

void Vocabulary::rebuild(size_t num_slots) {
  if (num_slots != slots_.size()) place_all(num_slots);
  while (longest_ > kLongestProbe && reseeds_left_-- > 0) {
    seeds_ = Seeds::draw();
    for (size_t i = 0; i < entries_.size(); i++) {
      if (entries_[i].size > kShort) entries_[i].low = hash_long(value(i));
    }
    place_all(num_slots);
  }
}

IntVocabulary::IntVocabulary(const int64_t* values, size_t count)
    : mask_(static_cast<uint32_t>(slots_for(count) - 1)), size_(count) {
  size_t longest = 0;
  for (int tries = 0; tries == 0 || (longest > kLongestProbe && tries < 16); tries++) {
    seeds_ = Seeds::draw();
    slots_.assign(size_t{mask_} + 1, Slot{});
    longest = 0;
    for (size_t i = 0; i < count; i++) {
      const uint32_t first = place_of(values[i]);
      uint32_t at = first;
      for (; slots_[at].number >= 0; at = (at + 1) & mask_) {
        if (slots_[at].value == values[i]) throw std::invalid_argument("a value is in the vocabulary twice");
      }
      slots_[at] = {values[i], static_cast<int32_t>(i)};
      longest = std::max<size_t>(longest, (at - first) & mask_);
    }
  }
}

}  // namespace penstock
