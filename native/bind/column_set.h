// The columns of some rows, as a program reads them: decoded by the core, or arrays of Python.
#pragma once

#include <memory>
#include <vector>

#include "bind/numpy.h"
#include "decode/decode.h"
#include "decode/field_column.h"

namespace penstock {

class ColumnSet {
 public:
  // What the decoder `owner` decoded; it stays alive with the columns.
  ColumnSet(Decoded decoded, const Decoder& decoder, nb::object owner);
  // Arrays, which the caller must not change while a program runs. Each field is given as
  //     (form, values, starts, stops, offsets, present)
  // where `form` is 0 for none, 1 for numbers in `values`, 2 for strings in `values` from `starts` to `stops`, 3 for
  // codes in `values`; `offsets` is given for lists; None stands for arrays that are not needed.
  ColumnSet(size_t num_rows, nb::sequence given);

  ColumnSet(const ColumnSet&) = delete;
  ColumnSet& operator=(const ColumnSet&) = delete;

  size_t num_rows() const { return num_rows_; }
  const std::vector<FieldColumn>& fields() const { return fields_; }

  // The arrays of a field that was decoded: (values, row offsets or None, mask or None). Values are an array; of byte
  // strings that stay where they were read (arena, stops); of several strings per row (arena, offsets); of steps
  // (values or arena, offsets of strings or None, offsets of steps).
  nb::tuple arrays(size_t field);
  // The arrays of all fields, in their order.
  nb::list all_arrays();

 private:
  struct Shared {
    std::shared_ptr<Buffer> values, ends, steps;
  };
  nb::object values(size_t field, Column& column);
  FieldColumn plain(nb::handle given);

  size_t num_rows_;
  std::vector<FieldColumn> fields_;
  std::vector<nb::object> held_;
  // Arrays of one field keep the memory of that field alive, not of all.
  std::unique_ptr<Decoded> decoded_;
  const Decoder* decoder_ = nullptr;
  std::shared_ptr<Buffer> ints_, floats_, offsets_, present_, kept_;
  std::vector<Shared> shared_;
};

}  // namespace penstock
