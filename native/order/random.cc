#include "order/random.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr int kRounds = 10;
constexpr uint32_t kFirstFactor = 0xD2511F53, kSecondFactor = 0xCD9E8D57;
constexpr uint32_t kFirstStep = 0x9E3779B9, kSecondStep = 0xBB67AE85;

}  // namespace

PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  auto first_key = static_cast<uint32_t>(key), second_key = static_cast<uint32_t>(key >> 32);
  uint32_t a = counter.words[0], b = counter.words[1], c = counter.words[2], d = counter.words[3];
  for (int round = 0; round < kRounds; round++) {
    const uint64_t first = static_cast<uint64_t>(kFirstFactor) * a, second = static_cast<uint64_t>(kSecondFactor) * c;
    a = static_cast<uint32_t>(second >> 32) ^ b ^ first_key;
    b = static_cast<uint32_t>(second);
    c = static_cast<uint32_t>(first >> 32) ^ d ^ second_key;
    d = static_cast<uint32_t>(first);
    first_key += kFirstStep;
    second_key += kSecondStep;
  }
  return {{a, b, c, d}};
}

void draw_words(uint64_t seed, uint32_t epoch, uint16_t purpose, const int64_t* records, size_t rows, size_t count,
                uint32_t* out) {
  for (size_t row = 0; row < rows; row++) {
    const auto record = static_cast<uint64_t>(records[row]);
    for (size_t drawn = 0; drawn < count; drawn += 4) {
      const uint32_t last = static_cast<uint32_t>(purpose) << 16 | static_cast<uint32_t>(drawn / 4);
      const PhiloxBlock block =
          philox({{static_cast<uint32_t>(record), static_cast<uint32_t>(record >> 32), epoch, last}}, seed);
      const size_t wanted = std::min<size_t>(count - drawn, 4);
      std::memcpy(out, block.words, wanted * sizeof(uint32_t));
      out += wanted;
    }
  }
}

void DrawKeys::draw_uniform(uint16_t purpose, size_t row, size_t count, double* out) const {
  const auto record = static_cast<uint64_t>(records[row]);
  for (size_t drawn = 0; drawn < count; drawn += 2) {
    const uint32_t last = static_cast<uint32_t>(purpose) << 16 | static_cast<uint32_t>(drawn / 2);
    const PhiloxBlock block =
        philox({{static_cast<uint32_t>(record), static_cast<uint32_t>(record >> 32), epoch, last}}, seed);
    for (size_t i = 0; i < 2 && drawn + i < count; i++) {
      const uint64_t pair = static_cast<uint64_t>(block.words[2 * i]) << 32 | block.words[2 * i + 1];
      out[drawn + i] = static_cast<double>(pair >> 11) * 0x1p-53;
    }
  }
}

}  // namespace penstock
