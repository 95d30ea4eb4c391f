#include "record/repair.h"

#include "record/frame.h"

namespace penstock {

void RepairVisitor::record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) {
  const Span whole{frame, static_cast<size_t>(length + kFrameBytes)};
  Status status = Status::kOk;
  if (examples_) {
    const Survey::Result result = survey_.add(Span{frame + kHeaderBytes, static_cast<size_t>(length)});
    status = result.status == Status::kOk && lists_ ? result.list_status : result.status;
  }
  if (status == Status::kOk) {
    append(good, whole);
    num_good++;
    return;
  }
  append(bad, whole);
  Loss loss;
  loss.damage.record = number;
  loss.damage.offset = offset;
  loss.damage.size = whole.size;
  loss.status = status;
  losses.push_back(loss);
}

}  // namespace penstock
