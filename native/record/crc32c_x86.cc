// CRC32C by the SSE4.2 instruction and by multiplication without carry, chosen at run time.
#include "record/crc32c.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>

#include "foundation/bytes.h"
#include "foundation/cpu.h"

namespace penstock::detail {
namespace {

// Three stretches are computed in parallel, as in crc32c_by_instruction(). Multiplication without carry joins stretches
// of any length, so that short data is cut into three as well.
constexpr size_t kMostWords = 128;  // of a stretch

// By number of words: what a CRC is multiplied with to advance it over so many zero words, x^(64 words - 33) modulo the
// polynomial. The instruction multiplies by x^32, and the product of reversed numbers by x.
constexpr std::array<uint32_t, 2 * kMostWords + 1> make_shifts() {
  std::array<uint32_t, 2 * kMostWords + 1> shifts{};
  uint32_t power = 1;  // x^31
  for (size_t words = 1; words < shifts.size(); words++) {
    shifts[words] = power;
    for (int bit = 0; bit < 64; bit++) power = (power & 1) != 0 ? (power >> 1) ^ 0x82f63b78u : power >> 1;
  }
  return shifts;
}
constexpr std::array<uint32_t, 2 * kMostWords + 1> kShifts = make_shifts();

__attribute__((target("pclmul"))) inline __m128i multiply(uint64_t crc, uint32_t factor) {
  return _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(crc)), _mm_cvtsi32_si128(static_cast<int>(factor)),
                              0);
}

__attribute__((target("sse4.2,pclmul"))) uint32_t crc32c_by_thirds(const uint8_t* p, size_t n) {
  uint64_t crc = 0xffffffffu;
  while (n >= 96) {  // below that, joining costs more than it saves
    const size_t words = n / 24 < kMostWords ? n / 24 : kMostWords, stretch = 8 * words;
    uint64_t second = 0, third = 0;
    for (const uint8_t* const end = p + stretch; p < end; p += 8) {
      crc = _mm_crc32_u64(crc, load64(p));
      second = _mm_crc32_u64(second, load64(p + stretch));
      third = _mm_crc32_u64(third, load64(p + 2 * stretch));
    }
    const __m128i joined = _mm_xor_si128(multiply(crc, kShifts[2 * words]), multiply(second, kShifts[words]));
    crc = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(joined))) ^ third;
    p += 2 * stretch;
    n -= 3 * stretch;
  }
  for (; n >= 8; n -= 8, p += 8) crc = _mm_crc32_u64(crc, load64(p));
  auto rest = static_cast<uint32_t>(crc);
  if (n & 4) {
    rest = _mm_crc32_u32(rest, load32(p));
    p += 4;
  }
  for (n &= 3; n > 0; n--) rest = _mm_crc32_u8(rest, *p++);
  return rest ^ 0xffffffffu;
}

}  // namespace

const CrcFunction crc32c_sse42 = has_sse42() && has_pclmul() ? crc32c_by_thirds : nullptr;

}  // namespace penstock::detail

#else

namespace penstock::detail {
const CrcFunction crc32c_sse42 = nullptr;
}  // namespace penstock::detail

#endif
