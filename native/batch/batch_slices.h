// A batch whose slices are made without Python: their rows are read and decoded, or taken from columns in memory, and
// transformed into the batch's arrays.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "batch/program.h"
#include "decode/row_reader.h"
#include "foundation/part_queue.h"

namespace penstock {

class BatchSlices : public PartJob {
 public:
  // Where the rows come from: a reader, or (null) columns in memory.
  struct Source {
    const RowReader* reader;
    const std::vector<FieldColumn>* fields;
  };

  // All of these must outlive this. `columns` has the number of the column of each field of the program. The caller has
  // checked these numbers, that there are such rows in memory, and that the arrays have `num_rows` rows.
  BatchSlices(const Source& source, const Program& program, std::vector<size_t> columns,
              std::vector<ProgramArray> arrays, const int64_t* rows, size_t num_rows, size_t num_parts);

  size_t num_parts() const override { return pieces_.size(); }
  bool run(size_t part) noexcept override;

  bool has_pieces() const { return !program_.piece_steps().empty(); }

  // The lists of a part whose length in the batch is not known yet; null if there are none. Call it once.
  std::unique_ptr<Piece> take_piece(size_t part) { return std::move(pieces_[part]); }

  double read_seconds() const { return 1e-9 * static_cast<double>(read_nanoseconds_.load()); }
  double transform_seconds() const { return 1e-9 * static_cast<double>(transform_nanoseconds_.load()); }

 private:
  bool make(size_t part);

  Source source_;
  const Program& program_;
  std::vector<size_t> columns_;
  std::vector<ProgramArray> arrays_;
  const int64_t* rows_;
  size_t num_rows_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::atomic<int64_t> read_nanoseconds_{0}, transform_nanoseconds_{0};
};

}  // namespace penstock
