#include "write/compose.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "record/crc32c.h"
#include "record/frame.h"

namespace penstock {
namespace {

constexpr size_t kAhead = 4;          // rows
constexpr size_t kPrefetched = 1024;  // bytes of each; the processor finds the rest by itself
constexpr size_t kRoomBehind = 64;    // so that prefixes of entries are copied whole
constexpr int kChanged = 0;

// Reads a whole file of a known size into memory. Returns -1, an errno, or kChanged if it has another size or
// content.
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
  if (result == -1 && digest_bytes({out, value.size}) != value.digest) result = kChanged;
  return result;
}

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
        if (error != -1) faults.push_back({row, i, error});
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
  }
  return faults;
}

}  // namespace penstock
