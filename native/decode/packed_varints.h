// Packed varints into int64, many at a time.
#pragma once

#include "foundation/bytes.h"
#include "record/status.h"

namespace penstock {

// Writes every varint of the span to `out`, which has room for as many values as the span has bytes, and sets `count`.
// May load, but never uses, kReadablePadding bytes past the span. With `strict`, a value of more than 64 bits is a
// fault.
Status unpack_varints(Span packed, bool strict, int64_t* out, size_t& count);

// Joins the seven-bit groups of up to eight bytes (the first in the lowest byte) to one number.
inline uint64_t join_groups(uint64_t w) {
  w &= 0x7f7f7f7f7f7f7f7full;
  w = (w & 0x007f007f007f007full) | ((w & 0x7f007f007f007f00ull) >> 1);
  w = (w & 0x00003fff00003fffull) | ((w & 0x3fff00003fff0000ull) >> 2);
  return (w & 0x000000000fffffffull) | ((w & 0x0fffffff00000000ull) >> 4);
}

// Reads one varint of exactly `size` bytes (1 to 10) that begins at p; false if its bytes do not end just there.
inline bool read_sized_varint(const uint8_t* p, size_t size, int64_t& value) {
  const uint64_t w = load64(p);
  const uint64_t ends = ~w & 0x8080808080808080ull;
  if (PENSTOCK_LIKELY(size <= 8)) {
    if (ends == 0 || static_cast<size_t>(__builtin_ctzll(ends) >> 3) != size - 1) return false;
    value = static_cast<int64_t>(join_groups(w & (~0ull >> (64 - 8 * size))));
    return true;
  }
  if (ends != 0 || size > 10) return false;
  if (size == 10 && p[8] < 0x80) return false;
  if (p[size - 1] >= 0x80) return false;
  uint64_t joined = join_groups(w) | (static_cast<uint64_t>(p[8] & 0x7f) << 56);
  if (size == 10) joined |= static_cast<uint64_t>(p[9]) << 63;
  value = static_cast<int64_t>(joined);
  return true;
}

}  // namespace penstock
