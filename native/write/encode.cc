#include "write/encode.h"

#include <utility>

namespace penstock {
namespace {

constexpr int64_t kBlockRows = 64;  // what they take stays in the second-level cache from the first column to the last
constexpr size_t kAbsent = ~size_t{0};
// Bytes copied past the end of a string or a prefix land here after the last row.
constexpr size_t kRoomBehind = 64;

using Values = std::pair<int64_t, int64_t>;

size_t packed_size(const int64_t* values, Values range) {
  size_t size = 0;
  for (int64_t i = range.first; i < range.second; i++) size += varint_size(static_cast<uint64_t>(values[i]));
  return size;
}

// Bytes of the values of a list: packed numbers, or byte strings with the tag and the length of each.
size_t values_size(const EncodeField& field, const EncodeColumn& column, Values range) {
  if (field.source == Source::kInts) return packed_size(column.ints, range);
  if (field.source == Source::kFloats) return static_cast<size_t>(range.second - range.first) * 4;
  size_t size = 0;
  for (int64_t i = range.first; i < range.second; i++) size += tagged_size(column.string(i).size);
  return size;
}

// Bytes of an Int64List, a FloatList or a BytesList with those values.
size_t list_size(const EncodeField& field, size_t values) {
  const bool is_packed = field.source != Source::kStrings && values != 0;
  return is_packed ? tagged_size(values) : values;
}

uint8_t* put_string(uint8_t* out, Span value) {
  // Two loads that may overlap: for short strings, a call costs more than the copy.
  const size_t size = value.size;
  if (size > 16) {
    std::memcpy(out, value.data, size);
  } else if (size >= 8) {
    std::memcpy(out, value.data, 8);
    std::memcpy(out + size - 8, value.data + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(out, value.data, 4);
    std::memcpy(out + size - 4, value.data + size - 4, 4);
  } else {
    for (size_t i = 0; i < size; i++) out[i] = value.data[i];
  }
  return out + size;
}

// Writes packed integers; those that might reach past `end`, byte by byte.
uint8_t* put_ints(uint8_t* out, const uint8_t* end, const int64_t* values, int64_t count) {
  int64_t i = 0;
  for (; i < count && end - out >= 10; i++) out = put_varint_wide(out, static_cast<uint64_t>(values[i]));
  for (; i < count; i++) out = put_varint(out, static_cast<uint64_t>(values[i]));
  return out;
}

// `end` is where the row ends: the bytes after it were written already.
uint8_t* put_values(uint8_t* out, const uint8_t* end, const EncodeField& field, const EncodeColumn& column,
                    Values range) {
  if (field.source == Source::kInts) return put_ints(out, end, column.ints + range.first, range.second - range.first);
  if (field.source == Source::kFloats) {
    const auto size = static_cast<size_t>(range.second - range.first) * 4;
    if (size != 0) std::memcpy(out, column.floats + range.first, size);
    return out + size;
  }
  for (int64_t i = range.first; i < range.second; i++) {
    const Span value = column.string(i);
    out = put_string(put_tagged(out, kFirstTag, value.size), value);
  }
  return out;
}

// A Feature, without the tag and length that it has in whatever holds it.
uint8_t* put_feature(uint8_t* out, const uint8_t* end, const EncodeField& field, const EncodeColumn& column,
                     Values range, size_t values) {
  out = put_tagged(out, field.kind_tag(), list_size(field, values));
  if (field.source != Source::kStrings && values != 0) out = put_tagged(out, kFirstTag, values);
  return put_values(out, end, field, column, range);
}

size_t step_size(const EncodeField& field, const EncodeColumn& column, int64_t step) {
  return tagged_size(list_size(field, values_size(field, column, column.values_of_step(step))));
}

// Works on a block of rows in two passes, column by column: how much each entry takes, then its bytes. One kind of
// value at a time keeps the loops short, and a row's position is known before the first byte is written.
class BlockEncoder {
 public:
  BlockEncoder(const std::vector<EncodeField>& fields, const std::vector<EncodeColumn>& columns, bool sequence_example)
      : fields_(fields), columns_(columns), sequence_example_(sequence_example), sizes_(fields.size() * kBlockRows) {}

  void encode(int64_t first_row, int64_t num_rows, GrowableArray<uint8_t>& out, GrowableArray<int64_t>& offsets) {
    first_ = first_row;
    count_ = num_rows;
    for (int64_t r = 0; r < count_; r++) features_[r] = lists_[r] = 0;
    for (size_t i = 0; i < fields_.size(); i++) measure(i);
    place(out, offsets);
    for (size_t i = 0; i < fields_.size(); i++) write(i);
  }

 private:
  // What the entry of each row will take; its payload, or the size of its value, is noted for the second pass.
  void measure(size_t i) {
    const EncodeField& field = fields_[i];
    const EncodeColumn& column = columns_[i];
    const int64_t first = first_;
    if (field.source == Source::kDeferred) {
      each_row(i, lists_, [](int64_t) { return kAbsent; }, [](size_t) { return size_t{0}; });
    } else if (field.is_feature_list) {
      each_row(
          i, lists_, [&](int64_t r) { return steps_size(field, column, first + r); },
          [&](size_t steps) { return entry_size(field, steps); });
    } else if (field.source == Source::kRaw || (field.source == Source::kFloats && column.row_offsets == nullptr)) {
      const size_t size = static_cast<size_t>(column.count) * (field.source == Source::kRaw ? 1 : 4);
      const size_t entry = field.source == Source::kRaw ? plain_entry_size(field, size) : entry_size_of(field, size);
      each_row(i, features_, [=](int64_t) { return size; }, [=](size_t) { return entry; });
    } else if (is_plain(field, column)) {
      const int64_t* const starts = column.starts + first;
      const int64_t* const stops = column.stops + first;
      each_row(
          i, features_, [=](int64_t r) { return static_cast<size_t>(stops[r] - starts[r]); },
          [&](size_t size) { return plain_entry_size(field, size); });
    } else if (is_single_int(field, column)) {
      const int64_t* const ints = column.ints + first;
      each_row(
          i, features_, [=](int64_t r) { return varint_size(static_cast<uint64_t>(ints[r])); },
          [&](size_t size) { return plain_entry_size(field, size); });
    } else {
      each_row(
          i, features_, [&](int64_t r) { return values_size(field, column, column.values_of(first + r)); },
          [&](size_t size) { return entry_size_of(field, size); });
    }
  }

  template <typename Measure, typename Entry>
  void each_row(size_t i, size_t* totals, const Measure& measure_row, const Entry& entry_of) {
    size_t* const sizes = &sizes_[i * kBlockRows];
    const bool* const present = columns_[i].present == nullptr ? nullptr : columns_[i].present + first_;
    const int64_t count = count_;
    for (int64_t r = 0; r < count; r++) {
      const size_t size = present == nullptr || present[r] ? measure_row(r) : kAbsent;
      sizes[r] = size;
      if (size != kAbsent) totals[r] += entry_of(size);
    }
  }

  static size_t steps_size(const EncodeField& field, const EncodeColumn& column, int64_t row) {
    size_t steps = 0;
    const Values range = column.values_of(row);
    for (int64_t step = range.first; step < range.second; step++) steps += tagged_size(step_size(field, column, step));
    return steps;
  }

  static bool is_single_int(const EncodeField& field, const EncodeColumn& column) {
    return field.source == Source::kInts && column.row_offsets == nullptr && column.count == 1;
  }

  // Whether a row has exactly one byte string.
  static bool is_plain(const EncodeField& field, const EncodeColumn& column) {
    return field.source == Source::kRaw || (field.source == Source::kStrings && column.row_offsets == nullptr);
  }

  static size_t entry_size_of(const EncodeField& field, size_t values) {
    if (field.source == Source::kStrings || values == 0) return entry_size(field, tagged_size(values));
    return plain_entry_size(field, values);
  }

  // Gives every row its position; of a SequenceExample, with the tags and lengths of its two maps.
  void place(GrowableArray<uint8_t>& out, GrowableArray<int64_t>& offsets) {
    size_t total = 0;
    for (int64_t r = 0; r < count_; r++) {
      total += sequence_example_ ? tagged_size(features_[r]) + tagged_size(lists_[r]) : features_[r];
    }
    uint8_t* at = out.room(total + kRoomBehind);
    uint8_t* const begin = at;
    const auto before = static_cast<int64_t>(out.size());
    for (int64_t r = 0; r < count_; r++) {
      if (sequence_example_) at = put_tagged(at, kFirstTag, features_[r]);
      feature_at_[r] = at;
      at += features_[r];
      feature_end_[r] = at;
      if (sequence_example_) {
        at = put_tagged(at, kSecondTag, lists_[r]);
        list_at_[r] = at;
        at += lists_[r];
        list_end_[r] = at;
      }
      offsets.push(before + (at - begin));
    }
    out.advance(total);
  }

  void write(size_t i) {
    const EncodeField& field = fields_[i];
    const EncodeColumn& column = columns_[i];
    const size_t* const sizes = &sizes_[i * kBlockRows];
    const PlainEntry entry(field);
    // Whatever a loop reads is taken out of objects before it: bytes that are written might be part of any of those.
    uint8_t* const* const ends = feature_end_;
    if (field.is_feature_list) {
      each_present(sizes, list_at_, [&](uint8_t* at, int64_t r) { return put_steps(at, field, column, r, sizes[r]); });
    } else if (field.source == Source::kRaw) {
      const uint8_t* const bytes = column.raw(first_).data;
      each_present(sizes, feature_at_, [=](uint8_t* at, int64_t r) {
        return put_string(entry.put(at, ends[r], sizes[r]), {bytes + static_cast<size_t>(r) * sizes[r], sizes[r]});
      });
    } else if (is_plain(field, column)) {
      const uint8_t* const bytes = column.bytes;
      const int64_t* const starts = column.starts + first_;
      each_present(sizes, feature_at_, [=](uint8_t* at, int64_t r) {
        return put_string(entry.put(at, ends[r], sizes[r]), {bytes + starts[r], sizes[r]});
      });
    } else if (field.source == Source::kFloats && column.row_offsets == nullptr && column.count == 1) {
      const float* const floats = column.floats + first_;
      each_present(sizes, feature_at_, [=](uint8_t* at, int64_t r) {
        at = entry.put(at, ends[r], sizeof(float));
        std::memcpy(at, floats + r, sizeof(float));
        return at + sizeof(float);
      });
    } else if (is_single_int(field, column)) {
      const int64_t* const ints = column.ints + first_;
      each_present(sizes, feature_at_, [=](uint8_t* at, int64_t r) {
        return put_varint(entry.put(at, ends[r], sizes[r]), static_cast<uint64_t>(ints[r]));
      });
    } else {
      each_present(sizes, feature_at_,
                   [&](uint8_t* at, int64_t r) { return put_list(at, entry, field, column, r, sizes[r]); });
    }
  }

  template <typename Put>
  void each_present(const size_t* sizes, uint8_t** places, const Put& put) {
    const int64_t count = count_;
    for (int64_t r = 0; r < count; r++) {
      if (sizes[r] != kAbsent) places[r] = put(places[r], r);
    }
  }

  uint8_t* put_list(uint8_t* at, const PlainEntry& entry, const EncodeField& field, const EncodeColumn& column,
                    int64_t r, size_t values) {
    const Values range = column.values_of(first_ + r);
    if (field.source != Source::kStrings && values != 0) {
      return put_values(entry.put(at, feature_end_[r], values), feature_end_[r], field, column, range);
    }
    return put_feature(put_entry(at, field, tagged_size(values)), feature_end_[r], field, column, range, values);
  }

  uint8_t* put_steps(uint8_t* at, const EncodeField& field, const EncodeColumn& column, int64_t r, size_t steps) {
    at = put_entry(at, field, steps);
    const Values range = column.values_of(first_ + r);
    for (int64_t step = range.first; step < range.second; step++) {
      const Values values = column.values_of_step(step);
      at = put_tagged(at, kFirstTag, step_size(field, column, step));
      at = put_feature(at, list_end_[r], field, column, values, values_size(field, column, values));
    }
    return at;
  }

  const std::vector<EncodeField>& fields_;
  const std::vector<EncodeColumn>& columns_;
  const bool sequence_example_;
  int64_t first_ = 0, count_ = 0;
  std::vector<size_t> sizes_;  // a row of kBlockRows for each field
  size_t features_[kBlockRows], lists_[kBlockRows];
  uint8_t* feature_at_[kBlockRows];
  uint8_t* feature_end_[kBlockRows];
  uint8_t* list_at_[kBlockRows];
  uint8_t* list_end_[kBlockRows];
};

}  // namespace

Encoder::Encoder(std::vector<EncodeField> fields, bool sequence_example)
    : fields_(std::move(fields)), sequence_example_(sequence_example) {}

void Encoder::encode(const std::vector<EncodeColumn>& columns, int64_t num_rows, GrowableArray<uint8_t>& out,
                     GrowableArray<int64_t>& offsets) const {
  BlockEncoder block(fields_, columns, sequence_example_);
  for (int64_t row = 0; row < num_rows; row += kBlockRows) {
    // The size of the first rows predicts the size of all rows: growing step by step would copy them several times.
    if (row == kBlockRows) out.room(out.size() / kBlockRows * static_cast<size_t>(num_rows - row) * 9 / 8);
    block.encode(row, num_rows - row < kBlockRows ? num_rows - row : kBlockRows, out, offsets);
  }
}

}  // namespace penstock
