// The general parser of tf.train.Feature, by protobuf's rules: every legal spelling of a list ends here.
//
//   Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
//   BytesList { repeated bytes value = 1; }   FloatList { repeated float value = 1; }   Int64List { repeated int64 … }
#pragma once

#include <vector>

#include "foundation/bytes.h"
#include "record/status.h"
#include "record/wire.h"

namespace penstock {

// The values of one feature as they stand in the message. For bytes each piece is one value; for floats a piece is
// 4·n bytes; for integers it is a run of varints. An unpacked value is a run of one, so mixed spellings need no case.
class Feature {
 public:
  void clear() {
    kind_ = Kind::kUnset;
    pieces_.clear();
  }

  // Merges a Feature message into this one: the same kind again adds values, another kind replaces what was there.
  // `deepest_group` says how deep groups may nest in it.
  Status merge(Span message, int deepest_group);

  // Merges the value, or values, of a map entry { key = 1; value = 2 }.
  Status merge_entry(Span entry);

  // Takes the bare bytes of a list of one piece.
  void assume(Kind kind, Span piece) {
    kind_ = kind;
    pieces_.assign(1, piece);
  }

  Kind kind() const { return kind_; }
  const std::vector<Span>& pieces() const { return pieces_; }

  // Number of values, of bytes or floats. Integers are counted as they are unpacked.
  int64_t num_pieced() const;

 private:
  Status merge_list(Kind kind, Span list, int deepest_group);
  Status check_replaced() const;

  Kind kind_ = Kind::kUnset;
  std::vector<Span> pieces_;
};

// The key of a map entry: the last one, "" if it has none. Checks that keys are UTF-8 (if one is not,
// `key` is that one), and that the entry is well formed.
Status read_entry_key(Span entry, Span& key);

}  // namespace penstock
