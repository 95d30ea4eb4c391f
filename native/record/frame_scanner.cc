#include "record/frame_scanner.h"

#include <algorithm>
#include <cstring>

#include "record/frame.h"

namespace penstock {
namespace {

// Whatever limit was given: a frame's size and an offset in a file can be added up without overflow.
constexpr uint64_t kLargestRecord = uint64_t{1} << 40;

}  // namespace

bool FrameScanner::plausible(const uint8_t* header, uint64_t offset) const {
  if (!header_fits(header)) return false;
  const uint64_t length = frame_length(header);
  if (length > std::min(options_.max_record_bytes, kLargestRecord)) return false;
  if (options_.file_bytes == UINT64_MAX) return true;
  const uint64_t left = options_.file_bytes - offset;
  return left >= kFrameBytes && length <= left - kFrameBytes;
}

void FrameScanner::begin_damage(DamageKind kind, uint64_t expected, uint64_t got) {
  damage_ = Damage{};
  damage_.kind = kind;
  damage_.record = number_;
  damage_.offset = position_;
  damage_.expected = expected;
  damage_.got = got;
  only_zeros_ = true;
}

void FrameScanner::end_damage(uint64_t end) {
  damage_.size = end - damage_.offset;
  damage_.length_is_right =
      damage_.kind == DamageKind::kLengthCrc && length_ <= damage_.size && damage_.size - length_ == kFrameBytes;
  visitor_.damage(damage_);
  number_++;
  state_ = State::kHeader;
}

// Counts bytes as part of the current damage.
void FrameScanner::pass(const uint8_t* p, size_t size) {
  if (size == 0) return;
  for (size_t i = 0; only_zeros_ && i < size; i++) only_zeros_ = p[i] == 0;
  visitor_.damaged_bytes(Span{p, size});
}

// Each of these reads the bytes at position_ and returns how many it has consumed; 0 asks for more.

size_t FrameScanner::at_header(const uint8_t* p, size_t size) {
  if (size < kHeaderBytes) return 0;
  length_ = frame_length(p);
  const bool known = options_.file_bytes != UINT64_MAX;
  const uint64_t left = known ? options_.file_bytes - position_ : UINT64_MAX;
  if (!header_fits(p)) {
    begin_damage(DamageKind::kLengthCrc, load32(p + 8), masked_crc32c(p, 8));
  } else if (known && (left < kFrameBytes || length_ > left - kFrameBytes)) {
    begin_damage(DamageKind::kPastEnd, left < kFrameBytes ? 0 : left - kFrameBytes, length_);
  } else if (length_ > std::min(options_.max_record_bytes, kLargestRecord)) {
    begin_damage(DamageKind::kTooLarge, options_.max_record_bytes, length_);
    if (known) {  // the length is sound and leads to the next record
      skip_ = length_ + kFrameBytes;
      state_ = State::kSkipDamage;
      return consume(p, size);
    }
  } else {
    state_ = State::kPayload;
    if (!options_.with_payloads) {
      skip_ = length_ + kFrameBytes;
    }
    return consume(p, size);
  }
  // The damaged header itself is no candidate: begin the search one byte on.
  state_ = State::kSearch;
  pass(p, 1);
  return 1;
}

size_t FrameScanner::at_payload(const uint8_t* p, size_t size) {
  const uint64_t frame_bytes = length_ + kFrameBytes;
  if (!options_.with_payloads) {
    const size_t step = skip_ < size ? static_cast<size_t>(skip_) : size;
    skip_ -= step;
    if (skip_ == 0) {
      visitor_.record(number_++, position_ + step - frame_bytes, nullptr, length_);
      state_ = State::kHeader;
    }
    return step;
  }
  if (size < frame_bytes) return 0;
  const auto step = static_cast<size_t>(frame_bytes);
  const uint32_t stored = stored_payload_crc(p, length_);
  const uint32_t computed = computed_payload_crc(p, length_);
  if (stored == computed) {
    visitor_.record(number_++, position_, p, length_);
    state_ = State::kHeader;
  } else {
    begin_damage(DamageKind::kPayloadCrc, stored, computed);
    visitor_.damaged_bytes(Span{p, step});
    end_damage(position_ + frame_bytes);
  }
  return step;
}

size_t FrameScanner::in_search(const uint8_t* p, size_t size) {
  size_t at = 0;
  for (; size - at >= kHeaderBytes; at++) {
    if (!plausible(p + at, position_ + at)) continue;
    pass(p, at);
    end_damage(position_ + at);
    if (at == 0) return consume(p, size);
    return at;
  }
  pass(p, at);
  return at;
}

size_t FrameScanner::consume(const uint8_t* p, size_t size) {
  switch (state_) {
    case State::kHeader:
      return at_header(p, size);
    case State::kPayload:
      return at_payload(p, size);
    case State::kSearch:
      return size < kHeaderBytes ? 0 : in_search(p, size);
    case State::kSkipDamage: {
      const size_t step = skip_ < size ? static_cast<size_t>(skip_) : size;
      pass(p, step);
      skip_ -= step;
      if (skip_ == 0) end_damage(position_ + step);
      return step;
    }
  }
  return 0;
}

void FrameScanner::feed(Span bytes) {
  const uint8_t* p = bytes.data;
  size_t size = bytes.size;
  // What was left over comes first. Frames that are handed out are in pending_, for the parsers' padding.
  const bool through_pending = pending_.size() != 0 || options_.with_payloads;
  if (through_pending) {
    std::memcpy(pending_.room(size + kReadablePadding), p, size);
    pending_.advance(size);
    p = pending_.data();
    size = pending_.size();
  }
  while (size != 0) {
    const size_t step = consume(p, size);
    if (step == 0) break;
    p += step;
    size -= step;
    position_ += step;
  }
  if (through_pending) {
    std::memmove(pending_.data(), p, size);
    pending_.truncate(size);
  } else if (size != 0) {
    std::memcpy(pending_.room(size + kReadablePadding), p, size);
    pending_.advance(size);
  }
}

uint64_t FrameScanner::jump() {
  if (skip_ != 0) {
    position_ += skip_;
    skip_ = 0;
    if (state_ == State::kSkipDamage) {
      end_damage(position_);
    } else {
      visitor_.record(number_++, position_ - length_ - kFrameBytes, nullptr, length_);
      state_ = State::kHeader;
    }
  }
  return position_ + pending_.size();
}

void FrameScanner::finish() {
  const size_t rest = pending_.size();
  const uint64_t end = position_ + rest;
  if (state_ == State::kSearch) {
    pass(pending_.data(), rest);
  } else if (state_ == State::kHeader) {
    end_ = end;
    if (rest == 0) return;
    begin_damage(DamageKind::kCutHeader, kHeaderBytes, rest);
    pass(pending_.data(), rest);
  } else if (state_ == State::kPayload) {
    const uint64_t there = options_.with_payloads ? rest : length_ + kFrameBytes - skip_;
    position_ = end - there;
    begin_damage(DamageKind::kCutPayload, length_ + kFrameBytes, there);
    pass(pending_.data(), rest);
  }
  pending_.truncate(0);
  skip_ = 0;
  position_ = end;
  const bool zeros = only_zeros_ && options_.allow_trailing_zeros && state_ != State::kPayload;
  end_ = zeros ? damage_.offset : end;
  if (!zeros) end_damage(end);
}

}  // namespace penstock
