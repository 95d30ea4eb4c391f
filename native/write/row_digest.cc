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

// The bytes of some rows, which are hashed together. Rows are hashed when they fill a part of the second-level cache;
// large rows, when there are enough for all lanes.
class Messages {
 public:
  void add(Span bytes) {
    if (PENSTOCK_UNLIKELY(bytes.size > bytes_.size() - size_)) bytes_.resize(2 * (size_ + bytes.size) + kFullBytes);
    if (bytes.size != 0) std::memcpy(bytes_.data() + size_, bytes.data, bytes.size);
    size_ += bytes.size;
  }
  template <typename T>
  void add_value(T value) {
    add({reinterpret_cast<const uint8_t*>(&value), sizeof value});
  }

  void end_row() { ends_.push_back(size_); }
  bool is_full() const { return size_ >= kFullBytes && (ends_.size() >= kFullRows || size_ >= kMostBytes); }

  // Sets the digest of each row; returns how many there were.
  size_t digest(Digest* out) {
    std::vector<Span> rows;
    rows.reserve(ends_.size());
    size_t begin = 0;
    for (size_t end : ends_) {
      rows.push_back({bytes_.data() + begin, end - begin});
      begin = end;
    }
    digest_messages(rows.data(), rows.size(), out);
    size_ = 0;
    ends_.clear();
    return rows.size();
  }

 private:
  static constexpr size_t kFullBytes = 256 << 10, kMostBytes = 8 << 20, kFullRows = 64;

  std::vector<uint8_t> bytes_;
  size_t size_ = 0;
  std::vector<size_t> ends_;
};

void add_string(Span value, Messages& out) {
  out.add_value(static_cast<uint64_t>(value.size));
  out.add(value);
}

// The zeros are equal, and so is every NaN, as in the hash of a row. Numbers in lists are taken as they lie in memory,
// which is how the hash takes them.
template <typename T>
void add_number(T value, Messages& out) {
  out.add_value(std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value + T{0});
}

class RowBytes {
 public:
  RowBytes(const EncodeField& field, const EncodeColumn& column, char letter)
      : field_(field), column_(column), letter_(letter) {}

  void add(int64_t row, Messages& out) const {
    switch (letter_) {
      case 'i':
        out.add_value(column_.ints[row]);
        return;
      case 'f':
        add_number(column_.floats[row], out);
        return;
      case 'd':
        add_number(column_.doubles[row], out);
        return;
      case 's':
        add_string(column_.string(row), out);
        return;
      case 'r':
        add_string(column_.raw(row), out);
        return;
      case 'L':
        add_large(row, out);
        return;
      case 'I':
      case 'F':
      case 'S':
        add_list(column_.values_of(row), out);
        return;
      default:
        add_steps(row, out);
    }
  }

 private:
  // By its digest, which is all that is known of a deferred value.
  void add_large(int64_t row, Messages& out) const {
    if (field_.source == Source::kDeferred) {
      out.add_value(column_.content_digests[2 * row]);
      out.add_value(column_.content_digests[2 * row + 1]);
    } else {
      out.add_value(digest_bytes(column_.string(row)));
    }
  }

  void add_list(std::pair<int64_t, int64_t> range, Messages& out) const {
    const auto [first, last] = range;
    const auto count = static_cast<uint64_t>(last - first);
    out.add_value(count);
    if (field_.source == Source::kFloats) {
      out.add({reinterpret_cast<const uint8_t*>(column_.floats + first), count * sizeof(float)});
    } else if (field_.source == Source::kInts) {
      out.add({reinterpret_cast<const uint8_t*>(column_.ints + first), count * sizeof(int64_t)});
    } else {
      for (int64_t i = first; i < last; i++) add_string(column_.string(i), out);
    }
  }

  void add_steps(int64_t row, Messages& out) const {
    const auto [first, last] = column_.values_of(row);
    out.add_value(static_cast<uint64_t>(last - first));
    for (int64_t step = first; step < last; step++) add_list(column_.values_of_step(step), out);
  }

  const EncodeField& field_;
  const EncodeColumn& column_;
  char letter_;
};

}  // namespace

void Encoder::digest_rows(const std::vector<DigestField>& wanted, const std::vector<EncodeColumn>& columns,
                          int64_t num_rows, bool is_named, Digest* out) const {
  std::vector<RowBytes> values;
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
  Messages messages;
  for (int64_t row = 0; row < num_rows; row++) {
    if (!is_complete) {
      for (size_t i = 0; i < wanted.size(); i++) present[i] = columns[wanted[i].number].has(row);
    }
    if (row == 0 || (!is_complete && present != previous)) {
      Messages names;
      for (size_t i = 0; i < wanted.size(); i++) {
        if (!present[i]) continue;
        const std::string& key = fields_[wanted[i].number].key;
        if (is_named) add_string({reinterpret_cast<const uint8_t*>(key.data()), key.size()}, names);
        names.add_value(letters[i]);
      }
      names.end_row();
      names.digest(&layout);
      previous = present;
    }
    messages.add_value(layout);
    for (size_t i = 0; i < wanted.size(); i++) {
      if (present[i]) values[i].add(row, messages);
    }
    messages.end_row();
    if (messages.is_full()) out += messages.digest(out);
  }
  messages.digest(out);
}

}  // namespace penstock
