#include "batch/batch_slices.h"

#include <chrono>
#include <utility>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

int64_t nanoseconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

}  // namespace

BatchSlices::BatchSlices(const Source& source, const Program& program, std::vector<size_t> columns,
                         std::vector<ProgramArray> arrays, const int64_t* rows, size_t num_rows, size_t num_parts)
    : source_(source),
      program_(program),
      columns_(std::move(columns)),
      arrays_(std::move(arrays)),
      rows_(rows),
      num_rows_(num_rows),
      pieces_(num_parts) {}

bool BatchSlices::run(size_t part) noexcept {
  try {
    return make(part);
  } catch (...) {  // no memory: Python tries again, and names the batch
    return false;
  }
}

bool BatchSlices::make(size_t part) {
  const size_t first = part * num_rows_ / num_parts(), stop = (part + 1) * num_rows_ / num_parts();
  const size_t count = stop - first;
  const auto begin = Clock::now();
  Decoded decoded;
  std::vector<FieldColumn> views;
  std::vector<const FieldColumn*> chosen;
  chosen.reserve(columns_.size());
  RowChoice choice{rows_ + first, count};
  if (source_.reader == nullptr) {
    for (const size_t number : columns_) chosen.push_back(&(*source_.fields)[number]);
  } else {
    if (!source_.reader->read(rows_ + first, count, decoded) || !decoded.faults.empty()) return false;
    views.reserve(columns_.size());
    for (const size_t number : columns_) {
      const FieldSpec& spec = source_.reader->decoder().plan().fields[number];
      views.push_back(view_column(spec, decoded.columns[number], count, decoded.kept));
      chosen.push_back(&views.back());
    }
    choice.index = nullptr;  // they are in order
  }
  const auto middle = Clock::now();
  auto piece = std::make_unique<Piece>();
  if (!program_.run(chosen, choice, arrays_, first, *piece).empty()) return false;
  if (!program_.piece_steps().empty()) pieces_[part] = std::move(piece);
  read_nanoseconds_ += nanoseconds(begin, middle);
  transform_nanoseconds_ += nanoseconds(middle, Clock::now());
  return true;
}

}  // namespace penstock
