// Protobuf's wire format: varints, tags, lengths, fields that are passed over. Every bound is checked before a byte is
// read.
//
// The limits equal the limits of protobuf's parser: a tag and a length take at most five bytes, a value at most ten.
#pragma once

#include "foundation/bytes.h"
#include "record/status.h"

namespace penstock {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

inline constexpr uint64_t kLargestLength = 0x7fffffff;

// Messages and groups may nest 100 deep together. The depth left for groups inside each message of an Example:
inline constexpr int kDeepestGroup = 100;
inline constexpr int kInMap = 99;      // Features, FeatureLists
inline constexpr int kInEntry = 98;    // an entry of either map
inline constexpr int kInFeature = 97;  // a Feature; a FeatureList
inline constexpr int kInStep = 96;     // a Feature in a FeatureList

// A position in a message. Readers advance it and return kOk, or leave it at the fault and return the fault.
struct Cursor {
  const uint8_t* p;
  const uint8_t* end;
  int deepest_group;

  Cursor(const uint8_t* begin, const uint8_t* stop, int groups = kDeepestGroup)
      : p(begin), end(stop), deepest_group(groups) {}
  Cursor(Span span, int groups) : Cursor(span.begin(), span.end(), groups) {}
  bool done() const { return p >= end; }
  size_t left() const { return static_cast<size_t>(end - p); }
};

template <int kLongest>
inline Status read_varint_of(Cursor& in, uint64_t& value) {
  if (PENSTOCK_LIKELY(in.p < in.end && *in.p < 0x80)) {
    value = *in.p++;
    return Status::kOk;
  }
  uint64_t sum = 0;
  const uint8_t* p = in.p;
  for (int i = 0; i < kLongest; i++) {
    if (p >= in.end) return Status::kVarintCut;
    const uint64_t byte = *p++;
    sum |= (byte & 0x7f) << (7 * i);  // the tenth byte's upper bits fall away: values are taken modulo 2^64
    if (byte < 0x80) {
      value = sum;
      in.p = p;
      return Status::kOk;
    }
  }
  return Status::kVarintTooLong;
}

inline Status read_varint(Cursor& in, uint64_t& value) { return read_varint_of<10>(in, value); }

inline Status read_tag(Cursor& in, uint32_t& field, uint32_t& wire_type) {
  uint64_t tag;
  if (Status s = read_varint_of<5>(in, tag); s != Status::kOk) return s;
  if (tag > 0xffffffffu) return Status::kVarintTooLong;
  field = static_cast<uint32_t>(tag >> 3);
  wire_type = static_cast<uint32_t>(tag & 7);
  return field == 0 ? Status::kFieldZero : Status::kOk;
}

// Reads a length and the bytes it announces.
inline Status read_span(Cursor& in, Span& span) {
  uint64_t length;
  if (Status s = read_varint_of<5>(in, length); s != Status::kOk) return s;
  if (length > kLargestLength || length > in.left()) return Status::kLengthOverrun;
  span = Span{in.p, static_cast<size_t>(length)};
  in.p += length;
  return Status::kOk;
}

// Passes over the value of a field whose tag was just read; groups with all that is in them.
Status skip_value(Cursor& in, uint32_t field, uint32_t wire_type);

// Reads the tag of the next field. If it is length-delimited and numbered `wanted`, fills `span` and says so in
// `found`; any other number is passed over; `wanted` in another wire type is a fault.
inline Status read_field(Cursor& in, uint32_t wanted, Span& span, bool& found) {
  uint32_t field, wire_type;
  found = false;
  if (Status s = read_tag(in, field, wire_type); s != Status::kOk) return s;
  if (field != wanted) return skip_value(in, field, wire_type);
  if (wire_type != kLengthDelimited) return Status::kWrongWireType;
  found = true;
  return read_span(in, span);
}

}  // namespace penstock
