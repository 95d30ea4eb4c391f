// One run of a program over some rows: scratch memory, and one function per kind of step.
#pragma once

#include <vector>

#include "batch/program.h"
#include "foundation/bytes.h"
#include "foundation/pool.h"

namespace penstock {

class ProgramRun {
 public:
  ProgramRun(const RowChoice& rows, const std::vector<ProgramArray>& arrays, size_t first)
      : rows_(rows), arrays_(arrays), first_(first) {}

  // Asks for the memory of rows in any order before it is read, which takes several times as long otherwise: first
  // where strings and lists begin, then their bytes. Offsets that lie outside are left alone.
  void prefetch_offsets(const FieldColumn& column) const;
  void prefetch_values(const FieldColumn& column) const;

  // False if the step failed; `lists` is null unless the step has a piece.
  bool run(const Step& step, const FieldColumn& column, PieceLists* lists);

 private:
  // Where an output's rows go.
  struct Rows {
    uint8_t* data;
    size_t stride;
    uint8_t* operator[](size_t i) const { return data + i * stride; }
  };
  enum Purpose { kGathered, kNarrowed, kWidened, kResult, kMask, kItems, kNumPurposes };

  // Numbers: program_numbers.cc
  bool run_numbers(const Step& step, const FieldColumn& column);
  bool scale_items(const Step& step, const uint8_t* values, const uint8_t* present, size_t count, float* out);
  void place_dates(const Step& step, const uint8_t* values, const uint8_t* present, size_t count, float* out) const;
  bool keep_rows(const Step& step, const uint8_t* values, const uint8_t* present, size_t count, uint8_t* out);
  void indicate(const Step& step, const uint8_t* values, const uint8_t* present, size_t count, const Rows& out) const;
  const uint8_t* stored_numbers(const Step& step, const FieldColumn& column, const uint8_t* values, size_t count);
  bool has_numbers(const Step& step, const FieldColumn& column) const;

  // Codes, texts and lists: program_lists.cc
  bool run_codes(const Step& step, const FieldColumn& column);
  bool run_lists(const Step& step, const FieldColumn& column, PieceLists* lists);
  bool convert_list(const Step& step, const FieldColumn& column, size_t start, size_t count, uint8_t* out);
  bool run_texts(const Step& step, const FieldColumn& column, PieceLists* lists);
  void put_list(const Step& step, size_t row, const uint8_t* items, size_t count, PieceLists* lists) const;
  uint8_t* list_room(const Step& step, size_t row, size_t count, PieceLists* lists) const;
  void end_list(const Step& step, size_t row, size_t count, PieceLists* lists) const;
  static void mark_codes(const Step& step, const int32_t* codes, size_t count, uint8_t* out);

  Rows rows_of(const Step::Target& target) const {
    const ProgramArray& array = arrays_[target.array];
    return {array.data + first_ * array.row_bytes + target.offset, array.row_bytes};
  }
  const uint8_t* mask_of(const FieldColumn& column, size_t from, size_t count);

  template <typename T>
  T* room(Purpose purpose, size_t count) {
    scratch_[purpose].reserve(count * sizeof(T) + 16, 0);
    return scratch_[purpose].as<T>();
  }

  const RowChoice& rows_;
  const std::vector<ProgramArray>& arrays_;
  const size_t first_;
  Buffer scratch_[kNumPurposes];
};

// Copies contiguous rows of `row_bytes` to rows that lie `stride` bytes apart.
void copy_rows(const uint8_t* from, size_t row_bytes, uint8_t* to, size_t stride, size_t count);

}  // namespace penstock
