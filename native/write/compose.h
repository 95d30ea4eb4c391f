// Bodies into frames: the last step of writing. Rows are taken in any order from any number of arenas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/bytes.h"
#include "foundation/growable_array.h"
#include "write/digest.h"
#include "write/map_entry.h"

namespace penstock {

// One byte string that is fetched late: from memory, or from a file that must still be what it was.
struct LateValue {
  bool is_there = false;
  Span memory;  // where it is, if `path` is empty
  std::string path;
  size_t size = 0;
  Digest digest;  // of what the file held

  static LateValue in_memory(Span bytes) { return {true, bytes, {}, bytes.size, {}}; }
  static LateValue in_file(std::string path, size_t size, Digest digest) {
    return {true, {}, std::move(path), size, digest};
  }
};

// A field whose values are fetched late, one a row.
struct LateField {
  EncodeField field;
  std::vector<LateValue> values;
};

// A file that could not be read (errno), or is no longer what it was (0).
struct LateFault {
  size_t row, field;
  int error;
};

// Appends the frame of each body: length, its CRC, the message, its CRC. `is_message` says that a body is the whole
// message already; otherwise it is entries of an Example, and the entries of late fields go before them. `sizes` gets
// each frame's. Frames of rows with a fault hold nothing of use.
std::vector<LateFault> compose_frames(const std::vector<Span>& bodies, const std::vector<LateField>& late,
                                      bool is_message, GrowableArray<uint8_t>& out, GrowableArray<int64_t>& sizes);

}  // namespace penstock
