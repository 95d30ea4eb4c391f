// The frame of a record:  length (8 bytes) · masked CRC of the length (4) · payload · masked CRC of the payload (4).
#pragma once

#include "foundation/bytes.h"
#include "record/crc32c.h"

namespace penstock {

inline constexpr uint64_t kHeaderBytes = 12;
inline constexpr uint64_t kFooterBytes = 4;
inline constexpr uint64_t kFrameBytes = kHeaderBytes + kFooterBytes;

inline uint64_t frame_length(const uint8_t* frame) { return load64(frame); }

inline bool header_fits(const uint8_t* frame) { return masked_crc32c(frame, 8) == load32(frame + 8); }

inline uint32_t stored_payload_crc(const uint8_t* frame, uint64_t length) {
  return load32(frame + kHeaderBytes + length);
}

inline uint32_t computed_payload_crc(const uint8_t* frame, uint64_t length) {
  return masked_crc32c(frame + kHeaderBytes, length);
}

}  // namespace penstock
