// Phase two of decoding: one typed loop per column over the cells of a block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/feature.h"
#include "decode/plan.h"
#include "decode/structure.h"
#include "foundation/growable_array.h"
#include "record/status.h"

namespace penstock {

struct RowFault {
  int64_t row;
  Fault fault;
  std::string detail;  // the bytes that are wrong, where they say more than the status
};

// Fills one field of the output. Which members are used depends on the layout.
class Column {
 public:
  // `fixed` is where this field's row of a shared matrix begins (kScalar), `row_offsets` where its offsets begin
  // (kList, kString, kStrings, kSteps; one entry more than rows), `present` its row of the presence matrix, or null if
  // it is required.
  Column(const FieldSpec& spec, int32_t field, bool strict, int64_t num_rows);

  void* fixed = nullptr;
  int64_t* row_offsets = nullptr;
  uint8_t* present = nullptr;

  // Before the first block, where the records stay in memory at `kept`: whether the column shows its byte strings where
  // they lie instead of copying them. Pays for large ones; the column then keeps all those bytes alive.
  void choose_views(const Structure& structure, int count, const uint8_t* kept);
  bool is_view() const { return kept_ != nullptr; }

  // Reads the cells of `count` rows; the first is row `start` of the output. A row in `bad` gets nothing. New faults
  // are added to `faults`, with the row filled as if it were absent.
  void read(const Structure& structure, int count, int64_t start, const bool* bad, std::vector<RowFault>& faults);

  GrowableArray<int64_t> ints;  // values of kList, kFixed, kSteps
  GrowableArray<float> floats;
  GrowableArray<int32_t> codes;          // of kCoded
  GrowableArray<uint8_t> bytes;          // arena of kString, kStrings, kSteps; rows of kRaw
  GrowableArray<int64_t> value_offsets;  // where the byte strings of kStrings and kSteps begin and end in `bytes`
  GrowableArray<int64_t> step_offsets;   // where the steps of kSteps begin and end
  GrowableArray<int64_t>
      view_stops;  // of a view: where each row ends in the kept values; row_offsets says where it begins

 private:
  int read_plain_scalars(const Structure& structure, const Cell* cells, int from, int count, int64_t start);
  int read_plain_codes(const Structure& structure, const Cell* cells, int from, int count, int64_t start);
  int read_plain_strings(const Structure& structure, const Cell* cells, int from, int count, int64_t start);
  Fault read_row(const Structure& structure, const Cell& cell, int64_t row);
  Fault read_steps(Span message, bool is_entry);
  Fault append(int64_t wanted, Status wrong_count);
  void append_string(Span value);
  void fill_absent(int64_t row);
  void fill_default_steps();
  void close_step();
  void close_row(int64_t row);
  void rewind(int64_t row);

  const FieldSpec& spec_;
  const int32_t field_;
  const bool strict_;
  Feature feature_;
  const uint8_t* kept_ = nullptr;
  Span view_;  // the current row
};

}  // namespace penstock
