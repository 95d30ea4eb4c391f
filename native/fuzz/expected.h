// What a record holds for a field, by the general parser alone: no prefix, no learnt key, no block of rows.
#pragma once

#include <string>

#include "plan.h"
#include "status.h"

namespace penstock::fuzz {

// A row of a column as bytes that can be compared: numbers as they lie in memory, strings and steps behind their sizes.
class RowBytes {
 public:
  template <typename T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(Span value) {
    number(value.size);
    bytes_.append(reinterpret_cast<const char*>(value.data), value.size);
  }
  bool operator==(const RowBytes& other) const { return bytes_ == other.bytes_; }

 private:
  std::string bytes_;
};

struct Expected {
  Status status = Status::kOk;  // kOk: the row can be used
  bool present = false;
  RowBytes row;
};

// Whether the messages around the values of a record are well formed; with `lists`, as a SequenceExample.
Status check_maps(Span payload, bool lists, bool strict);

// The field's values, its default where the record lacks it, or the fault.
Expected expect(Span payload, const FieldSpec& field, bool strict);

}  // namespace penstock::fuzz
