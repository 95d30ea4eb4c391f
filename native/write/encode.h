// Columns into the messages of records: the other direction of decode.h.
//
// A record's body is the map entries of its Example, concatenated, without the two bytes or more that make them
// a message: entries of fields that are fetched later go before them when the record is framed (compose.h). The body of
// a SequenceExample is its whole message.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/growable_array.h"
#include "write/digest.h"
#include "write/map_entry.h"

namespace penstock {

// Values of one field for some rows. Offsets were checked against the values by the caller.
struct EncodeColumn {
  const int64_t* ints = nullptr;
  const float* floats = nullptr;
  const double* doubles = nullptr;  // kRaw of one double: hashed as a number
  const uint8_t* bytes = nullptr;
  const int64_t* starts = nullptr;  // of each byte string in `bytes`
  const int64_t* stops = nullptr;
  const int64_t* row_offsets = nullptr;   // which values (steps, of a feature list) a row has; null: `count` of them
  const int64_t* step_offsets = nullptr;  // which values a step has; null: `step_count` of them
  const bool* present = nullptr;          // null: all
  const uint64_t* hashes = nullptr;       // kDeferred: hash_bytes of each value
  const uint64_t* content_digests = nullptr;  // kDeferred: digest_bytes of each value, two words per row
  int64_t count = 1;
  int64_t step_count = 1;

  bool has(int64_t row) const { return present == nullptr || present[row]; }
  // The values (steps) of a row, and the values of a step: from the first to the exclusive end.
  std::pair<int64_t, int64_t> values_of(int64_t row) const {
    if (row_offsets == nullptr) return {row * count, (row + 1) * count};
    return {row_offsets[row], row_offsets[row + 1]};
  }
  std::pair<int64_t, int64_t> values_of_step(int64_t step) const {
    if (step_offsets == nullptr) return {step * step_count, (step + 1) * step_count};
    return {step_offsets[step], step_offsets[step + 1]};
  }
  Span string(int64_t i) const { return Span{bytes + starts[i], static_cast<size_t>(stops[i] - starts[i])}; }
  Span raw(int64_t row) const { return Span{bytes + row * count, static_cast<size_t>(count)}; }
};

// A field that counts in the digest of a row. With `is_large`, a string of it is represented by its own digest, so that
// a value in memory and a deferred one are alike.
struct DigestField {
  size_t number;
  bool is_large;
};

class Encoder {
 public:
  Encoder(std::vector<EncodeField> fields, bool sequence_example);

  // Appends the bodies of rows 0 … num_rows - 1; `offsets` gets where each ends.
  void encode(const std::vector<EncodeColumn>& columns, int64_t num_rows, GrowableArray<uint8_t>& out,
              GrowableArray<int64_t>& offsets) const;

  // Adds to each row's sum a hash of its values of one field, with the field's name in it if `is_named`. A sum does not
  // depend on the order of fields, and a field that a row lacks adds nothing.
  void add_hashes(size_t field, const EncodeColumn& column, int64_t num_rows, bool is_named, uint64_t* sums) const;

  // Sets a digest of each row's values of some fields, which are in the order of their keys. Different contents have
  // different digests: names and values are written so that no two are alike. A field that a row lacks is left out.
  void digest_rows(const std::vector<DigestField>& wanted, const std::vector<EncodeColumn>& columns, int64_t num_rows,
                   bool is_named, Digest* out) const;

  const std::vector<EncodeField>& fields() const { return fields_; }

 private:
  std::vector<EncodeField> fields_;
  bool sequence_example_;
};

}  // namespace penstock
