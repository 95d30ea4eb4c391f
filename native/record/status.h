// Faults of a record. Numbers cross into Python (decode/losses.py turns them into errors): append, never
// renumber.
#pragma once

#include <cstdint>

namespace penstock {

enum class Status : uint8_t {
  kOk = 0,
  // the frame
  kPayloadCrc = 1,    // expected, got: masked CRCs
  kFrameChanged = 2,  // the header is not the one that was indexed; expected, got: lengths
  kFileEnds = 3,      // the file ends inside the record; expected, got: bytes
  kReadFailed = 4,    // got: errno
  // the message
  kVarintTooLong = 10,    // more than ten bytes (five, in a tag or a length)
  kVarintCut = 11,        // ends before its last byte
  kLengthOverrun = 12,    // a length runs past what holds it; expected: bytes left, got: length
  kFieldZero = 13,        // field number 0
  kBadWireType = 14,      // wire types 6 and 7, an end of a group that was not begun
  kWrongWireType = 15,    // a field we know, in a wire type it cannot have
  kOpenGroup = 16,        // a group that does not end, or ends as another
  kDeepGroups = 17,       // groups nested too deep
  kPackedFloatSize = 18,  // packed floats that are no multiple of four bytes
  kKeyNotUtf8 = 19,
  kVarintOverflow = 20,  // strict only: more than 64 bits
  kDuplicateKey = 21,    // strict only
  // the schema
  kWrongKind = 30,   // expected, got: Kind
  kWrongCount = 31,  // expected, got: values
  kWrongSize = 32,   // expected, got: bytes of a raw tensor
  kMissing = 33,
  kWrongStepCount = 34,  // as kWrongCount, in one step of a feature list
};

enum class Kind : uint8_t { kUnset = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// One fault. `field` is the plan's number of the field it is in, -1 if in none.
struct Fault {
  Status status = Status::kOk;
  int32_t field = -1;
  int64_t expected = 0;
  int64_t got = 0;

  explicit operator bool() const { return status != Status::kOk; }
};

}  // namespace penstock
