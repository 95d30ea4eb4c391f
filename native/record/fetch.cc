#include "record/fetch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "record/frame.h"

namespace penstock {
namespace {

// How many records are on their way while one is copied and checked: loading one takes as long as that.
constexpr int64_t kTouchedAhead = 8;

// Begins to load a mapped record that will be read soon: those all over a file are not in the processor's cache.
__attribute__((always_inline)) inline void touch(const Segment& segment, int64_t record) {
  if (record >= segment.num_records) return;
  const Mapping* const mapping = segment.sources[segment.number(record)].mapping;
  if (mapping != nullptr) mapping->touch(segment.begins[record], static_cast<size_t>(segment.sizes[record]));
}

Fetched check_frame(const uint8_t* frame, uint64_t size) {
  Fetched record;
  const uint64_t length = size - kFrameBytes;
  if (PENSTOCK_UNLIKELY(frame_length(frame) != length || !header_fits(frame))) {
    record.fault =
        Fault{Status::kFrameChanged, -1, static_cast<int64_t>(length), static_cast<int64_t>(frame_length(frame))};
    return record;
  }
  const uint32_t stored = stored_payload_crc(frame, length);
  const uint32_t computed = computed_payload_crc(frame, length);
  if (PENSTOCK_UNLIKELY(stored != computed)) {
    record.fault = Fault{Status::kPayloadCrc, -1, stored, computed};
    return record;
  }
  record.payload = Span{frame + kHeaderBytes, static_cast<size_t>(length)};
  return record;
}

}  // namespace

size_t read_at(const FrameSource& source, uint64_t offset, uint8_t* out, size_t size, int& error) {
  error = 0;
  if (source.fd < 0) {
    if (offset < source.memory_start || offset - source.memory_start >= source.memory.size) return 0;
    const size_t at = static_cast<size_t>(offset - source.memory_start);
    const size_t there = source.memory.size - at;
    const size_t count = size < there ? size : there;
    std::memcpy(out, source.memory.data + at, count);
    return count;
  }
  size_t got = 0;
  if (source.mapping != nullptr && source.mapping->copy(offset, out, size, got)) return got;
  got = 0;  // reading says why data in a mapping is lost
  while (got < size) {
    const ssize_t n = pread(source.fd, out + got, size - got, static_cast<off_t>(offset + got));
    if (n > 0) {
      got += static_cast<size_t>(n);
    } else if (n == 0) {
      break;
    } else if (errno != EINTR) {
      error = errno;
      break;
    }
  }
  return got;
}

// Reads records that are contiguous in the file, in one call. Returns how many.
int64_t Fetcher::read_run(const Segment& segment, int64_t first, int64_t most, size_t used, std::vector<Fetched>& out) {
  const uint64_t begin = segment.begins[first];
  const uint32_t number = segment.number(first);
  const size_t space = used < kChunkBytes ? kChunkBytes - used : 0;
  uint64_t size = segment.sizes[first];
  if (used != 0 && size > space) return 0;
  int64_t count = 1;
  while (count < most && segment.begins[first + count] == begin + size && segment.number(first + count) == number &&
         size + segment.sizes[first + count] <= space) {
    size += segment.sizes[first + count];
    count++;
  }
  if (count == 1) touch(segment, first + kTouchedAhead);
  // Grows for a record that is larger than a chunk, which is alone in it: no span of this chunk is moved.
  const size_t at_least = start_ + used + static_cast<size_t>(size) + kReadablePadding;
  if (arena_.capacity() < at_least) arena_.reserve(at_least, start_);
  uint8_t* const target = arena_.data() + start_ + used;
  int error;
  const size_t got = read_at(segment.sources[number], begin, target, static_cast<size_t>(size), error);
  uint64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    const uint64_t frame_size = segment.sizes[first + i];
    if (PENSTOCK_LIKELY(at + frame_size <= got && frame_size >= kFrameBytes)) {
      out.push_back(check_frame(target + at, frame_size));
    } else if (error != 0) {
      out.push_back({Span{}, Fault{Status::kReadFailed, -1, 0, error}});
    } else {
      const int64_t there = got > at ? static_cast<int64_t>(got - at) : 0;
      out.push_back({Span{}, Fault{Status::kFileEnds, -1, static_cast<int64_t>(frame_size), there}});
    }
    at += frame_size;
  }
  return count;
}

int64_t Fetcher::fetch(const Segment& segment, int64_t first, int64_t most, std::vector<Fetched>& out) {
  out.clear();
  for (const FrameSource& source : segment.sources) {
    if (source.mapping == nullptr) continue;
    watch_for_lost_pages();
    break;
  }
  if (arena_.data() == nullptr) arena_ = Buffer(kChunkBytes + kReadablePadding);
  start_ = keeps_ ? stop_ : 0;
  int64_t done = 0;
  size_t used = 0;
  while (done < most) {
    const int64_t count = read_run(segment, first + done, most - done, used, out);
    if (count == 0) break;
    for (int64_t i = 0; i < count; i++) used += static_cast<size_t>(segment.sizes[first + done + i]);
    done += count;
    if (used >= kChunkBytes) break;
  }
  stop_ = start_ + used;
  return done;
}

void prefetch(const Segment& segment) {
  for (int64_t i = 0; i < segment.num_records;) {
    const uint32_t number = segment.number(i);
    const uint64_t begin = segment.begins[i];
    uint64_t size = segment.sizes[i++];
    for (; i < segment.num_records && segment.number(i) == number && segment.begins[i] == begin + size; i++) {
      size += segment.sizes[i];
    }
    const int fd = segment.sources[number].fd;
    if (fd < 0 || segment.sources[number].mapping != nullptr) continue;
#ifdef POSIX_FADV_WILLNEED
    (void)posix_fadvise(fd, static_cast<off_t>(begin), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
#endif
  }
}

void Fetcher::keep(size_t bytes) {
  arena_ = Buffer(bytes + kReadablePadding);
  keeps_ = true;
  stop_ = 0;
}

Buffer Fetcher::release() {
  keeps_ = false;
  start_ = stop_ = 0;
  return std::move(arena_);
}

}  // namespace penstock
