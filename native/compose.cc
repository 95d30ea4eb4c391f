#include "compose.h"

#include "crc32c.h"
#include "frame.h"

namespace penstock {
namespace {

constexpr size_t kAhead = 4;          // rows
constexpr size_t kPrefetched = 1024;  // bytes of each; the processor finds the rest by itself
constexpr size_t kRoomBehind = 64;  // so that prefixes of entries are copied whole

}  // namespace

void compose_frames(const std::vector<Span>& bodies, const std::vector<LateField>& late, bool is_message,
                    Growing<uint8_t>& out, Growing<int64_t>& sizes) {
  size_t total = 0;
  for (const Span& body : bodies) total += body.size + kFrameBytes + kRoomBehind;
  for (const LateField& field : late) {
    for (const Span& value : field.values) total += value.size + field.field.key.size() + kRoomBehind;
  }
  out.room(total);
  for (size_t row = 0; row < bodies.size(); row++) {
    if (row + kAhead < bodies.size()) {
      // Rows come in random order from memory far larger than any cache.
      const Span next = bodies[row + kAhead];
      for (size_t at = 0; at < next.size && at < kPrefetched; at += 64) __builtin_prefetch(next.data + at);
    }
    size_t entries = bodies[row].size;
    for (const LateField& field : late) {
      if (field.values[row].data != nullptr) entries += plain_entry_size(field.field, field.values[row].size);
    }
    const size_t payload = is_message ? entries : tagged_size(entries);
    uint8_t* const frame = out.room(payload + kFrameBytes + kRoomBehind);
    const uint64_t length = payload;
    std::memcpy(frame, &length, 8);
    const uint32_t length_crc = masked_crc32c(frame, 8);
    std::memcpy(frame + 8, &length_crc, 4);
    uint8_t* at = frame + 12;
    if (!is_message) at = put_tagged(at, kFirstTag, entries);
    for (const LateField& field : late) {
      const Span value = field.values[row];
      if (value.data == nullptr) continue;
      at = PlainEntry(field.field).put(at, frame + payload + kFrameBytes + kRoomBehind, value.size);
      std::memcpy(at, value.data, value.size);
      at += value.size;
    }
    if (bodies[row].size != 0) std::memcpy(at, bodies[row].data, bodies[row].size);
    const uint32_t payload_crc = masked_crc32c(frame + 12, payload);
    std::memcpy(frame + 12 + payload, &payload_crc, 4);
    out.advance(payload + kFrameBytes);
    sizes.push(static_cast<int64_t>(payload + kFrameBytes));
  }
}

}  // namespace penstock
