#include "image/crc32.h"

#include "foundation/bytes.h"

namespace penstock {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320u;  // reversed

struct Tables {
  uint32_t byte[8][256];

  Tables() {
    for (uint32_t n = 0; n < 256; n++) {
      uint32_t crc = n;
      for (int bit = 0; bit < 8; bit++) crc = (crc & 1) ? (crc >> 1) ^ kPolynomial : crc >> 1;
      byte[0][n] = crc;
    }
    for (uint32_t n = 0; n < 256; n++) {
      for (int k = 1; k < 8; k++) byte[k][n] = byte[0][byte[k - 1][n] & 255] ^ (byte[k - 1][n] >> 8);
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

uint32_t advance(uint32_t start, const uint8_t* p, size_t n) {
  const auto& t = tables().byte;
  uint64_t crc = start;
  for (; n >= 8; n -= 8, p += 8) {
    const uint64_t w = load64(p) ^ crc;
    crc = t[7][w & 255] ^ t[6][(w >> 8) & 255] ^ t[5][(w >> 16) & 255] ^ t[4][(w >> 24) & 255] ^ t[3][(w >> 32) & 255] ^
          t[2][(w >> 40) & 255] ^ t[1][(w >> 48) & 255] ^ t[0][w >> 56];
  }
  for (; n > 0; n--) crc = t[0][(crc ^ *p++) & 255] ^ (crc >> 8);
  return static_cast<uint32_t>(crc);
}

}  // namespace

uint32_t crc32(const uint8_t* data, size_t size) {
  uint32_t crc = 0xffffffffu;
  if (detail::crc32_pclmul != nullptr && size >= 64) {
    const size_t whole = size & ~size_t{15};
    crc = detail::crc32_pclmul(crc, data, whole);
    data += whole;
    size -= whole;
  }
  return ~advance(crc, data, size);
}

uint32_t crc32_by_table(const uint8_t* data, size_t size) { return ~advance(0xffffffffu, data, size); }

}  // namespace penstock
