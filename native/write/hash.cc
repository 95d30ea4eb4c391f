#include "write/hash.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr uint64_t kFirst = 0xa0761d6478bd642full;
constexpr uint64_t kSecond = 0xe7037ed1a0b428dbull;

// Both halves of a 128-bit product, folded into one.
uint64_t fold(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Less than eight bytes as a word, padded with zeros; by loads that overlap rather than by a call.
uint64_t load_part(const uint8_t* p, size_t size) {
  if (size >= 4) return load32(p) | static_cast<uint64_t>(load32(p + size - 4)) << (8 * (size - 4));
  if (size == 0) return 0;
  const size_t middle = size / 2, last = size - 1;
  return p[0] | static_cast<uint64_t>(p[middle]) << (8 * middle) | static_cast<uint64_t>(p[last]) << (8 * last);
}

// The hash of a byte string whose first part was taken.
class PartialHash {
 public:
  explicit PartialHash(Span bytes) : p_(bytes.data), left_(bytes.size), state_(kFirst ^ mix(bytes.size)) {}

  // How many times `take` can be called: the last 1 to 16 bytes are left to `finish`.
  size_t num_words() const { return left_ == 0 ? 0 : (left_ - 1) / 16; }

  void take() {
    state_ = fold(load64(p_) ^ kFirst, load64(p_ + 8) ^ state_);
    p_ += 16;
    left_ -= 16;
  }

  uint64_t finish() {
    while (left_ > 16) take();
    // The length is in the state, so zeros after the end are no bytes of another string.
    uint64_t low, high = 0;
    if (left_ < 8) {
      low = load_part(p_, left_);
    } else {
      low = load64(p_);
      if (left_ > 8) high = load64(p_ + left_ - 8) >> (8 * (16 - left_));
    }
    return mix(fold(low ^ kSecond, high ^ state_) ^ state_);
  }

 private:
  const uint8_t* p_;
  size_t left_;
  uint64_t state_;
};

constexpr size_t kTogether = 4;  // a multiplication waits for the one before: others run meanwhile

}  // namespace

uint64_t hash_bytes(Span bytes) { return PartialHash(bytes).finish(); }

void hash_values(const Span* values, size_t count, uint64_t* out) {
  size_t i = 0;
  for (; i + kTogether <= count; i += kTogether) {
    PartialHash hashes[kTogether] = {PartialHash(values[i]), PartialHash(values[i + 1]), PartialHash(values[i + 2]),
                                     PartialHash(values[i + 3])};
    size_t num_words = hashes[0].num_words();
    for (const PartialHash& each : hashes) num_words = std::min(num_words, each.num_words());
    for (size_t word = 0; word < num_words; word++) {
      for (PartialHash& each : hashes) each.take();
    }
    for (size_t lane = 0; lane < kTogether; lane++) out[i + lane] = hashes[lane].finish();
  }
  for (; i < count; i++) out[i] = hash_bytes(values[i]);
}

uint64_t word_of(double value) {
  if (std::isnan(value)) return kFirst;
  value += 0.0;  // no negative zero: it equals the integer 0
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits ^ kSecond;
}

uint64_t word_of(int64_t value) {
  const auto rounded = static_cast<double>(value);
  // 2^63 is the one double in reach that no int64 equals.
  if (rounded < 9223372036854775808.0 && static_cast<int64_t>(rounded) == value) return word_of(rounded);
  return static_cast<uint64_t>(value) ^ kFirst;
}

}  // namespace penstock
