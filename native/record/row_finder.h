// Any rows as a segment, wherever their frames are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "foundation/pool.h"
#include "record/fetch.h"

namespace penstock {

struct OpenedFile;

// A segment of rows with what keeps it alive.
struct RowSegment {
  Segment segment;
  Buffer which, begins, sizes;
  Buffer loaded;  // frames of files that could not stay open
  std::vector<std::shared_ptr<const OpenedFile>> files;
};

class RowFinder {
 public:
  virtual ~RowFinder() = default;

  // Finds rows, in that order. False if there is no such row, or its frame cannot be read. Any number of threads may
  // call it.
  virtual bool find(const int64_t* rows, size_t count, RowSegment& out) const = 0;
};

}  // namespace penstock
