#include "record/row_buffers.h"

namespace penstock {

bool RowBuffers::find(const int64_t* rows, size_t count, RowSegment& out) const {
  out.which = Buffer(count * sizeof(uint32_t));
  out.begins = Buffer(count * sizeof(uint64_t));
  out.sizes = Buffer(count * sizeof(uint64_t));
  uint32_t* const which = out.which.as<uint32_t>();
  uint64_t* const begins = out.begins.as<uint64_t>();
  uint64_t* const sizes = out.sizes.as<uint64_t>();
  for (size_t i = 0; i < count; i++) {
    if (rows[i] < 0 || rows[i] >= segment_.num_records) return false;
    which[i] = segment_.number(rows[i]);
    begins[i] = segment_.begins[rows[i]];
    sizes[i] = segment_.sizes[rows[i]];
  }
  out.segment.sources = segment_.sources;
  out.segment.which = which;
  out.segment.begins = begins;
  out.segment.sizes = sizes;
  out.segment.num_records = static_cast<int64_t>(count);
  return true;
}

}  // namespace penstock
