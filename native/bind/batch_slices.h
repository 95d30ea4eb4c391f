// What Python sees of rows that the core reads, decodes and transforms without it, with what keeps them alive.
#pragma once

#include <memory>
#include <vector>

#include "batch/batch_slices.h"
#include "bind/buffers.h"
#include "decode/row_reader.h"

namespace penstock {

struct BoundRowReader {
  std::vector<nb::object> held;
  std::unique_ptr<RowReader> reader;
};

struct BoundBatchSlices {
  std::vector<nb::object> held;
  std::unique_ptr<BatchSlices> slices;
};

}  // namespace penstock
