// The index of a file: where each record begins, found by reading headers alone.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/growable_array.h"
#include "record/frame_scanner.h"

namespace penstock {

// Collects where records and damage begin. They tile the file: each ends where the next begins.
class IndexVisitor : public FrameVisitor {
 public:
  // A list longer than this means that there are too many to read around.
  static constexpr size_t kMostDamages = 100000;

  void record(int64_t, uint64_t offset, const uint8_t*, uint64_t) override { begins.push(offset); }
  void damage(const Damage& found) override {
    begins.push(found.offset);
    if (damages.size() <= kMostDamages) damages.push_back(found);
  }

  GrowableArray<uint64_t> begins;
  std::vector<Damage> damages;
};

// Scans the headers of a plain file. Returns 0, or the errno of a read that failed.
int scan_headers(int fd, const ScanOptions& options, FrameScanner& scanner);

}  // namespace penstock
