#include "decode/row_reader.h"

namespace penstock {

bool RowReader::read(const int64_t* rows, size_t count, Decoded& out) const {
  Buffer which(count * sizeof(uint32_t)), begins(count * sizeof(uint64_t)), sizes(count * sizeof(uint64_t));
  uint32_t* const which_file = which.as<uint32_t>();
  uint64_t* const begin = begins.as<uint64_t>();
  uint64_t* const size = sizes.as<uint64_t>();
  std::vector<uint32_t> numbers;
  if (!locations_.find_files(rows, count, which_file, numbers)) return false;
  std::vector<Segment> segments(1);
  Segment& segment = segments[0];
  for (const uint32_t number : numbers) {
    if (!identities_[number].is_unchanged()) return false;
    segment.sources.push_back(files_[number]);
  }
  // Only of open files: another thread may be setting the offsets of one that is being opened.
  if (!locations_.find_frames(rows, count, which_file, numbers, begin, size)) return false;
  for (size_t i = 0; i < count; i++) {
    if (!is_possible_frame(begin[i], size[i])) return false;
  }
  segment.which = which_file;
  segment.begins = begin;
  segment.sizes = size;
  segment.num_records = static_cast<int64_t>(count);
  out = decoder_.decode(segments);
  return true;
}

}  // namespace penstock
