#include "batch/gather.h"

#include <cstring>

namespace penstock {

GatherFault place_pieces(const Pieces& pieces, const int64_t* rows, size_t count, int64_t* offsets) {
  int64_t total = 0;
  offsets[0] = 0;
  for (size_t i = 0; i < count; i++) {
    const auto row = static_cast<uint64_t>(rows[i]);  // a negative one is larger than any number of rows
    if (row >= pieces.num_rows) return GatherFault::kNoSuchRow;
    const int64_t start = pieces.starts[row], stop = pieces.stops[row];
    if (start < 0 || stop < start || stop > pieces.num_items) return GatherFault::kOutOfItems;
    if (__builtin_add_overflow(total, stop - start, &total)) return GatherFault::kTooMany;
    offsets[i + 1] = total;
  }
  return GatherFault::kNone;
}

void gather_pieces(const uint8_t* items, size_t item_bytes, const Pieces& pieces, const int64_t* rows, size_t count,
                   uint8_t* out) {
  for (size_t i = 0; i < count; i++) {
    const int64_t start = pieces.starts[rows[i]];
    const size_t bytes = static_cast<size_t>(pieces.stops[rows[i]] - start) * item_bytes;
    if (bytes != 0) std::memcpy(out, items + static_cast<size_t>(start) * item_bytes, bytes);
    out += bytes;
  }
}

}  // namespace penstock
