#include "decode/column.h"

#include <cstring>

#include "decode/packed_varints.h"
#include "record/wire.h"

namespace penstock {
namespace {

Fault fault_of(Status status, int64_t expected = 0, int64_t got = 0) { return Fault{status, -1, expected, got}; }

Span span_of(const std::string& value) { return Span{reinterpret_cast<const uint8_t*>(value.data()), value.size()}; }

}  // namespace

Column::Column(const FieldSpec& spec, int32_t field, bool strict, int64_t num_rows)
    : spec_(spec), field_(field), strict_(strict) {
  const auto rows = static_cast<size_t>(num_rows);
  if (spec.layout == Layout::kFixed || spec.layout == Layout::kRaw) {
    const auto count = static_cast<size_t>(spec.count);
    if (spec.layout == Layout::kRaw) bytes.room(rows * count);
    else if (spec.kind == Kind::kInt64) ints.room(rows * count);
    else floats.room(rows * count);
  }
  if (spec.layout == Layout::kCoded) codes.room(rows);
  // Offsets have a leading zero.
  if (spec.kind == Kind::kBytes && (spec.layout == Layout::kStrings || spec.layout == Layout::kSteps)) {
    value_offsets.push(0);
  }
  if (spec.layout == Layout::kSteps) step_offsets.push(0);
}

void Column::choose_views(const Structure& structure, int count, const uint8_t* kept) {
  constexpr size_t kSmallestView = 1024;  // below that, a copy costs less than what it would keep alive
  if (spec_.layout != Layout::kString || !spec_.default_strings.empty()) return;
  const Cell* const cells = structure.column(static_cast<size_t>(field_));
  size_t total = 0;
  for (int row = 0; row < count; row++) total += cells[row].size();
  if (total >= kSmallestView * static_cast<size_t>(count)) kept_ = kept;
}

// The loops below take rows while they are plain and stop at the first that is not; they return where they stopped.

int Column::read_plain_scalars(const Structure& structure, const Cell* cells, int from, int count, int64_t start) {
  int row = from;
  if (spec_.kind == Kind::kFloat) {
    float* const out = static_cast<float*>(fixed) + start;
    for (; row < count; row++) {
      const Cell cell = cells[row];
      if (cell.absent() || cell.size_and_form != 4) break;
      std::memcpy(out + row, structure.bytes(cell).data, 4);
    }
  } else {
    int64_t* const out = static_cast<int64_t*>(fixed) + start;
    const uint32_t longest = strict_ ? 9 : 10;
    for (; row < count; row++) {
      const Cell cell = cells[row];
      if (cell.absent() || cell.size_and_form - 1 >= longest) break;
      if (!read_sized_varint(structure.bytes(cell).data, cell.size_and_form, out[row])) break;
    }
  }
  return row;
}

int Column::read_plain_codes(const Structure& structure, const Cell* cells, int from, int count, int64_t start) {
  const Vocabulary& vocabulary = *spec_.vocabulary;
  int32_t* const out = codes.data() + start;
  int stop = from;
  while (stop < count && !cells[stop].absent() && !cells[stop].general()) stop++;
  if (!vocabulary.is_large()) {
    for (int row = from; row < stop; row++) out[row] = vocabulary.find_padded(structure.bytes(cells[row]));
    return stop;
  }
  Vocabulary::Lookup lookups[kBlockRows];
  for (int row = from; row < stop; row++) lookups[row].begin(vocabulary, structure.bytes(cells[row]));
  for (int row = from; row < stop; row++) lookups[row].touch(vocabulary);
  for (int row = from; row < stop; row++) out[row] = lookups[row].end(vocabulary);
  return stop;
}

int Column::read_plain_strings(const Structure& structure, const Cell* cells, int from, int count, int64_t start) {
  int stop = from;
  if (is_view()) {
    for (; stop < count && !cells[stop].absent() && !cells[stop].general(); stop++) {
      view_ = structure.bytes(cells[stop]);
      close_row(start + stop);
    }
    return stop;
  }
  size_t total = 0;
  for (; stop < count && !cells[stop].absent() && !cells[stop].general(); stop++) total += cells[stop].size_and_form;
  uint8_t* out = bytes.room(total);
  auto end = static_cast<int64_t>(bytes.size());
  for (int row = from; row < stop; row++) {
    const Span value = structure.bytes(cells[row]);
    if (PENSTOCK_LIKELY(value.size <= 16)) {
      std::memcpy(out, value.data, 16);  // one move; the next value overwrites the surplus
    } else {
      std::memcpy(out, value.data, value.size);
    }
    out += value.size;
    end += static_cast<int64_t>(value.size);
    row_offsets[start + row + 1] = end;
  }
  bytes.advance(total);
  return stop;
}

void Column::read(const Structure& structure, int count, int64_t start, const bool* bad,
                  std::vector<RowFault>& faults) {
  const Cell* const cells = structure.column(static_cast<size_t>(field_));
  int row = 0;
  while (row < count) {
    const int from = row;
    if (spec_.layout == Layout::kScalar) row = read_plain_scalars(structure, cells, row, count, start);
    if (spec_.layout == Layout::kString) row = read_plain_strings(structure, cells, row, count, start);
    if (spec_.layout == Layout::kCoded) row = read_plain_codes(structure, cells, row, count, start);
    if (present != nullptr) std::memset(present + start + from, 1, static_cast<size_t>(row - from));
    if (row == count) return;
    const int64_t at = start + row;
    const Cell& cell = cells[row];
    if (bad[row]) {
      fill_absent(at);
    } else if (Fault fault = read_row(structure, cell, at)) {
      fault.field = field_;
      faults.push_back({at, fault, {}});
    }
    row++;
  }
}

Fault Column::read_row(const Structure& structure, const Cell& cell, int64_t row) {
  feature_.clear();
  Fault fault;
  if (cell.absent()) {
    fill_absent(row);
    return spec_.required ? fault_of(Status::kMissing) : Fault{};
  }
  if (spec_.layout == Layout::kSteps) {
    fault = read_steps(structure.bytes(cell), cell.general());
    if (fault) rewind(row);
    if (present != nullptr) present[row] = !fault;
    close_row(row);
    return fault;
  }
  if (cell.general()) {
    const Status status = feature_.merge_entry(structure.bytes(cell));
    if (status != Status::kOk) fault = fault_of(status);
    if (!fault && feature_.kind() == Kind::kUnset) {  // a key without a kind says that the value is missing
      fill_absent(row);
      return spec_.required ? fault_of(Status::kMissing) : Fault{};
    }
    if (!fault && feature_.kind() != spec_.kind) {
      fault = fault_of(Status::kWrongKind, static_cast<int64_t>(spec_.kind), static_cast<int64_t>(feature_.kind()));
    }
  } else {
    feature_.assume(spec_.kind, structure.bytes(cell));
    if (spec_.kind == Kind::kFloat && cell.size() % 4 != 0) fault = fault_of(Status::kPackedFloatSize);
  }
  if (!fault) {
    const bool is_one =
        spec_.layout == Layout::kRaw || spec_.layout == Layout::kString || spec_.layout == Layout::kCoded;
    fault = append(is_one ? 1 : spec_.count, Status::kWrongCount);
  }
  if (fault) {
    rewind(row);
    fill_absent(row);
    if (present != nullptr) present[row] = 0;
    return fault;
  }
  if (present != nullptr) present[row] = 1;
  if (spec_.layout == Layout::kCoded) {
    codes.data()[row] = spec_.vocabulary->find(Span{bytes.data(), bytes.size()});
    bytes.truncate(0);
  }
  if (spec_.layout == Layout::kScalar) {
    if (spec_.kind == Kind::kInt64) {
      static_cast<int64_t*>(fixed)[row] = ints.data()[0];
      ints.truncate(0);
    } else {
      static_cast<float*>(fixed)[row] = floats.data()[0];
      floats.truncate(0);
    }
  }
  close_row(row);
  return Fault{};
}

Fault Column::read_steps(Span message, bool is_entry) {
  if (is_entry) {
    for (Cursor in(message, kInEntry); !in.done();) {
      Span list;
      bool found;
      if (Status s = read_field(in, 2, list, found); s != Status::kOk) return fault_of(s);
      if (!found) continue;
      if (Fault fault = read_steps(list, false)) return fault;
    }
    return Fault{};
  }
  for (Cursor in(message, kInFeature); !in.done();) {
    Span step;
    bool found;
    if (Status s = read_field(in, 1, step, found); s != Status::kOk) return fault_of(s);
    if (!found) continue;
    feature_.clear();
    if (Status s = feature_.merge(step, kInStep); s != Status::kOk) return fault_of(s);
    if (feature_.kind() != Kind::kUnset && feature_.kind() != spec_.kind) {
      return fault_of(Status::kWrongKind, static_cast<int64_t>(spec_.kind), static_cast<int64_t>(feature_.kind()));
    }
    if (Fault fault = append(spec_.count, Status::kWrongStepCount)) return fault;
    close_step();
  }
  return Fault{};
}

// Appends the values of feature_; `wanted` of them, unless that is negative.
Fault Column::append(int64_t wanted, Status wrong_count) {
  int64_t count = 0;
  if (spec_.kind == Kind::kInt64) {
    for (const Span& piece : feature_.pieces()) {
      size_t unpacked;
      const Status status = unpack_varints(piece, strict_, ints.room(piece.size), unpacked);
      if (status != Status::kOk) return fault_of(status);
      ints.advance(unpacked);
      count += static_cast<int64_t>(unpacked);
    }
    if (wanted >= 0 && count != wanted) return fault_of(wrong_count, wanted, count);
    return Fault{};
  }
  count = feature_.num_pieced();
  if (wanted >= 0 && count != wanted) return fault_of(wrong_count, wanted, count);
  for (const Span& piece : feature_.pieces()) {
    if (spec_.kind == Kind::kFloat) {
      std::memcpy(floats.room(piece.size / 4), piece.data, piece.size);
      floats.advance(piece.size / 4);
    } else if (spec_.layout == Layout::kRaw && piece.size != static_cast<size_t>(spec_.count)) {
      return fault_of(Status::kWrongSize, spec_.count, static_cast<int64_t>(piece.size));
    } else {
      append_string(piece);
    }
  }
  return Fault{};
}

void Column::append_string(Span value) {
  if (is_view()) {
    view_ = value;
    return;
  }
  std::memcpy(bytes.room(value.size), value.data, value.size);
  bytes.advance(value.size);
  if (spec_.layout == Layout::kStrings || spec_.layout == Layout::kSteps) {
    value_offsets.push(static_cast<int64_t>(bytes.size()));
  }
}

// Writes the default of a row that lacks the field, or zeros, or nothing.
void Column::fill_absent(int64_t row) {
  if (present != nullptr) present[row] = 0;
  const auto count = static_cast<size_t>(spec_.count < 0 ? 0 : spec_.count);
  const bool ints_given = !spec_.default_ints.empty(), floats_given = !spec_.default_floats.empty();
  switch (spec_.layout) {
    case Layout::kScalar:
      if (spec_.kind == Kind::kInt64) static_cast<int64_t*>(fixed)[row] = ints_given ? spec_.default_ints[0] : 0;
      else static_cast<float*>(fixed)[row] = floats_given ? spec_.default_floats[0] : 0;
      break;
    case Layout::kFixed:
      if (spec_.kind == Kind::kInt64) {
        for (size_t i = 0; i < count; i++) ints.push(ints_given ? spec_.default_ints[i] : 0);
      } else {
        for (size_t i = 0; i < count; i++) floats.push(floats_given ? spec_.default_floats[i] : 0);
      }
      break;
    case Layout::kList:
      for (int64_t value : spec_.default_ints) ints.push(value);
      for (float value : spec_.default_floats) floats.push(value);
      break;
    case Layout::kRaw:
      if (!spec_.default_strings.empty()) {
        std::memcpy(bytes.room(count), spec_.default_strings[0].data(), count);
      } else {
        std::memset(bytes.room(count), 0, count);
      }
      bytes.advance(count);
      break;
    case Layout::kCoded:
      codes.data()[row] =
          spec_.default_strings.empty() ? -1 : spec_.vocabulary->find(span_of(spec_.default_strings[0]));
      break;
    case Layout::kString:
    case Layout::kStrings:
      for (const std::string& value : spec_.default_strings) {
        append_string(span_of(value));
      }
      break;
    case Layout::kSteps:
      fill_default_steps();
      break;
  }
  close_row(row);
}

void Column::fill_default_steps() {
  size_t at = 0;
  for (const size_t count : spec_.default_steps) {
    for (const size_t end = at + count; at < end; at++) {
      if (spec_.kind == Kind::kInt64) ints.push(spec_.default_ints[at]);
      else if (spec_.kind == Kind::kFloat) floats.push(spec_.default_floats[at]);
      else append_string(span_of(spec_.default_strings[at]));
    }
    close_step();
  }
}

void Column::close_step() {
  const size_t end = spec_.kind == Kind::kInt64   ? ints.size()
                     : spec_.kind == Kind::kFloat ? floats.size()
                                                  : value_offsets.size() - 1;
  step_offsets.push(static_cast<int64_t>(end));
}

// Notes where the row that was just written ends.
void Column::close_row(int64_t row) {
  if (row_offsets == nullptr) return;
  if (is_view()) {
    const int64_t begin = view_.size == 0 ? 0 : view_.data - kept_;
    row_offsets[row] = begin;
    view_stops.push(begin + static_cast<int64_t>(view_.size));
    view_ = Span{};
    return;
  }
  size_t end = bytes.size();
  if (spec_.layout == Layout::kSteps) end = step_offsets.size() - 1;
  else if (spec_.layout == Layout::kStrings) end = value_offsets.size() - 1;
  else if (spec_.kind == Kind::kInt64) end = ints.size();
  else if (spec_.kind == Kind::kFloat) end = floats.size();
  row_offsets[row + 1] = static_cast<int64_t>(end);
}

// Takes back what a bad row has appended so far.
void Column::rewind(int64_t row) {
  if (is_view()) {
    view_ = Span{};
    return;
  }
  const auto begin = static_cast<size_t>(row);
  const auto count = static_cast<size_t>(spec_.count < 0 ? 0 : spec_.count);
  switch (spec_.layout) {
    case Layout::kScalar:
      ints.truncate(0);
      floats.truncate(0);
      return;
    case Layout::kFixed:
      if (spec_.kind == Kind::kInt64) ints.truncate(begin * count);
      else floats.truncate(begin * count);
      return;
    case Layout::kRaw:
      bytes.truncate(begin * count);
      return;
    case Layout::kCoded:
      bytes.truncate(0);
      return;
    default:
      break;
  }
  auto end = static_cast<size_t>(row_offsets[row]);
  if (spec_.layout == Layout::kSteps) {
    step_offsets.truncate(end + 1);
    end = static_cast<size_t>(step_offsets.data()[end]);
  }
  if (spec_.kind == Kind::kInt64) {
    ints.truncate(end);
  } else if (spec_.kind == Kind::kFloat) {
    floats.truncate(end);
  } else {
    if (spec_.layout != Layout::kString) {
      value_offsets.truncate(end + 1);
      end = static_cast<size_t>(value_offsets.data()[end]);
    }
    bytes.truncate(end);
  }
}

}  // namespace penstock
