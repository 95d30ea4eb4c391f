#include "packed.h"

#include "simd.h"
#include "wire.h"

namespace penstock {

int64_t count_varints(Span packed) {
  const uint8_t* p = packed.begin();
  const uint8_t* const end = packed.end();
  int64_t count = 0;
  for (; end - p >= 8; p += 8) count += __builtin_popcountll(~load64(p) & 0x8080808080808080ull);
  for (; p < end; p++) count += *p < 0x80;
  return count;
}

namespace {

// A varint of `size` bytes, 9 to 10, at p. Anything longer is a fault.
inline Status read_long(const uint8_t* p, size_t size, bool strict, int64_t& value) {
  if (size > 10) return Status::kVarintTooLong;
  uint64_t joined = join_groups(load64(p)) | (static_cast<uint64_t>(p[8] & 0x7f) << 56);
  if (size == 10) {
    if (strict && p[9] > 1) return Status::kVarintOverflow;
    joined |= static_cast<uint64_t>(p[9]) << 63;
  }
  value = static_cast<int64_t>(joined);
  return Status::kOk;
}

}  // namespace

Status unpack_varints(Span packed, int64_t* out, bool strict) {
  const uint8_t* p = packed.begin();
  const uint8_t* const end = packed.end();
  // Where each varint of the next 64 bytes ends is known before any is read: the reads do not wait for one another.
  while (end - p >= 8) {
    const size_t here = end - p < 64 ? static_cast<size_t>(end - p) : 64;
    uint64_t ends = ~high_bits64(p);
    if (here < 64) ends &= ~0ull >> (64 - here);
    if (ends == 0) return here > 10 ? Status::kVarintTooLong : Status::kVarintCut;
    size_t start = 0;
    do {
      const size_t last = static_cast<size_t>(__builtin_ctzll(ends));
      ends &= ends - 1;
      const size_t size = last - start + 1;
      if (PENSTOCK_LIKELY(size <= 8)) {
        *out++ = static_cast<int64_t>(join_groups(load64(p + start) & (~0ull >> (64 - 8 * size))));
      } else if (Status s = read_long(p + start, size, strict, *out++); s != Status::kOk) {
        return s;
      }
      start = last + 1;
    } while (ends);
    p += start;
  }
  for (Cursor in(p, end); !in.done();) {
    uint64_t value;
    const uint8_t* const begin = in.p;
    if (Status s = read_varint(in, value); s != Status::kOk) return s;
    if (strict && in.p - begin == 10 && begin[9] > 1) return Status::kVarintOverflow;
    *out++ = static_cast<int64_t>(value);
  }
  return Status::kOk;
}

}  // namespace penstock
