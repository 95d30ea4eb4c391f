// The position of the k-th one in a bitmap: row k of those that a filter keeps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foundation/bytes.h"

namespace penstock {

inline constexpr size_t kRankBytes = 64;  // of a bitmap: what one rank covers

// Bits are numbered from the lowest of each byte. ranks[i]: ones before byte i · kRankBytes. Writes the position of the
// k-th one for each k that is wanted (from 0); false if one is not there, or if ranks do not fit the bitmap.
bool select_bits(Span bitmap, const int64_t* ranks, size_t num_ranks, const int64_t* wanted, size_t count,
                 int64_t* out);

}  // namespace penstock
