// Big-endian numbers, as the headers of images have them.
#pragma once

#include "foundation/bytes.h"

namespace penstock {

inline uint32_t big16(const uint8_t* p) { return static_cast<uint32_t>(p[0]) << 8 | p[1]; }

inline uint32_t big32(const uint8_t* p) { return __builtin_bswap32(load32(p)); }

}  // namespace penstock
