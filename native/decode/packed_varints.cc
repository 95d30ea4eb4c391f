#include "decode/packed_varints.h"

#include "foundation/cpu.h"
#include "record/wire.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock {
namespace {

// Bit i of the result is the highest bit of p[i], for the 64 bytes at p.
inline uint64_t high_bits64(const uint8_t* p) {
#if defined(__x86_64__)
  const auto bits = [](const uint8_t* q) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(v)));
  };
  return bits(p) | bits(p + 16) << 16 | bits(p + 32) << 32 | bits(p + 48) << 48;
#else
  uint64_t result = 0;
  for (int i = 0; i < 8; i++) {
    // Gathers the eight high bits of a word: each becomes one bit of the product's top byte.
    const uint64_t high = (load64(p + 8 * i) & 0x8080808080808080ull) >> 7;
    result |= ((high * 0x0102040810204080ull) >> 56) << (8 * i);
  }
  return result;
#endif
}

// How the groups of a varint of up to eight bytes are joined.
struct JoinByShifts {
  static uint64_t join(uint64_t w, size_t size) { return join_groups(w & (~0ull >> (64 - 8 * size))); }
};

#if defined(__x86_64__)
struct JoinByExtract {
  __attribute__((target("bmi2"))) static uint64_t join(uint64_t w, size_t size) {
    return _pext_u64(w, 0x7f7f7f7f7f7f7f7full >> (64 - 8 * size));
  }
};
#endif

// A varint of 9 or 10 bytes at p. Anything longer is a fault.
Status read_long(const uint8_t* p, size_t size, bool strict, int64_t& value) {
  if (size > 10) return Status::kVarintTooLong;
  uint64_t joined = join_groups(load64(p)) | (static_cast<uint64_t>(p[8] & 0x7f) << 56);
  if (size == 10) {
    if (strict && p[9] > 1) return Status::kVarintOverflow;
    joined |= static_cast<uint64_t>(p[9]) << 63;
  }
  value = static_cast<int64_t>(joined);
  return Status::kOk;
}

template <typename Join>
inline Status unpack(Span packed, bool strict, int64_t* out, size_t& count) {
  const uint8_t* p = packed.begin();
  const uint8_t* const end = packed.end();
  int64_t* const first = out;
  // Where each varint of the next 64 bytes ends is known before any is read: the reads do not wait for one another.
  while (p < end) {
    const size_t here = end - p < 64 ? static_cast<size_t>(end - p) : 64;
    const uint64_t ends = ~high_bits64(p) & (~0ull >> (64 - here));
    if (PENSTOCK_UNLIKELY(ends == 0)) return here > 10 ? Status::kVarintTooLong : Status::kVarintCut;
    size_t start = 0;
    uint64_t left = ends;
    do {
      const size_t last = static_cast<size_t>(__builtin_ctzll(left));
      left &= left - 1;
      const size_t size = last - start + 1;
      if (PENSTOCK_LIKELY(size <= 8)) {
        *out++ = static_cast<int64_t>(Join::join(load64(p + start), size));
      } else if (Status s = read_long(p + start, size, strict, *out++); s != Status::kOk) {
        return s;
      }
      start = last + 1;
    } while (left != 0);
    p += start;
  }
  count = static_cast<size_t>(out - first);
  return Status::kOk;
}

using Unpack = Status (*)(Span, bool, int64_t*, size_t&);

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"), flatten)) Status unpack_by_extract(Span packed, bool strict, int64_t* out,
                                                                      size_t& count) {
  return unpack<JoinByExtract>(packed, strict, out, count);
}

const Unpack unpack_bmi2 = has_fast_pext() ? unpack_by_extract : nullptr;
#else
const Unpack unpack_bmi2 = nullptr;
#endif

}  // namespace

Status unpack_varints(Span packed, bool strict, int64_t* out, size_t& count) {
  count = 0;
  if (unpack_bmi2 != nullptr) return unpack_bmi2(packed, strict, out, count);
  return unpack<JoinByShifts>(packed, strict, out, count);
}

}  // namespace penstock
