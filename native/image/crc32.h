// CRC-32 (IEEE 802.3), as PNG keeps it of its chunks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

uint32_t crc32(const uint8_t* data, size_t size);

// The same by table alone: for processors without the instruction, and as a check on the fast way.
uint32_t crc32_by_table(const uint8_t* data, size_t size);

namespace detail {

// The CRC, complemented, after 64 bytes or more, a multiple of 16.
using FoldCrc = uint32_t (*)(uint32_t crc, const uint8_t* data, size_t size);
extern const FoldCrc crc32_pclmul;  // null where the processor lacks the multiplication

}  // namespace detail
}  // namespace penstock
