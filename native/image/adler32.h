// Adler-32, the checksum of zlib streams.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

uint32_t adler32(const uint8_t* data, size_t size);

}  // namespace penstock
