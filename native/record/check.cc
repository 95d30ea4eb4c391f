#include "record/check.h"

#include "record/frame.h"

namespace penstock {

void CheckVisitor::record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) {
  const Survey::Result result = survey.add(Span{frame + kHeaderBytes, static_cast<size_t>(length)});
  const bool in_lists = result.status == Status::kOk;
  const Status status = in_lists ? result.list_status : result.status;
  if (status == Status::kOk || unparsable.size() >= kMostListed) return;
  unparsable.push_back({number, offset, status, in_lists});
}

}  // namespace penstock
