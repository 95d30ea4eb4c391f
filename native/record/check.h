// A full check of a file: every CRC, and every record as an Example.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/survey.h"
#include "record/frame_scanner.h"

namespace penstock {

struct Unparsable {
  int64_t record;
  uint64_t offset;
  Status status;
  bool in_lists;  // sound as an Example; what would be its feature lists is not
};

class CheckVisitor : public FrameVisitor {
 public:
  // A file of something else has as many unparsable records as records: the lists stop here, the counts do not.
  static constexpr size_t kMostListed = 20000;

  explicit CheckVisitor(Survey* counts) : survey(*counts) {}

  void record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) override;
  void damage(const Damage& found) override {
    num_damages++;
    if (damages.size() < kMostListed) damages.push_back(found);
  }

  Survey& survey;  // several files may be counted together
  std::vector<Damage> damages;
  int64_t num_damages = 0;
  std::vector<Unparsable> unparsable;
};

}  // namespace penstock
