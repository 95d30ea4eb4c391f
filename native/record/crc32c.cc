#include "record/crc32c.h"

#include "foundation/bytes.h"

namespace penstock {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // reversed

struct Tables {
  uint32_t byte[8][256];

  Tables() {
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t crc = n;
      for (int bit = 0; bit < 8; bit++) crc = (crc & 1) ? (crc >> 1) ^ kPolynomial : crc >> 1;
      byte[0][n] = crc;
    }
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t crc = byte[0][n];
      for (int k = 1; k < 8; k++) {
        crc = byte[0][crc & 255] ^ (crc >> 8);
        byte[k][n] = crc;
      }
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

// Advances `crc` over one zero byte at a time; only run while the tables of ZeroShift are made.
uint32_t advance_one_zero(uint32_t crc) { return tables().byte[0][crc & 255] ^ (crc >> 8); }

}  // namespace

uint32_t crc32c_by_table(const uint8_t* p, size_t n) {
  const auto& t = tables().byte;
  uint64_t crc = 0xffffffffu;
  for (; n >= 8; n -= 8, p += 8) {
    const uint64_t w = load64(p) ^ crc;
    crc = t[7][w & 255] ^ t[6][(w >> 8) & 255] ^ t[5][(w >> 16) & 255] ^ t[4][(w >> 24) & 255] ^ t[3][(w >> 32) & 255] ^
          t[2][(w >> 40) & 255] ^ t[1][(w >> 48) & 255] ^ t[0][w >> 56];
  }
  for (; n > 0; n--) crc = t[0][(crc ^ *p++) & 255] ^ (crc >> 8);
  return static_cast<uint32_t>(crc) ^ 0xffffffffu;
}

uint32_t crc32c(const uint8_t* data, size_t size) {
  if (detail::crc32c_sse42 != nullptr) return detail::crc32c_sse42(data, size);
  if (detail::crc32c_armv8 != nullptr) return detail::crc32c_armv8(data, size);
  return crc32c_by_table(data, size);
}

const char* crc32c_method() {
  return detail::crc32c_sse42 != nullptr ? "sse4.2" : detail::crc32c_armv8 != nullptr ? "armv8" : "table";
}

namespace detail {

ZeroShift::ZeroShift(size_t count) {
  // Advancing over zeros is linear in the CRC's bits: find what happens to each bit, then combine.
  uint32_t of_bit[32];
  for (int bit = 0; bit < 32; bit++) {
    uint32_t crc = 1u << bit;
    for (size_t i = 0; i < count; i++) crc = advance_one_zero(crc);
    of_bit[bit] = crc;
  }
  for (int byte = 0; byte < 4; byte++) {
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t sum = 0;
      for (int bit = 0; bit < 8; bit++) {
        if (n & (1u << bit)) sum ^= of_bit[8 * byte + bit];
      }
      table_[byte][n] = sum;
    }
  }
}

const ZeroShift& long_shift() {
  static const ZeroShift instance(kLongStretch);
  return instance;
}

const ZeroShift& short_shift() {
  static const ZeroShift instance(kShortStretch);
  return instance;
}

}  // namespace detail
}  // namespace penstock
