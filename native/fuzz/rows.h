// One row of one column, in a form that can be compared.
#pragma once

#include <string>

#include "decode/column.h"
#include "decode/plan.h"
#include "foundation/bytes.h"

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

// The row as decoding left it; `kept` is where the strings of a view lie.
RowBytes row_of(const FieldSpec& spec, Column& column, const Buffer& kept, int64_t row);

}  // namespace penstock::fuzz
