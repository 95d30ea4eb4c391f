#include "expected.h"

#include <map>
#include <vector>

#include "decode/feature.h"
#include "record/wire.h"

namespace penstock::fuzz {
namespace {

using Entries = std::map<std::string, std::vector<Span>>;

// All entries of each key in the map that is field `number` of the payload.
Status read_map(Span payload, uint32_t number, Entries& entries, bool& repeated) {
  bool seen = false;
  for (Cursor in(payload, kDeepestGroup); !in.done();) {
    Span map;
    bool found;
    if (Status s = read_field(in, number, map, found); s != Status::kOk) return s;
    if (!found) continue;
    repeated |= seen;
    seen = true;
    for (Cursor inner(map, kInMap); !inner.done();) {
      Span entry, key;
      if (Status s = read_field(inner, 1, entry, found); s != Status::kOk) return s;
      if (!found) continue;
      if (Status s = read_entry_key(entry, key); s != Status::kOk) return s;
      entries[std::string(reinterpret_cast<const char*>(key.data), key.size)].push_back(entry);
    }
  }
  return Status::kOk;
}

Status read_ints(const Feature& feature, bool strict, std::vector<int64_t>& out) {
  for (const Span& piece : feature.pieces()) {
    for (Cursor in(piece, 0); !in.done();) {
      const uint8_t* const begin = in.p;
      uint64_t value;
      if (Status s = read_varint(in, value); s != Status::kOk) return s;
      if (strict && in.p - begin == 10 && begin[9] > 1) return Status::kVarintOverflow;
      out.push_back(static_cast<int64_t>(value));
    }
  }
  return Status::kOk;
}

// Adds the values of a feature: exactly `count` values, or any number if `count` is negative.
Status add_values(const Feature& feature, const FieldSpec& field, bool strict, int64_t count, RowBytes& row) {
  if (feature.kind() == Kind::kInt64) {
    std::vector<int64_t> values;
    if (Status s = read_ints(feature, strict, values); s != Status::kOk) return s;
    if (count >= 0 && static_cast<int64_t>(values.size()) != count) return Status::kWrongCount;
    if (count < 0) row.number(values.size());
    for (int64_t value : values) row.number(value);
    return Status::kOk;
  }
  size_t num_values = feature.pieces().size();
  if (feature.kind() == Kind::kFloat) {
    num_values = 0;
    for (const Span& piece : feature.pieces()) num_values += piece.size / 4;
  }
  if (count >= 0 && static_cast<int64_t>(num_values) != count) return Status::kWrongCount;
  if (count < 0) row.number(num_values);
  for (const Span& piece : feature.pieces()) {
    if (feature.kind() == Kind::kBytes) {
      if (field.layout == Layout::kRaw && static_cast<int64_t>(piece.size) != field.count) return Status::kWrongSize;
      row.string(piece);
    } else {
      for (size_t i = 0; i < piece.size; i += 4) row.number(load32(piece.data + i));
    }
  }
  return Status::kOk;
}

Status add_steps(Span list, const FieldSpec& field, bool strict, size_t& num_steps, RowBytes& row) {
  for (Cursor in(list, kInFeature); !in.done();) {
    Span step;
    bool found;
    if (Status s = read_field(in, 1, step, found); s != Status::kOk) return s;
    if (!found) continue;
    Feature feature;
    if (Status s = feature.merge(step, kInStep); s != Status::kOk) return s;
    if (feature.kind() == Kind::kUnset && field.count > 0) return Status::kWrongStepCount;
    if (feature.kind() != Kind::kUnset && feature.kind() != field.kind) return Status::kWrongKind;
    num_steps++;
    if (feature.kind() == Kind::kUnset) {
      if (field.count < 0) row.number(size_t{0});
    } else if (Status s = add_values(feature, field, strict, field.count, row); s != Status::kOk) {
      return s;
    }
  }
  return Status::kOk;
}

Status read_entry(Span entry, const FieldSpec& field, bool strict, Expected& out) {
  if (field.layout == Layout::kSteps) {
    size_t num_steps = 0;
    for (Cursor in(entry, kInEntry); !in.done();) {
      Span list;
      bool found;
      if (Status s = read_field(in, 2, list, found); s != Status::kOk) return s;
      if (!found) continue;
      if (Status s = add_steps(list, field, strict, num_steps, out.row); s != Status::kOk) return s;
    }
    out.row.number(num_steps);
    out.present = true;
    return Status::kOk;
  }
  Feature feature;
  if (Status s = feature.merge_entry(entry); s != Status::kOk) return s;
  if (feature.kind() == Kind::kUnset) return Status::kMissing;
  if (feature.kind() != field.kind) return Status::kWrongKind;
  out.present = true;
  const bool one = field.layout == Layout::kRaw || field.layout == Layout::kString;
  return add_values(feature, field, strict, one ? 1 : field.count, out.row);
}

// Whether an entry that a later one of the same key replaces is well formed, whatever is in it.
Status check_replaced(Span entry, bool is_list) {
  Feature feature;
  std::vector<int64_t> ints;
  const auto check = [&] { return feature.kind() == Kind::kInt64 ? read_ints(feature, false, ints) : Status::kOk; };
  if (!is_list) {
    const Status status = feature.merge_entry(entry);
    return status == Status::kOk ? check() : status;
  }
  for (Cursor in(entry, kInEntry); !in.done();) {
    Span list, step;
    bool found;
    if (Status s = read_field(in, 2, list, found); s != Status::kOk) return s;
    for (Cursor inner(found ? list : Span{entry.data, 0}, kInFeature); !inner.done();) {
      if (Status s = read_field(inner, 1, step, found); s != Status::kOk) return s;
      feature.clear();
      if (Status s = found ? feature.merge(step, kInStep) : Status::kOk; s != Status::kOk) return s;
      if (Status s = check(); s != Status::kOk) return s;
    }
  }
  return Status::kOk;
}

// Adds values `begin` to `end` of a field's default.
void add_default_values(const FieldSpec& field, size_t begin, size_t end, RowBytes& row) {
  for (size_t i = begin; i < end; i++) {
    if (field.kind == Kind::kInt64) {
      row.number(field.default_ints[i]);
    } else if (field.kind == Kind::kFloat) {
      row.number(field.default_floats[i]);
    } else {
      const std::string& value = field.default_strings[i];
      row.string(Span{reinterpret_cast<const uint8_t*>(value.data()), value.size()});
    }
  }
}

// Adds the content of a row that has neither a value nor a default: zeros, or nothing.
void add_nothing(const FieldSpec& field, RowBytes& row) {
  const std::string zeros(static_cast<size_t>(field.count < 0 ? 0 : field.count), '\0');
  const Span bytes{reinterpret_cast<const uint8_t*>(zeros.data()), zeros.size()};
  if (field.layout == Layout::kString) return row.string(Span{});
  if (field.layout == Layout::kRaw) return row.string(bytes);
  if (field.layout != Layout::kScalar && field.layout != Layout::kFixed) return row.number(size_t{0});
  for (int64_t i = 0; i < field.count; i++) {
    if (field.kind == Kind::kInt64) row.number(int64_t{0});
    else row.number(float{0});
  }
}

void add_default(const FieldSpec& field, RowBytes& row) {
  const size_t given = field.default_ints.size() + field.default_floats.size() + field.default_strings.size();
  if (given == 0 && field.default_steps.empty()) return add_nothing(field, row);
  if (field.layout == Layout::kList || field.layout == Layout::kStrings) row.number(given);
  if (field.layout != Layout::kSteps) return add_default_values(field, 0, given, row);
  size_t at = 0;
  for (const size_t size : field.default_steps) {
    if (field.count < 0) row.number(size);
    add_default_values(field, at, at + size, row);
    at += size;
  }
  row.number(field.default_steps.size());
}

}  // namespace

Status check_maps(Span payload, bool lists, bool strict) {
  Entries entries;
  bool repeated = false;
  if (Status s = read_map(payload, 1, entries, repeated); s != Status::kOk) return s;
  if (lists) {
    if (Status s = read_map(payload, 2, entries, repeated); s != Status::kOk) return s;
  }
  return strict && repeated ? Status::kDuplicateKey : Status::kOk;
}

Expected expect(Span payload, const FieldSpec& field, bool strict) {
  Expected out;
  const uint32_t number = field.layout == Layout::kSteps ? 2 : 1;
  Entries entries;
  bool repeated = false;
  out.status = read_map(payload, number, entries, repeated);
  if (out.status != Status::kOk) return out;
  const std::vector<Span>& found = entries[field.key];
  if (strict && found.size() > 1) {
    out.status = Status::kDuplicateKey;
    return out;
  }
  for (size_t i = 0; i + 1 < found.size() && out.status == Status::kOk; i++) {
    out.status = check_replaced(found[i], field.layout == Layout::kSteps);
  }
  if (out.status != Status::kOk) return out;
  out.status = found.empty() ? Status::kMissing : read_entry(found.back(), field, strict, out);
  if (out.status == Status::kMissing && !field.required) {
    out.status = Status::kOk;
    add_default(field, out.row);
  }
  return out;
}

}  // namespace penstock::fuzz
