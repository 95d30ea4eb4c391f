// Divides a damaged file into good frames and the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/survey.h"
#include "foundation/growable_array.h"
#include "record/frame_scanner.h"

namespace penstock {

// What stays of a record that is not kept: damage of the frame, or a sound frame whose payload does not parse.
struct Loss {
  Damage damage;                // record, offset and size hold in both cases
  Status status = Status::kOk;  // not kOk: the payload does not parse
};

class RepairVisitor : public FrameVisitor {
 public:
  // With `examples`, a record must be an Example to be kept; with `lists`, a SequenceExample.
  RepairVisitor(bool examples, bool lists) : examples_(examples), lists_(lists) {}

  void record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) override;
  void damaged_bytes(Span bytes) override { append(bad, bytes); }
  void damage(const Damage& found) override { losses.push_back({found, Status::kOk}); }

  // What came since the caller last emptied them.
  GrowableArray<uint8_t> good;  // whole frames
  GrowableArray<uint8_t> bad;   // the bytes of all losses, concatenated
  std::vector<Loss> losses;
  int64_t num_good = 0;

 private:
  static void append(GrowableArray<uint8_t>& out, Span bytes) {
    std::memcpy(out.room(bytes.size), bytes.data, bytes.size);
    out.advance(bytes.size);
  }

  const bool examples_, lists_;
  Survey survey_;
};

}  // namespace penstock
