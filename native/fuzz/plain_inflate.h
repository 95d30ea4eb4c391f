// Inflating as the standard describes it, bit by bit: the reference for the fast version.
#pragma once

#include <cstddef>
#include <vector>

#include "foundation/bytes.h"

namespace penstock::fuzz {

// Whether a zlib stream gives exactly `size` bytes, which are then in `out`.
bool inflate_plainly(Span stream, size_t size, std::vector<uint8_t>& out);

uint32_t adler_of(Span bytes);

}  // namespace penstock::fuzz
