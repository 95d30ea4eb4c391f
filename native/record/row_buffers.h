// Rows whose frames are in memory: the rows of one batch, read from an object store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/row_finder.h"

namespace penstock {

class RowBuffers : public RowFinder {
 public:
  // Row i is record i of the segment, which must outlive this.
  explicit RowBuffers(const Segment& segment) : segment_(segment) {}

  bool find(const int64_t* rows, size_t count, RowSegment& out) const override;

 private:
  const Segment& segment_;
};

}  // namespace penstock
