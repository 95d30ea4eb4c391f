#include "decode/feature.h"

#include "text/utf8.h"

namespace penstock {

// Packed integers are unpacked by their reader; of those that are not read, protobuf asks that they be sound
// too.
Status Feature::check_replaced() const {
  if (kind_ != Kind::kInt64) return Status::kOk;
  for (const Span& piece : pieces_) {
    for (Cursor in(piece, 0); !in.done();) {
      uint64_t value;
      if (Status s = read_varint(in, value); s != Status::kOk) return s;
    }
  }
  return Status::kOk;
}

Status Feature::merge_list(Kind kind, Span list, int deepest_group) {
  if (kind != kind_) {
    if (Status s = check_replaced(); s != Status::kOk) return s;
    pieces_.clear();
    kind_ = kind;
  }
  for (Cursor in(list, deepest_group); !in.done();) {
    uint32_t field, wire_type;
    if (Status s = read_tag(in, field, wire_type); s != Status::kOk) return s;
    if (field != 1) {
      if (Status s = skip_value(in, field, wire_type); s != Status::kOk) return s;
      continue;
    }
    Span piece;
    if (wire_type == kLengthDelimited) {
      if (Status s = read_span(in, piece); s != Status::kOk) return s;
      if (kind == Kind::kFloat && piece.size % 4 != 0) return Status::kPackedFloatSize;
    } else if (wire_type == kVarint && kind == Kind::kInt64) {
      uint64_t value;
      piece.data = in.p;
      if (Status s = read_varint(in, value); s != Status::kOk) return s;
      piece.size = static_cast<size_t>(in.p - piece.data);
    } else if (wire_type == kFixed32 && kind == Kind::kFloat) {
      if (in.left() < 4) return Status::kLengthOverrun;
      piece = Span{in.p, 4};
      in.p += 4;
    } else {
      return Status::kWrongWireType;
    }
    pieces_.push_back(piece);
  }
  return Status::kOk;
}

Status Feature::merge(Span message, int deepest_group) {
  for (Cursor in(message, deepest_group); !in.done();) {
    uint32_t field, wire_type;
    if (Status s = read_tag(in, field, wire_type); s != Status::kOk) return s;
    if (field > 3) {
      if (Status s = skip_value(in, field, wire_type); s != Status::kOk) return s;
      continue;
    }
    if (wire_type != kLengthDelimited) return Status::kWrongWireType;
    Span list;
    if (Status s = read_span(in, list); s != Status::kOk) return s;
    if (Status s = merge_list(static_cast<Kind>(field), list, deepest_group - 1); s != Status::kOk) return s;
  }
  return Status::kOk;
}

Status Feature::merge_entry(Span entry) {
  for (Cursor in(entry, kInEntry); !in.done();) {
    Span value;
    bool found;
    if (Status s = read_field(in, 2, value, found); s != Status::kOk) return s;
    if (!found) continue;
    if (Status s = merge(value, kInFeature); s != Status::kOk) return s;
  }
  return Status::kOk;
}

int64_t Feature::num_pieced() const {
  if (kind_ == Kind::kBytes) return static_cast<int64_t>(pieces_.size());
  int64_t sum = 0;
  for (const Span& piece : pieces_) sum += static_cast<int64_t>(piece.size / 4);
  return sum;
}

Status read_entry_key(Span entry, Span& key) {
  key = Span{};
  for (Cursor in(entry, kInEntry); !in.done();) {
    uint32_t field, wire_type;
    if (Status s = read_tag(in, field, wire_type); s != Status::kOk) return s;
    if (field > 2) {
      if (Status s = skip_value(in, field, wire_type); s != Status::kOk) return s;
      continue;
    }
    if (wire_type != kLengthDelimited) return Status::kWrongWireType;
    Span span;
    if (Status s = read_span(in, span); s != Status::kOk) return s;
    if (field != 1) continue;
    key = span;
    if (!is_utf8(span)) return Status::kKeyNotUtf8;
  }
  return Status::kOk;
}

}  // namespace penstock
