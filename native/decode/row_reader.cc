#include "decode/row_reader.h"

#include <utility>
#include <vector>

namespace penstock {

bool RowReader::read(const int64_t* rows, size_t count, Decoded& out) const {
  RowSegment found;
  if (!finder_.find(rows, count, found)) return false;
  std::vector<Segment> segments;
  segments.push_back(std::move(found.segment));
  out = decoder_.decode(segments);
  return true;
}

}  // namespace penstock
