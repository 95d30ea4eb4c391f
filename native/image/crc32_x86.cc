// CRC-32 by multiplication without carries: 64 bytes are folded into 16 by powers of x modulo the polynomial, and those
// into the CRC by Barrett's reduction. Chosen at run time.
#include "image/crc32.h"

#if defined(__x86_64__)

#include <smmintrin.h>
#include <wmmintrin.h>

#include "foundation/cpu.h"

namespace penstock::detail {
namespace {

#define PENSTOCK_CLMUL __attribute__((target("pclmul,sse4.1")))

PENSTOCK_CLMUL inline __m128i load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

PENSTOCK_CLMUL inline __m128i fold_into(__m128i sum, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(sum, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(sum, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// x^n modulo the polynomial, reversed, for the distances that the sums are moved by.
constexpr int64_t kBy544 = 0x154442bd4, kBy480 = 0x1c6e41596;
constexpr int64_t kBy160 = 0x1751997d0, kBy96 = 0x0ccaa009e;
constexpr int64_t kBy64 = 0x163cd6124;
constexpr int64_t kPolynomial = 0x1db710641, kInverse = 0x1f7011641;

PENSTOCK_CLMUL uint32_t reduce(__m128i sum) {
  const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
  sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, _mm_set_epi64x(0, kBy96), 0x00));
  sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(sum, low32), _mm_set_epi64x(0, kBy64), 0x00));
  const __m128i barrett = _mm_set_epi64x(kInverse, kPolynomial);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, low32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(sum, quotient), 1));
}

PENSTOCK_CLMUL uint32_t crc32_by_folding(uint32_t crc, const uint8_t* p, size_t n) {
  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = load(p + 16), c = load(p + 32), d = load(p + 48);
  const __m128i far = _mm_set_epi64x(kBy480, kBy544), near = _mm_set_epi64x(kBy96, kBy160);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    a = fold_into(a, far, load(p));
    b = fold_into(b, far, load(p + 16));
    c = fold_into(c, far, load(p + 32));
    d = fold_into(d, far, load(p + 48));
  }
  __m128i sum = fold_into(fold_into(fold_into(a, near, b), near, c), near, d);
  for (; n >= 16; p += 16, n -= 16) sum = fold_into(sum, near, load(p));
  return reduce(sum);
}

}  // namespace

const FoldCrc crc32_pclmul = has_pclmul() ? crc32_by_folding : nullptr;

}  // namespace penstock::detail

#else

namespace penstock::detail {
const FoldCrc crc32_pclmul = nullptr;
}  // namespace penstock::detail

#endif
