#include "write/hash.h"

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

}  // namespace

uint64_t hash_bytes(Span bytes) {
  const uint8_t* p = bytes.data;
  size_t left = bytes.size;
  uint64_t state = kFirst ^ mix(left);
  for (; left > 16; left -= 16, p += 16) state = fold(load64(p) ^ kFirst, load64(p + 8) ^ state);
  // The length is in the state, so zeros after the end are no bytes of another string.
  uint64_t low, high = 0;
  if (left < 8) {
    low = load_part(p, left);
  } else {
    low = load64(p);
    if (left > 8) high = load64(p + left - 8) >> (8 * (16 - left));
  }
  return mix(fold(low ^ kSecond, high ^ state) ^ state);
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
