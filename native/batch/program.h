// A fitted pipeline as steps that run for all fields of some rows in one call: scale, encode, tokenize, pad, keep;
// and positions of dates on a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "batch/calendar.h"
#include "batch/codes.h"
#include "batch/pad.h"
#include "batch/scale.h"
#include "decode/field_column.h"
#include "foundation/dtype.h"
#include "foundation/growable_array.h"
#include "text/tokens.h"
#include "text/vocabulary.h"

namespace penstock {

// One field of the pipeline.
struct Step {
  enum class Kind : uint8_t { kScale, kEncode, kTokenize, kKeep, kCircle };
  enum class Form : uint8_t {
    kRows,      // numbers or codes, as many in each row
    kMultiHot,  // a vector with a one at each code
    kCounts,    // a vector with the number of occurrences of each code
    kPadded,    // lists as rows of `length` items
    kLongest,   // lists as rows that are as long as the longest list of the batch: kept as a piece
    kRagged,    // lists as values and offsets: kept as a piece
  };
  enum class Missing : uint8_t { kAsStored, kRefused, kFilled };

  // An output: which array, and where in its rows.
  struct Target {
    size_t array = 0, offset = 0;
  };

  Kind kind = Kind::kKeep;
  Form form = Form::kRows;
  size_t field = 0;
  bool is_list = false;
  DType stored = DType::kOther, out = DType::kOther;
  size_t width = 1;        // numbers per row, or per item of a list; codes have 1
  Target target, extra;    // unused for a piece
  bool has_extra = false;  // an indicator of missing numbers, or the mask of a list

  // kScale: one shift and factor, or one for each of `width`; the same for the fill values of missing numbers.
  ScaleOptions scale{};
  std::vector<double> shift, factor;
  std::vector<float> fill;
  bool uses_mask = true;  // false: rows that are not present have a default

  // kEncode: a table of strings or of integers, or bins. kTokenize: words, and the slots for known and unknown ones.
  std::shared_ptr<const Vocabulary> words;
  std::shared_ptr<const IntVocabulary> integers;
  std::optional<Bins> bins;
  CodeSlots slots{};
  size_t num_codes = 0;
  TextOptions text;

  // kCircle: the number for each position of a date. Missing dates get 0, or the number of another date.
  CalendarPart part = CalendarPart::kMonth;
  bool is_micros = false;
  std::vector<float> points;
  std::optional<int64_t> missing_date;

  // kKeep: what rows that are not present get.
  Missing missing = Missing::kAsStored;
  uint64_t fill_bits = 0;  // a number of type `stored`

  // Lists: at most `length` items (0: any number), a multiple of `multiple` (0: any).
  size_t length = 0, multiple = 0;
  bool from_end = false;
  PadValue pad{0, 4};
};

// Which rows of the columns: the rows of an index, or `count` rows from the first.
struct RowChoice {
  const int64_t* index = nullptr;
  size_t count = 0;

  size_t operator[](size_t i) const { return index == nullptr ? i : static_cast<size_t>(index[i]); }
};

// An array of a batch: its memory, and the bytes of a row.
struct ProgramArray {
  uint8_t* data = nullptr;
  size_t row_bytes = 0;
};

// The lists of some rows, whose length in the batch is not known yet.
struct PieceLists {
  GrowableArray<uint8_t> values;
  GrowableArray<int64_t> offsets;
};
struct Piece {
  Piece() = default;
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  size_t num_rows = 0;
  std::vector<PieceLists> lists;  // one per step with a piece
};

class Program {
 public:
  // Throws std::invalid_argument for steps that contradict themselves, or write outside of a row. `row_bytes` has the
  // size of a row of each array.
  Program(std::vector<Step> steps, std::vector<size_t> row_bytes);

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<size_t>& piece_steps() const { return piece_steps_; }
  size_t num_fields() const { return num_fields_; }
  size_t num_arrays() const { return row_bytes_.size(); }
  size_t row_bytes(size_t array) const { return row_bytes_[array]; }

  // Runs all steps for some rows of the columns, one column per field; row i becomes row first + i of the arrays. The
  // caller has checked that the index and the arrays have these rows. Returns the steps that failed: a value has no
  // code, does not fit, or a column is of a form that the step does not read. Their outputs are undefined; a piece has
  // no rows of them.
  std::vector<uint32_t> run(const std::vector<const FieldColumn*>& columns, const RowChoice& rows,
                            const std::vector<ProgramArray>& arrays, size_t first, Piece& piece) const;

  // The length of the rows of a batch; the number of items, of kRagged.
  size_t joined_length(size_t piece_number, const std::vector<const Piece*>& pieces) const;
  // Fills an array of that length, and its mask or, of kRagged, its offsets. Null: not wanted.
  void join(size_t piece_number, const std::vector<const Piece*>& pieces, size_t length, uint8_t* values, uint8_t* mask,
            int64_t* offsets) const;

 private:
  std::vector<Step> steps_;
  std::vector<size_t> row_bytes_;
  std::vector<size_t> piece_steps_;
  size_t num_fields_ = 0;
};

}  // namespace penstock
