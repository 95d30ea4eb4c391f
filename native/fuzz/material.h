// Columns for the encoder, made from a fuzzer's input: one field, how it is read back, and what each row must be.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "decode/plan.h"
#include "input.h"
#include "rows.h"
#include "write/compose.h"
#include "write/encode.h"

namespace penstock::fuzz {

// All arrays have exactly the size that they must have, so that a look past their ends is seen.
class Material {
 public:
  // What the input says comes next; `key` is its own.
  Material(Input& in, const std::string& key, bool sequence_example, int64_t num_rows);

  EncodeField field() const { return EncodeField(spec_.key, source_, spec_.layout == Layout::kSteps); }
  EncodeColumn column() const;
  const FieldSpec& spec() const { return spec_; }
  bool has(int64_t row) const { return present_ == nullptr || present_[static_cast<size_t>(row)]; }

  // The row as decoding must give it. Of a row that lacks the field nothing is said.
  RowBytes row(int64_t row) const;

  // Of a deferred field: the value that comes when the record is framed.
  bool is_late() const { return source_ == Source::kDeferred; }
  LateValue late_value(int64_t row) const { return has(row) ? LateValue::in_memory(string(row)) : LateValue{}; }

 private:
  void choose_layout(Input& in, bool sequence_example);
  void add_values(Input& in, int64_t count);
  void add_string(Input& in);
  void write_values(int64_t begin, int64_t end, RowBytes& out) const;
  int64_t num_values() const { return static_cast<int64_t>(std::max({ints_.size(), floats_.size(), starts_.size()})); }
  Span string(int64_t i) const;

  FieldSpec spec_;
  Source source_ = Source::kInts;
  bool is_ragged_ = false;  // a row has any number of values, or of steps
  bool has_ragged_steps_ = false;
  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  std::vector<uint8_t> bytes_;
  std::vector<int64_t> starts_, stops_, row_offsets_, step_offsets_;
  std::vector<uint64_t> hashes_, digests_;
  std::unique_ptr<bool[]> present_;
};

}  // namespace penstock::fuzz
