// Parts a damaged file into what is good and what is not.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/survey.h"
#include "foundation/growing.h"
#include "record/walk.h"

namespace penstock {

// What stays of a record that is not kept: damage of the frame, or a sound frame whose payload does not parse.
struct Loss {
  Damage damage;                // record, offset and size hold in both cases
  Status status = Status::kOk;  // not kOk: the payload does not parse
};

class SieveVisitor : public Visitor {
 public:
  // With `examples`, a record must be an Example to be kept; with `lists`, a SequenceExample.
  SieveVisitor(bool examples, bool lists) : examples_(examples), lists_(lists) {}

  void record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) override;
  void damaged_bytes(Span bytes) override { append(bad, bytes); }
  void damage(const Damage& found) override { losses.push_back({found, Status::kOk}); }

  // What came since the caller last emptied them.
  Growing<uint8_t> good;  // whole frames
  Growing<uint8_t> bad;   // the bytes of all losses, one behind the other
  std::vector<Loss> losses;
  int64_t num_good = 0;

 private:
  static void append(Growing<uint8_t>& out, Span bytes) {
    std::memcpy(out.room(bytes.size), bytes.data, bytes.size);
    out.advance(bytes.size);
  }

  const bool examples_, lists_;
  Survey survey_;
};

}  // namespace penstock
