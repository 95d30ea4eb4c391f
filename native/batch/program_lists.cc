// Steps of codes, texts and lists.
#include <algorithm>
#include <cstring>
#include <limits>

#include "batch/cast.h"
#include "batch/program_run.h"

namespace penstock {
namespace {

constexpr int32_t kUnknownError = -2, kMissingError = -3;  // as in transform/category_codes.py

bool is_strict(const Step& step) { return std::min(step.slots.unknown, step.slots.missing) <= kUnknownError; }

bool has_error(const int32_t* codes, size_t count) {
  int32_t least = 0;
  for (size_t i = 0; i < count; i++) least = std::min(least, codes[i]);
  return least <= kUnknownError;
}

// A string of a column; false if it does not lie in the arena.
bool string_at(const FieldColumn& column, size_t item, Span& found) {
  const int64_t begin = column.begins[item * column.span_stride], end = column.ends[item * column.span_stride];
  if (begin < 0 || end < begin || static_cast<uint64_t>(end) > column.arena_bytes) return false;
  found = Span{column.arena + begin, static_cast<size_t>(end - begin)};
  return true;
}

int32_t find_word(const Vocabulary& words, const FieldColumn& column, Span value) {
  const size_t after = column.arena_bytes - static_cast<size_t>(value.end() - column.arena);
  return after >= Vocabulary::kShort ? words.find_padded(value) : words.find(value);
}

// Writes the number of each item in the vocabulary or, with bins, its final code. False if the step has neither for
// such items.
template <typename Item>
bool find_codes(const Step& step, const FieldColumn& column, size_t count, const Item& item, int32_t* out) {
  const int32_t first = step.slots.first;
  if (column.form == FieldColumn::Form::kStrings) {
    if (!step.bins && step.words == nullptr) return false;
    for (size_t i = 0; i < count; i++) {
      Span value;
      if (PENSTOCK_UNLIKELY(!string_at(column, item(i), value))) return false;
      out[i] = step.bins ? first + step.bins->bin(value) : find_word(*step.words, column, value);
    }
    return true;
  }
  if (column.form == FieldColumn::Form::kCodes) {
    if (step.bins || step.words == nullptr) return false;
    for (size_t i = 0; i < count; i++) std::memcpy(out + i, column.values + item(i) * column.stride, sizeof(int32_t));
    return true;
  }
  const bool is_integer = column.form == FieldColumn::Form::kNumbers && column.dtype == DType::kInt64 &&
                          column.width == 1 && !column.is_raw;
  if (!is_integer || (!step.bins && step.integers == nullptr)) return false;
  for (size_t i = 0; i < count; i++) {
    int64_t value;
    std::memcpy(&value, column.values + item(i) * column.stride, sizeof value);
    out[i] = step.bins ? first + step.bins->bin(value) : step.integers->find(value);
  }
  return true;
}

template <typename T>
void fill_numbers(uint8_t* out, size_t count, uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  std::fill_n(reinterpret_cast<T*>(out), count, value);
}

}  // namespace

void ProgramRun::mark_codes(const Step& step, const int32_t* codes, size_t count, uint8_t* out) {
  auto* const row = reinterpret_cast<float*>(out);
  const int64_t offsets[2] = {0, static_cast<int64_t>(count)};
  multi_hot(codes, offsets, 1, step.num_codes, step.form == Step::Form::kCounts, row);
}

bool ProgramRun::run_codes(const Step& step, const FieldColumn& column) {
  if (column.is_list) return false;
  const size_t count = rows_.count;
  const Rows out = rows_of(step.target);
  const bool is_direct = step.form == Step::Form::kRows && out.stride == sizeof(int32_t);
  auto* const codes = is_direct ? reinterpret_cast<int32_t*>(out[0]) : room<int32_t>(kResult, count);
  if (!find_codes(step, column, count, [&](size_t i) { return rows_[i]; }, codes)) return false;
  const uint8_t* const present = mask_of(column, 0, count);
  if (!step.bins) {
    if (!place_codes(codes, present, count, step.slots, codes)) return false;
  } else if (present != nullptr) {
    for (size_t i = 0; i < count; i++) codes[i] = present[i] != 0 ? codes[i] : step.slots.missing;
  }
  if (is_strict(step) && has_error(codes, count)) return false;
  if (step.form != Step::Form::kRows) {
    for (size_t i = 0; i < count; i++) mark_codes(step, codes + i, 1, out[i]);
  } else if (!is_direct) {
    copy_rows(reinterpret_cast<const uint8_t*>(codes), sizeof(int32_t), out[0], out.stride, count);
  }
  return true;
}

// Converts items of a column. False if one has no code, or does not fit.
bool ProgramRun::convert_list(const Step& step, const FieldColumn& column, size_t start, size_t count, uint8_t* out) {
  if (step.kind == Step::Kind::kEncode) {
    auto* const codes = reinterpret_cast<int32_t*>(out);
    if (!find_codes(step, column, count, [&](size_t i) { return start + i; }, codes)) return false;
    if (!step.bins && !place_codes(codes, nullptr, count, step.slots, codes)) return false;
    return !is_strict(step) || !has_error(codes, count);
  }
  if (count == 0) return true;
  const uint8_t* values = column.values + start * column.width * item_bytes(column.dtype);
  values = stored_numbers(step, column, values, count * step.width);
  if (values == nullptr) return false;
  if (step.kind == Step::Kind::kScale) {
    return scale_items(step, values, nullptr, count, reinterpret_cast<float*>(out));
  }
  return cast_array(values, step.stored, count * step.width, step.out, out);
}

// Where to write a list that is not truncated; null if it is.
uint8_t* ProgramRun::list_room(const Step& step, size_t row, size_t count, PieceLists* lists) const {
  if (step.length != 0 && count > step.length) return nullptr;
  if (step.form == Step::Form::kPadded) return rows_of(step.target)[row];
  return lists->values.room(count * step.width * item_bytes(step.out));
}

// Ends the list of a row after `count` written items.
void ProgramRun::end_list(const Step& step, size_t row, size_t count, PieceLists* lists) const {
  const size_t bytes = step.width * item_bytes(step.out);
  if (step.form != Step::Form::kPadded) {
    lists->values.advance(count * bytes);
    lists->offsets.push(static_cast<int64_t>(lists->values.size() / bytes));
    return;
  }
  uint8_t* const rest = rows_of(step.target)[row] + count * bytes;
  const size_t num_rest = (step.length - count) * step.width;
  if (step.pad.bytes == 8) fill_numbers<uint64_t>(rest, num_rest, step.pad.bits);
  else if (step.pad.bytes == 4) fill_numbers<uint32_t>(rest, num_rest, step.pad.bits);
  else fill_numbers<uint8_t>(rest, num_rest, step.pad.bits);
  if (!step.has_extra) return;
  uint8_t* const mask = rows_of(step.extra)[row];
  std::memset(mask, 1, count);
  std::memset(mask + count, 0, step.length - count);
}

// Writes a list, truncated to the length of the step.
void ProgramRun::put_list(const Step& step, size_t row, const uint8_t* items, size_t count, PieceLists* lists) const {
  const size_t bytes = step.width * item_bytes(step.out);
  const size_t kept = step.length == 0 ? count : std::min(count, step.length);
  if (step.from_end) items += (count - kept) * bytes;
  if (kept != 0) std::memcpy(list_room(step, row, kept, lists), items, kept * bytes);
  end_list(step, row, kept, lists);
}

bool ProgramRun::run_lists(const Step& step, const FieldColumn& column, PieceLists* lists) {
  if (!column.is_list) return false;
  const bool is_coded = step.kind == Step::Kind::kEncode;
  if (!is_coded && !has_numbers(step, column)) return false;
  const bool needs_list = is_coded && step.slots.missing == kMissingError && column.present != nullptr;
  const bool is_vector = step.form == Step::Form::kMultiHot || step.form == Step::Form::kCounts;
  const size_t bytes = step.width * item_bytes(is_coded ? DType::kInt32 : step.out);
  for (size_t i = 0; i < rows_.count; i++) {
    const size_t row = rows_[i];
    const int64_t start = column.starts[row], stop = column.stops[row];
    if (PENSTOCK_UNLIKELY(start < 0 || stop < start || static_cast<uint64_t>(stop) > column.num_items)) return false;
    if (needs_list && column.present[row * column.present_stride] == 0) return false;
    const auto first = static_cast<size_t>(start), count = static_cast<size_t>(stop - start);
    uint8_t* const direct = is_vector ? nullptr : list_room(step, i, count, lists);
    uint8_t* const items = direct == nullptr ? room<uint8_t>(kItems, count * bytes) : direct;
    if (!convert_list(step, column, first, count, items)) return false;
    if (is_vector) {
      mark_codes(step, reinterpret_cast<const int32_t*>(items), count, rows_of(step.target)[i]);
    } else if (direct != nullptr) {
      end_list(step, i, count, lists);
    } else {
      put_list(step, i, items, count, lists);
    }
  }
  return true;
}

bool ProgramRun::run_texts(const Step& step, const FieldColumn& column, PieceLists* lists) {
  if (column.form != FieldColumn::Form::kStrings || column.is_list) return false;
  const TokenIds ids{*step.words, step.slots.first, step.slots.unknown};
  const bool is_vector = step.form == Step::Form::kMultiHot || step.form == Step::Form::kCounts;
  const bool is_direct = step.form == Step::Form::kPadded && !step.from_end;
  const bool is_cut = step.length != 0 && !step.from_end && !is_vector;
  const size_t most = is_cut ? step.length : std::numeric_limits<size_t>::max();
  TokenSplitter splitter(step.text);
  GrowableArray<int32_t> found;
  if (lists != nullptr && (!step.from_end || step.length == 0)) {
    // The ids of all texts, one after the other.
    for (size_t i = 0; i < rows_.count; i++) {
      Span text;
      if (PENSTOCK_UNLIKELY(!string_at(column, rows_[i], text))) return false;
      append_ids(splitter, text, ids, most, found);
      lists->offsets.push(static_cast<int64_t>(found.size()));
    }
    const size_t bytes = found.size() * sizeof(int32_t);
    if (bytes != 0) std::memcpy(lists->values.room(bytes), found.data(), bytes);
    lists->values.advance(bytes);
    return true;
  }
  for (size_t i = 0; i < rows_.count; i++) {
    Span text;
    if (PENSTOCK_UNLIKELY(!string_at(column, rows_[i], text))) return false;
    if (is_direct) {
      auto* const out = reinterpret_cast<int32_t*>(rows_of(step.target)[i]);
      end_list(step, i, write_ids(splitter, text, ids, most, out), lists);
      continue;
    }
    found.truncate(0);
    append_ids(splitter, text, ids, most, found);
    if (is_vector) {
      mark_codes(step, found.data(), found.size(), rows_of(step.target)[i]);
    } else {
      put_list(step, i, reinterpret_cast<const uint8_t*>(found.data()), found.size(), lists);
    }
  }
  return true;
}

void ProgramRun::prefetch_offsets(const FieldColumn& column) const {
  const int64_t* const offsets = column.is_list ? column.starts : column.begins;
  if (rows_.index == nullptr || offsets == nullptr) return;
  const size_t stride = column.is_list ? 1 : column.span_stride;
  for (size_t i = 0; i < rows_.count; i++) __builtin_prefetch(offsets + rows_[i] * stride);
}

void ProgramRun::prefetch_values(const FieldColumn& column) const {
  if (rows_.index == nullptr) return;
  if (column.is_list) {
    if (column.form == FieldColumn::Form::kStrings) return;
    const size_t bytes = column.width * item_bytes(column.dtype);
    for (size_t i = 0; i < rows_.count; i++) {
      const auto start = static_cast<uint64_t>(column.starts[rows_.index[i]]);
      if (start < column.num_items) __builtin_prefetch(column.values + start * bytes);
    }
  } else if (column.form == FieldColumn::Form::kStrings) {
    for (size_t i = 0; i < rows_.count; i++) {
      const auto begin = static_cast<uint64_t>(column.begins[rows_[i] * column.span_stride]);
      if (begin < column.arena_bytes) __builtin_prefetch(column.arena + begin);
    }
  } else if (column.values != nullptr) {
    for (size_t i = 0; i < rows_.count; i++) __builtin_prefetch(column.values + rows_[i] * column.stride);
  }
}

bool ProgramRun::run(const Step& step, const FieldColumn& column, PieceLists* lists) {
  if (step.kind == Step::Kind::kTokenize) return run_texts(step, column, lists);
  if (step.is_list) return run_lists(step, column, lists);
  return step.kind == Step::Kind::kEncode ? run_codes(step, column) : run_numbers(step, column);
}

}  // namespace penstock
