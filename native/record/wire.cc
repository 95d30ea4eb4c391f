#include "record/wire.h"

namespace penstock {
namespace {

Status skip_flat(Cursor& in, uint32_t wire_type) {
  uint64_t value;
  Span span;
  switch (wire_type) {
    case kVarint:
      return read_varint(in, value);
    case kFixed64:
      if (in.left() < 8) return Status::kLengthOverrun;
      in.p += 8;
      return Status::kOk;
    case kLengthDelimited:
      return read_span(in, span);
    case kFixed32:
      if (in.left() < 4) return Status::kLengthOverrun;
      in.p += 4;
      return Status::kOk;
    default:
      return Status::kBadWireType;
  }
}

}  // namespace

Status skip_value(Cursor& in, uint32_t field, uint32_t wire_type) {
  if (PENSTOCK_LIKELY(wire_type != kGroup)) return skip_flat(in, wire_type);
  uint32_t open[kDeepestGroup];  // a stack of our own: depth is the data's choice, the machine's stack is not
  int depth = 0;
  open[depth++] = field;
  while (depth > 0) {
    if (in.done()) return Status::kOpenGroup;
    // Inside a group that is passed over protobuf lets even field 0 pass.
    Status tag_status = read_tag(in, field, wire_type);
    if (tag_status != Status::kOk && tag_status != Status::kFieldZero) return tag_status;
    if (wire_type == kGroup) {
      if (depth >= in.deepest_group) return Status::kDeepGroups;
      open[depth++] = field;
    } else if (wire_type == kEndGroup) {
      if (open[--depth] != field) return Status::kOpenGroup;
    } else if (Status s = skip_flat(in, wire_type); s != Status::kOk) {
      return s;
    }
  }
  return Status::kOk;
}

}  // namespace penstock
