// The text index of a shard: one line "<offset> <size>" per frame, as DALI and the tfrecord package read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foundation/growable_array.h"

namespace penstock {

// Appends the lines of contiguous frames of these sizes; the first frame is at `offset`. Returns the end of the
// last.
uint64_t write_text_index(const int64_t* sizes, size_t count, uint64_t offset, GrowableArray<uint8_t>& out);

}  // namespace penstock
