#include "batch/program.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "batch/cast.h"
#include "batch/program_run.h"

namespace penstock {
namespace {

void need(bool holds, const char* fault) {
  if (!holds) throw std::invalid_argument(fault);
}

bool has_piece(const Step& step) { return step.form == Step::Form::kLongest || step.form == Step::Form::kRagged; }

void check_scale(const Step& step) {
  const auto fits = [&](size_t size) { return size == 1 || size == step.width; };
  need(fits(step.shift.size()) && fits(step.fill.size()), "a scale has other numbers of terms than its rows");
  need(step.shift.size() == step.factor.size(), "a scale has other numbers of factors than of shifts");
  need(step.out == DType::kFloat32, "a scale makes float32");
  need(can_cast(step.stored, DType::kFloat32), "a scale of a type that has none");
}

void check_circle(const Step& step) {
  need(step.stored == DType::kInt64 && step.out == DType::kFloat32 && step.width == 1, "a circle is of one int64");
  need(step.points.size() == num_positions(step.part), "a circle has other numbers of points than of positions");
  need(step.part != CalendarPart::kHour || step.is_micros, "days have no hours");
}

void check_codes(const Step& step) {
  need(step.width == 1, "codes have one number per item");
  if (step.kind == Step::Kind::kTokenize) {
    need(step.words != nullptr && !step.is_list, "texts need a vocabulary");
  } else {
    const int sources = (step.words != nullptr) + (step.integers != nullptr) + step.bins.has_value();
    need(sources == 1, "codes need a vocabulary or bins");
  }
  const size_t size = step.words != nullptr      ? step.words->size()
                      : step.integers != nullptr ? step.integers->size()
                                                 : step.num_codes;
  need(size <= INT32_MAX && step.slots.first <= INT32_MAX - static_cast<int64_t>(size), "codes do not fit int32");
}

// What a step writes to each row of its array.
size_t bytes_per_row(const Step& step) {
  switch (step.form) {
    case Step::Form::kRows:
      return step.width * item_bytes(step.out);
    case Step::Form::kMultiHot:
    case Step::Form::kCounts:
      return step.num_codes * sizeof(float);
    default:
      return step.length * step.width * item_bytes(step.out);
  }
}

void check_step(const Step& step, const std::vector<size_t>& row_bytes) {
  constexpr size_t kMost = size_t{1} << 40;
  need(step.width >= 1 && step.width <= kMost && step.length <= kMost && step.num_codes <= kMost,
       "a step has an impossible width or length");
  const bool is_code = step.kind == Step::Kind::kEncode || step.kind == Step::Kind::kTokenize;
  const bool is_vector = step.form == Step::Form::kMultiHot || step.form == Step::Form::kCounts;
  if (step.kind == Step::Kind::kScale) check_scale(step);
  else if (step.kind == Step::Kind::kCircle) check_circle(step);
  else if (is_code) check_codes(step);
  else need(can_cast(step.stored, step.out), "a step has no such cast");
  need(step.kind != Step::Kind::kCircle || !step.is_list, "only numbers of rows are on a circle");
  need(!is_vector || is_code, "only codes become vectors");
  if (is_code)
    need(step.out == (is_vector ? DType::kFloat32 : DType::kInt32), "a step has another type than its codes");
  const bool is_list = step.is_list || step.kind == Step::Kind::kTokenize;
  const bool has_lists = is_vector || step.form != Step::Form::kRows;
  need(is_list ? has_lists : step.form == Step::Form::kRows || is_vector, "a step has another form than its values");
  const size_t item = item_bytes(step.out);
  if (step.form == Step::Form::kPadded || step.form == Step::Form::kLongest) {
    need(step.pad.bytes == item && item != 2, "the padding has another type than its rows");
    need(step.form == Step::Form::kLongest || step.length != 0, "rows need a length");
  }
  if (has_piece(step)) return;
  const auto holds = [&](const Step::Target& target, size_t bytes, size_t each) {
    return target.array < row_bytes.size() && target.offset <= row_bytes[target.array] &&
           bytes <= row_bytes[target.array] - target.offset && target.offset % each == 0 &&
           row_bytes[target.array] % each == 0;
  };
  need(holds(step.target, bytes_per_row(step), item), "a step writes outside of the rows of its array");
  if (!step.has_extra) return;
  const bool is_mask = is_list;
  need(holds(step.extra, is_mask ? step.length : sizeof(float), is_mask ? 1 : sizeof(float)),
       "a step writes outside of the rows of its second array");
}

}  // namespace

Program::Program(std::vector<Step> steps, std::vector<size_t> row_bytes)
    : steps_(std::move(steps)), row_bytes_(std::move(row_bytes)) {
  for (size_t i = 0; i < steps_.size(); i++) {
    check_step(steps_[i], row_bytes_);
    if (has_piece(steps_[i])) piece_steps_.push_back(i);
    num_fields_ = std::max(num_fields_, steps_[i].field + 1);
  }
}

std::vector<uint32_t> Program::run(const std::vector<const FieldColumn*>& columns, const RowChoice& rows,
                                   const std::vector<ProgramArray>& arrays, size_t first, Piece& piece) const {
  std::vector<uint32_t> failed;
  ProgramRun one(rows, arrays, first);
  piece.num_rows = rows.count;
  piece.lists = std::vector<PieceLists>(piece_steps_.size());
  size_t next_piece = 0;
  for (size_t i = 0; i < steps_.size(); i++) {
    const Step& step = steps_[i];
    PieceLists* const lists = has_piece(step) ? &piece.lists[next_piece++] : nullptr;
    if (lists != nullptr) lists->offsets.push(0);
    if (i + 2 < steps_.size()) one.prefetch_offsets(*columns[steps_[i + 2].field]);
    if (i + 1 < steps_.size()) one.prefetch_values(*columns[steps_[i + 1].field]);
    if (one.run(step, *columns[step.field], lists)) continue;
    failed.push_back(static_cast<uint32_t>(i));
    if (lists == nullptr) continue;
    lists->values.truncate(0);  // offsets may have run ahead of the values
    lists->offsets.truncate(1);
  }
  return failed;
}

size_t Program::joined_length(size_t piece_number, const std::vector<const Piece*>& pieces) const {
  const Step& step = steps_[piece_steps_[piece_number]];
  size_t total = 0, longest = 1;  // a batch of empty rows has one column: most layers do not accept none
  for (const Piece* piece : pieces) {
    const GrowableArray<int64_t>& offsets = piece->lists[piece_number].offsets;
    for (size_t i = 0; i + 1 < offsets.size(); i++) {
      longest = std::max(longest, static_cast<size_t>(offsets.data()[i + 1] - offsets.data()[i]));
    }
    total += static_cast<size_t>(offsets.data()[offsets.size() - 1]);
  }
  if (step.form == Step::Form::kRagged) return total;
  const size_t multiple = std::max<size_t>(step.multiple, 1);
  const size_t length = (longest + multiple - 1) / multiple * multiple;
  return step.length == 0 ? length : std::min(length, step.length);
}

void Program::join(size_t piece_number, const std::vector<const Piece*>& pieces, size_t length, uint8_t* values,
                   uint8_t* mask, int64_t* offsets) const {
  const Step& step = steps_[piece_steps_[piece_number]];
  const size_t item = step.width * item_bytes(step.out);
  if (offsets != nullptr) *offsets++ = 0;
  int64_t total = 0;
  for (const Piece* piece : pieces) {
    const PieceLists& lists = piece->lists[piece_number];
    const size_t rows = lists.offsets.size() - 1;
    const int64_t* const ends = lists.offsets.data();
    if (step.form == Step::Form::kRagged) {
      if (lists.values.size() != 0) std::memcpy(values, lists.values.data(), lists.values.size());
      values += lists.values.size();
      for (size_t i = 0; i < rows; i++) *offsets++ = total + ends[i + 1];
      total += ends[rows];
      continue;
    }
    if (lists.values.size() == rows * length * item) {  // no list is longer: all are as long
      if (lists.values.size() != 0) std::memcpy(values, lists.values.data(), lists.values.size());
    } else {
      pad_lists(lists.values.data(), ends, rows, length, step.width, step.pad, false, values);
    }
    values += rows * length * item;
    if (mask == nullptr) continue;
    mask_lists(ends, rows, length, mask);
    mask += rows * length;
  }
}

}  // namespace penstock
