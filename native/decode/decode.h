// Records into columns: fetch, then structure, then one loop per column, block by block.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "decode/column.h"
#include "decode/plan.h"
#include "decode/structure.h"
#include "record/fetch.h"

namespace penstock {

// The columns of a number of rows. Scalars of one kind share a matrix with a row per field; so do the row offsets and
// the presence masks. Strides are in elements, and keep every matrix row aligned.
struct Decoded {
  int64_t num_rows = 0;
  size_t stride = 0;  // of ints, floats and present
  size_t offset_stride = 0;
  Buffer ints, floats, offsets, present;
  Buffer kept;  // the records themselves, if a column is a view of them
  std::vector<Column> columns;
  std::vector<RowFault> faults;  // in the order of rows
};

class Decoder {
 public:
  explicit Decoder(std::vector<FieldSpec> fields, bool strict);

  const Plan& plan() const { return plan_; }
  size_t num_int_scalars() const { return num_ints_; }
  size_t num_float_scalars() const { return num_floats_; }
  size_t num_row_offsets() const { return num_offsets_; }
  size_t num_optional() const { return num_present_; }

  // The bytes that all calls so far have read, and how long that took, their checksums included.
  uint64_t bytes_read() const { return bytes_read_; }
  double read_seconds() const { return 1e-9 * static_cast<double>(read_nanoseconds_.load()); }

  // Decodes all records of the segments. Any number of threads may do so at once.
  Decoded decode(const std::vector<Segment>& segments) const;

 private:
  struct Workspace {
    explicit Workspace(const Plan& plan) : structure(plan) {}
    Fetcher fetcher;
    Structure structure;
    std::vector<Fetched> records;
  };
  std::unique_ptr<Workspace> borrow() const;
  void give_back(std::unique_ptr<Workspace> workspace) const;
  Decoded allocate(int64_t num_rows) const;
  void decode_chunk(Workspace& work, bool keeps, int64_t start, Decoded& out) const;
  bool pays_to_keep(int64_t num_rows, size_t num_bytes) const;

  Plan plan_;
  size_t num_ints_ = 0, num_floats_ = 0, num_offsets_ = 0, num_present_ = 0;
  bool has_strings_ = false;
  mutable std::atomic<uint64_t> bytes_read_{0}, read_nanoseconds_{0};
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace penstock
