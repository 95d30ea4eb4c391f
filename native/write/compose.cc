#include "write/compose.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "record/crc32c.h"
#include "record/frame.h"
#include "write/digest_lanes.h"

namespace penstock {
namespace {

constexpr size_t kAhead = 4;          // rows
constexpr size_t kPrefetched = 1024;  // bytes of each; the processor finds the rest by itself
constexpr size_t kRoomBehind = 64;    // so that prefixes of entries are copied whole
constexpr int kChanged = 0;

// Reads a whole file of a known size into memory. Returns -1, an errno, or kChanged if it has another size.
int read_file(const LateValue& value, uint8_t* out) {
  const int fd = open(value.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  size_t done = 0;
  int result = -1;
  while (result == -1 && done < value.size) {
    const ssize_t count = read(fd, out + done, value.size - done);
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (count == 0) {
      result = kChanged;
    } else if (errno != EINTR) {
      result = errno;
    }
  }
  uint8_t more;
  if (result == -1 && read(fd, &more, 1) != 0) result = kChanged;
  close(fd);
  return result;
}

// Files that were read into frames, and must still have the digests that they had. Several are digested together.
class ReadFiles {
 public:
  void add(size_t row, size_t field, size_t begin, const LateValue& value) {
    files_.push_back({row, field, begin, value.size, value.digest});
    num_bytes_ += value.size;
  }
  bool is_group() const { return num_bytes_ >= kGroupBytes; }

  // Adds a fault for each file that has changed. `frames` is what the files begin in.
  void check(const uint8_t* frames, std::vector<LateFault>& faults) {
    std::vector<Span> values;
    for (const File& file : files_) values.push_back({frames + file.begin, file.size});
    std::vector<Digest> digests(values.size());
    digest_values(values.data(), values.size(), digests.data());
    for (size_t i = 0; i < files_.size(); i++) {
      if (digests[i] != files_[i].digest) faults.push_back({files_[i].row, files_[i].field, kChanged});
    }
    files_.clear();
    num_bytes_ = 0;
  }

 private:
  static constexpr size_t kGroupBytes = 256 << 10;  // in the second-level cache

  struct File {
    size_t row, field, begin, size;
    Digest digest;
  };
  std::vector<File> files_;
  size_t num_bytes_ = 0;
};

// A bound for all frames: room is made once.
size_t bound_of(const std::vector<Span>& bodies, const std::vector<LateField>& late) {
  size_t total = 0;
  for (const Span& body : bodies) total += body.size + kFrameBytes + kRoomBehind;
  for (const LateField& field : late) {
    for (const LateValue& value : field.values) total += value.size + field.field.key.size() + kRoomBehind;
  }
  return total;
}

}  // namespace

std::vector<LateFault> compose_frames(const std::vector<Span>& bodies, const std::vector<LateField>& late,
                                      bool is_message, GrowableArray<uint8_t>& out, GrowableArray<int64_t>& sizes) {
  std::vector<LateFault> faults;
  ReadFiles files;
  out.room(bound_of(bodies, late));
  for (size_t row = 0; row < bodies.size(); row++) {
    if (row + kAhead < bodies.size()) {
      // Rows come in random order from memory far larger than any cache.
      const Span next = bodies[row + kAhead];
      for (size_t at = 0; at < next.size && at < kPrefetched; at += 64) __builtin_prefetch(next.data + at);
    }
    size_t entries = bodies[row].size;
    for (const LateField& field : late) {
      if (field.values[row].is_there) entries += plain_entry_size(field.field, field.values[row].size);
    }
    const size_t payload = is_message ? entries : tagged_size(entries);
    uint8_t* const frame = out.room(payload + kFrameBytes + kRoomBehind);
    const uint64_t length = payload;
    std::memcpy(frame, &length, 8);
    const uint32_t length_crc = masked_crc32c(frame, 8);
    std::memcpy(frame + 8, &length_crc, 4);
    uint8_t* at = frame + kHeaderBytes;
    if (!is_message) at = put_tagged(at, kFirstTag, entries);
    for (size_t i = 0; i < late.size(); i++) {
      const LateValue& value = late[i].values[row];
      if (!value.is_there) continue;
      at = PlainEntry(late[i].field).put(at, frame + payload + kFrameBytes + kRoomBehind, value.size);
      if (!value.path.empty()) {
        const int error = read_file(value, at);
        if (error != -1) {
          faults.push_back({row, i, error});
        } else {
          files.add(row, i, static_cast<size_t>(at - out.data()), value);
        }
      } else if (value.size != 0) {
        std::memcpy(at, value.memory.data, value.size);
      }
      at += value.size;
    }
    if (bodies[row].size != 0) std::memcpy(at, bodies[row].data, bodies[row].size);
    const uint32_t payload_crc = masked_crc32c(frame + kHeaderBytes, payload);
    std::memcpy(frame + kHeaderBytes + payload, &payload_crc, 4);
    out.advance(payload + kFrameBytes);
    sizes.push(static_cast<int64_t>(payload + kFrameBytes));
    if (files.is_group()) files.check(out.data(), faults);
  }
  files.check(out.data(), faults);
  std::sort(faults.begin(), faults.end(),
            [](const LateFault& a, const LateFault& b) { return a.row != b.row ? a.row < b.row : a.field < b.field; });
  return faults;
}

}  // namespace penstock
