// Scans the frames of a file, which is fed in order: finds records, and the next record after damage.
//
// Everything in the file is either a record or damage, and damage counts as one record, so that the numbers of the
// records after it are the same in every pass.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/bytes.h"
#include "foundation/growable_array.h"

namespace penstock {

// Numbers cross into Python (read/damage.py words them): append, never renumber.
enum class DamageKind : uint8_t {
  kLengthCrc = 1,   // length or its CRC damaged; expected: stored CRC, got: computed
  kPastEnd = 2,     // length runs past the end of the file; expected: bytes there, got: length
  kTooLarge = 3,    // length above the limit; expected: limit, got: length
  kCutHeader = 4,   // file ends inside a header; expected: 12, got: bytes there
  kCutPayload = 5,  // stream ends inside a record; expected: frame's bytes, got: bytes there
  kPayloadCrc = 6,  // expected: stored CRC, got: computed
  kCutShort = 7,    // the next record begins inside this one; expected: frame's bytes, got: bytes before that
};

struct Damage {
  DamageKind kind = DamageKind::kLengthCrc;
  bool length_is_right = false;  // kLengthCrc: the next header is where the length says, so only its CRC is damaged
  int64_t record = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t expected = 0;
  uint64_t got = 0;
};

class FrameVisitor {
 public:
  virtual ~FrameVisitor() = default;
  // A sound record. `frame` is null when only headers are read.
  virtual void record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) = 0;
  // Bytes of the damage that damage() will report; comes in pieces.
  virtual void damaged_bytes(Span) {}
  virtual void damage(const Damage& damage) = 0;
};

struct ScanOptions {
  bool with_payloads = false;        // check payload CRCs, and hand out frames
  uint64_t file_bytes = UINT64_MAX;  // if known beforehand
  uint64_t max_record_bytes = uint64_t{1} << 30;
  bool allow_trailing_zeros = false;
  bool can_rewind = false;  // the caller feeds from where jump() says, also if it was fed before; needs file_bytes
};

class FrameScanner {
 public:
  FrameScanner(const ScanOptions& options, FrameVisitor& visitor)
      : options_(options), file_bytes_(options.file_bytes), visitor_(visitor) {}

  // The bytes that follow those fed before.
  void feed(Span bytes);

  // Skips the bytes that the scanner would only pass over, and returns the offset in the file from which to continue
  // feeding: with can_rewind, perhaps one that was fed before. For files that can be read anywhere, whose size was
  // given.
  uint64_t jump();

  // No more bytes will come.
  void finish();

  int64_t num_records() const { return number_; }
  // Where the next record or damage begins, or the one that is being read.
  uint64_t position() const { return position_; }
  // Where the last record or damage ends: the end of the file, but for trailing zeros that are allowed.
  uint64_t end() const { return end_; }

 private:
  enum class State { kHeader, kPayload, kSearch, kSkipDamage };
  enum class Next { kFits, kBad, kUnknown };

  // Whether the bytes of the current record are passed over, rather than kept until the next bytes are known.
  bool skips() const;
  bool may_be_cut_short() const;
  size_t consume(const uint8_t* p, size_t size);
  size_t at_header(const uint8_t* p, size_t size);
  size_t at_payload(const uint8_t* p, size_t size);
  size_t end_record(const uint8_t* p, size_t size);
  size_t in_search(const uint8_t* p, size_t size);
  Next after(const uint8_t* end, size_t size, uint64_t offset) const;
  size_t find_header(const uint8_t* p, size_t frame_bytes, size_t size) const;
  size_t cut_short(const uint8_t* p, size_t cut);
  void leave_record(uint64_t end);
  void report_held();
  void look_again();
  size_t run(const uint8_t* p, size_t size);
  bool plausible(const uint8_t* header, uint64_t offset) const;
  void begin_damage(DamageKind kind, uint64_t expected, uint64_t got);
  void end_damage(uint64_t end);
  void pass(const uint8_t* p, size_t size);

  const ScanOptions options_;
  uint64_t file_bytes_;  // as given, and at the end of the bytes as found
  FrameVisitor& visitor_;
  State state_ = State::kHeader;
  GrowableArray<uint8_t> pending_;  // bytes fed but not yet understood; begins at position_
  uint64_t position_ = 0;
  uint64_t end_ = 0;
  uint64_t skip_ = 0;                // bytes of a payload or of known damage still to be jumped over
  uint64_t begin_ = 0, length_ = 0;  // of the current record
  uint64_t overlap_ = 0;             // bytes that were looked at once more because records before them were cut short
  int64_t number_ = 0;
  // A record that was passed over is held until the next bytes are known: a header, or bytes that make the scanner
  // look at the record again, from its first byte.
  uint64_t held_offset_ = 0, held_length_ = 0;
  bool is_held_ = false, looks_again_ = false;
  bool is_rewound_ = false;  // until jump() is called
  Damage damage_;
  bool only_zeros_ = false;  // the damage so far
};

}  // namespace penstock
