// Bodies into frames: the last step of writing. Rows are taken in any order from any number of arenas.
#pragma once

#include <cstdint>
#include <vector>

#include "bytes.h"
#include "entry.h"
#include "growing.h"

namespace penstock {

// A field whose value is fetched late: one byte string a row, or none where `data` is null.
struct LateField {
  EncodeField field;
  std::vector<Span> values;
};

// Appends the frame of each body: length, its CRC, the message, its CRC. `is_message` says that a body is the whole message
// already; otherwise it is entries of an Example, and those of the late fields go before them. `sizes` gets each frame's.
void compose_frames(const std::vector<Span>& bodies, const std::vector<LateField>& late, bool is_message,
                    Growing<uint8_t>& out, Growing<int64_t>& sizes);

}  // namespace penstock
