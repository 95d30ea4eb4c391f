#include <algorithm>
#include <cmath>
#include <limits>

#include "write/digest.h"
#include "write/digest_lanes.h"
#include "write/encode.h"

namespace penstock {
namespace {

// What a field adds to a digest: a different letter for each way to write its values, so that no two ways are confused.
char letter_of(const EncodeField& field, const EncodeColumn& column, bool is_large) {
  if (field.source == Source::kDeferred) return 'L';
  const bool is_single = column.row_offsets == nullptr && column.count == 1 && !field.is_feature_list;
  switch (field.source) {
    case Source::kRaw:
      return column.doubles != nullptr ? 'd' : 'r';
    case Source::kInts:
      return field.is_feature_list ? 'J' : is_single ? 'i' : 'I';
    case Source::kFloats:
      return field.is_feature_list ? 'G' : is_single ? 'f' : 'F';
    default:
      return field.is_feature_list ? 'T' : !is_single ? 'S' : is_large ? 'L' : 's';
  }
}

uint8_t* put_bytes(uint8_t* out, Span bytes) {
  const uint8_t* const from = bytes.data;
  const size_t size = bytes.size;
  // Most strings are short: two loads that overlap are faster than a call.
  if (PENSTOCK_LIKELY(size - 4 <= 12)) {
    if (size >= 8) {
      const uint64_t first = load64(from), last = load64(from + size - 8);
      std::memcpy(out, &first, 8);
      std::memcpy(out + size - 8, &last, 8);
    } else {
      const uint32_t first = load32(from), last = load32(from + size - 4);
      std::memcpy(out, &first, 4);
      std::memcpy(out + size - 4, &last, 4);
    }
  } else if (size != 0) {
    std::memcpy(out, from, size);
  }
  return out + size;
}

template <typename T>
uint8_t* put_value(uint8_t* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

constexpr size_t kLengthBytes = sizeof(uint64_t);

uint8_t* put_string(uint8_t* out, Span value) {
  return put_bytes(put_value(out, static_cast<uint64_t>(value.size)), value);
}

// The zeros are equal, and so is every NaN, as in the hash of a row. Numbers in lists are taken as they lie in memory,
// which is how the hash takes them.
template <typename T>
uint8_t* put_number(uint8_t* out, T value) {
  return put_value(out, std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value + T{0});
}

// The bytes of one field in the messages of some rows, which are digested together.
class FieldBytes {
 public:
  FieldBytes(const EncodeField& field, const EncodeColumn& column, char letter)
      : field_(field), column_(column), letter_(letter) {}

  // Adds to sizes[i] how many bytes row first + i has.
  void add_sizes(int64_t first, size_t count, size_t* sizes) const {
    const auto add = [&](const auto& size_of) {
      for_rows(first, count, [&](size_t i, int64_t row) { sizes[i] += size_of(row); });
    };
    switch (letter_) {
      case 'i':
      case 'd':
        return add([](int64_t) { return sizeof(int64_t); });
      case 'f':
        return add([](int64_t) { return sizeof(float); });
      case 'L':
        return add([](int64_t) { return kDigestBytes; });
      case 's':
        return add([&](int64_t row) { return kLengthBytes + column_.string(row).size; });
      case 'r':
        return add([&](int64_t row) { return kLengthBytes + column_.raw(row).size; });
      case 'I':
      case 'F':
      case 'S':
        return add([&](int64_t row) { return list_size(column_.values_of(row)); });
      default:
        return add([&](int64_t row) { return steps_size(row); });
    }
  }

  // Writes the bytes of row first + i to ends[i], and moves that.
  void put(int64_t first, size_t count, uint8_t** ends) const {
    const auto write = [&](const auto& put_row) {
      for_rows(first, count, [&](size_t i, int64_t row) { ends[i] = put_row(ends[i], row); });
    };
    switch (letter_) {
      case 'i':
        return write([&](uint8_t* out, int64_t row) { return put_value(out, column_.ints[row]); });
      case 'f':
        return write([&](uint8_t* out, int64_t row) { return put_number(out, column_.floats[row]); });
      case 'd':
        return write([&](uint8_t* out, int64_t row) { return put_number(out, column_.doubles[row]); });
      case 's':
        return write([&](uint8_t* out, int64_t row) { return put_string(out, column_.string(row)); });
      case 'r':
        return write([&](uint8_t* out, int64_t row) { return put_string(out, column_.raw(row)); });
      case 'L':
        return write([&](uint8_t* out, int64_t row) { return put_large(out, row); });
      case 'I':
      case 'F':
      case 'S':
        return write([&](uint8_t* out, int64_t row) { return put_list(out, column_.values_of(row)); });
      default:
        return write([&](uint8_t* out, int64_t row) { return put_steps(out, row); });
    }
  }

 private:
  template <typename Each>
  void for_rows(int64_t first, size_t count, const Each& each) const {
    for (size_t i = 0; i < count; i++) {
      const int64_t row = first + static_cast<int64_t>(i);
      if (column_.has(row)) each(i, row);
    }
  }

  // By its digest, which is all that is known of a deferred value.
  uint8_t* put_large(uint8_t* out, int64_t row) const {
    if (field_.source != Source::kDeferred) return put_value(out, digest_bytes(column_.string(row)));
    return put_value(put_value(out, column_.content_digests[2 * row]), column_.content_digests[2 * row + 1]);
  }

  size_t list_size(std::pair<int64_t, int64_t> range) const {
    const auto count = static_cast<size_t>(range.second - range.first);
    if (field_.source == Source::kFloats) return kLengthBytes + count * sizeof(float);
    if (field_.source == Source::kInts) return kLengthBytes + count * sizeof(int64_t);
    size_t size = kLengthBytes * (1 + count);
    for (int64_t i = range.first; i < range.second; i++) size += column_.string(i).size;
    return size;
  }

  uint8_t* put_list(uint8_t* out, std::pair<int64_t, int64_t> range) const {
    const auto [first, last] = range;
    const auto count = static_cast<uint64_t>(last - first);
    out = put_value(out, count);
    if (field_.source == Source::kFloats) {
      return put_bytes(out, {reinterpret_cast<const uint8_t*>(column_.floats + first), count * sizeof(float)});
    }
    if (field_.source == Source::kInts) {
      return put_bytes(out, {reinterpret_cast<const uint8_t*>(column_.ints + first), count * sizeof(int64_t)});
    }
    for (int64_t i = first; i < last; i++) out = put_string(out, column_.string(i));
    return out;
  }

  size_t steps_size(int64_t row) const {
    const auto [first, last] = column_.values_of(row);
    size_t size = kLengthBytes;
    for (int64_t step = first; step < last; step++) size += list_size(column_.values_of_step(step));
    return size;
  }

  uint8_t* put_steps(uint8_t* out, int64_t row) const {
    const auto [first, last] = column_.values_of(row);
    out = put_value(out, static_cast<uint64_t>(last - first));
    for (int64_t step = first; step < last; step++) out = put_list(out, column_.values_of_step(step));
    return out;
  }

  const EncodeField& field_;
  const EncodeColumn& column_;
  char letter_;
};

// How many of `count` rows of these sizes are digested at once: those that fill a part of the second-level cache; of
// large rows, enough for all lanes.
size_t count_together(const size_t* sizes, size_t count) {
  constexpr size_t kEnoughBytes = 256 << 10, kMostBytes = 8 << 20, kEnoughRows = 64;
  size_t num_bytes = 0, i = 0;
  while (i < count && (num_bytes < kEnoughBytes || (i < kEnoughRows && num_bytes < kMostBytes)))
    num_bytes += sizes[i++];
  return i;
}

}  // namespace

void Encoder::digest_rows(const std::vector<DigestField>& wanted, const std::vector<EncodeColumn>& columns,
                          int64_t num_rows, bool is_named, Digest* out) const {
  constexpr size_t kStep = 1024;  // rows whose sizes are known at once
  std::vector<FieldBytes> values;
  std::vector<char> letters;
  bool is_complete = true;  // no row lacks a field
  for (const DigestField& each : wanted) {
    const EncodeColumn& column = columns[each.number];
    letters.push_back(letter_of(fields_[each.number], column, each.is_large));
    values.emplace_back(fields_[each.number], column, letters.back());
    is_complete = is_complete && column.present == nullptr;
  }
  // Which fields a row has comes first, as one digest, which is the same for most rows in turn.
  std::vector<bool> present(wanted.size(), true), previous;
  Digest layout;
  const auto find_layout = [&](int64_t row) {
    if (!is_complete) {
      for (size_t i = 0; i < wanted.size(); i++) present[i] = columns[wanted[i].number].has(row);
    }
    if (row != 0 && (is_complete || present == previous)) return;
    Blake2b names;
    for (size_t i = 0; i < wanted.size(); i++) {
      if (!present[i]) continue;
      const std::string& key = fields_[wanted[i].number].key;
      if (is_named) {
        names.add_value(static_cast<uint64_t>(key.size()));
        names.add({reinterpret_cast<const uint8_t*>(key.data()), key.size()});
      }
      names.add_value(letters[i]);
    }
    layout = names.finish();
    previous = present;
  };
  std::vector<size_t> sizes;
  std::vector<uint8_t> bytes;
  std::vector<Span> messages;
  std::vector<uint8_t*> ends;
  for (int64_t first = 0; first < num_rows;) {
    const size_t most = std::min(kStep, static_cast<size_t>(num_rows - first));
    sizes.assign(most, sizeof layout);
    for (const FieldBytes& each : values) each.add_sizes(first, most, sizes.data());
    for (size_t done = 0; done < most;) {
      const size_t count = count_together(sizes.data() + done, most - done);
      size_t num_bytes = 0;
      for (size_t i = 0; i < count; i++) num_bytes += sizes[done + i];
      if (bytes.size() < num_bytes) bytes.resize(num_bytes);
      messages.clear();
      ends.clear();
      uint8_t* at = bytes.data();
      for (size_t i = 0; i < count; i++) {
        messages.push_back({at, sizes[done + i]});
        find_layout(first + static_cast<int64_t>(i));
        ends.push_back(put_value(at, layout));
        at += sizes[done + i];
      }
      for (const FieldBytes& each : values) each.put(first, count, ends.data());
      digest_messages(messages.data(), count, out);
      out += count;
      done += count;
      first += static_cast<int64_t>(count);
    }
  }
}

}  // namespace penstock
