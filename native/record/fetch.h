// Records by their offsets in files: read with pread into one recycled arena, neighbours in one call, frames checked.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/bytes.h"
#include "foundation/pool.h"
#include "record/frame.h"
#include "record/mapping.h"
#include "record/status.h"

namespace penstock {

// A file, perhaps mapped, or a stretch of memory that stands for the file from byte `memory_start` on.
struct FrameSource {
  int fd = -1;
  const Mapping* mapping = nullptr;
  Span memory;
  uint64_t memory_start = 0;
};

// Fills `out` from byte `offset` of the source. Returns the bytes got; fewer mean that the file ends, or that reading
// failed with `error`.
size_t read_at(const FrameSource& source, uint64_t offset, uint8_t* out, size_t size, int& error);

// Records of one file, or of several in any order.
struct Segment {
  std::vector<FrameSource> sources;
  const uint32_t* which = nullptr;   // the source of each record; null if there is but one
  const uint64_t* begins = nullptr;  // where each frame begins in its file
  const uint64_t* sizes = nullptr;   // of the whole frame, its 16 framing bytes included
  int64_t num_records = 0;

  uint32_t number(int64_t record) const { return which == nullptr ? 0 : which[record]; }
};

// Whether sums of these cannot overflow, and the frame is not smaller than its header and footer.
inline bool is_possible_frame(uint64_t begin, uint64_t size) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  return size >= kFrameBytes && size <= kMostBytes && begin <= kMostBytes;
}

// Asks the kernel to read the records into memory in the background. Advice: it may be ignored.
void prefetch(const Segment& segment);

// A record that was fetched: its payload, readable for kReadablePadding bytes past its end, or the fault.
struct Fetched {
  Span payload;
  Fault fault;
};

class Fetcher {
 public:
  // Reads about this much at a time: it stays in the second-level cache between the read, the CRC and the parse.
  static constexpr size_t kChunkBytes = 256 << 10;

  // Reads as many of the records from `first` on as fit a chunk, at least one, at most `most`, into an arena that is
  // overwritten by the next call, unless it is kept. The spans stay good until then.
  int64_t fetch(const Segment& segment, int64_t first, int64_t most, std::vector<Fetched>& out);

  // Lets go of an arena that one huge record made large.
  void trim() {
    if (arena_.capacity() > 16 * kChunkBytes) arena_ = Buffer();
  }

  // Keeps all that the next calls read, frames of `bytes` in all, until release() hands it over.
  void keep(size_t bytes);
  Buffer release();
  const uint8_t* arena() const { return arena_.data(); }

  // Where the last fetch() began to write: below every payload of it.
  const uint8_t* base() const { return arena_.data() + start_; }

 private:
  int64_t read_run(const Segment& segment, int64_t first, int64_t most, size_t used, std::vector<Fetched>& out);

  Buffer arena_;
  size_t start_ = 0;  // of the current chunk in the arena
  size_t stop_ = 0;   // of all that is kept
  bool keeps_ = false;
};

}  // namespace penstock
