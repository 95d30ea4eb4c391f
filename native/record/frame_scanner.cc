#include "record/frame_scanner.h"

#include <algorithm>
#include <cstring>

#include "record/frame.h"

namespace penstock {
namespace {

// Whatever limit was given: a frame's size and an offset in a file can be added up without overflow.
constexpr uint64_t kLargestRecord = uint64_t{1} << 40;
// In a stream, whose bytes cannot be fed again, larger records are not kept to be looked at once more.
constexpr uint64_t kMostKept = uint64_t{8} << 20;
// Records that are cut short are looked at once more from where they were cut. A hostile file has many that overlap:
// it is looked at this often on average, after the first bytes.
constexpr uint64_t kMostOverlap = 16, kFreeOverlap = uint64_t{256} << 20;

}  // namespace

bool FrameScanner::skips() const {
  return !options_.with_payloads && !looks_again_ && (options_.can_rewind || !may_be_cut_short());
}

// Whether the current record is given up where another one begins inside it.
bool FrameScanner::may_be_cut_short() const {
  return (options_.file_bytes != UINT64_MAX || length_ + kFrameBytes <= kMostKept) &&
         overlap_ <= kFreeOverlap + kMostOverlap * begin_;
}

bool FrameScanner::plausible(const uint8_t* header, uint64_t offset) const {
  if (!header_fits(header)) return false;
  const uint64_t length = frame_length(header);
  if (length > std::min(options_.max_record_bytes, kLargestRecord)) return false;
  if (file_bytes_ == UINT64_MAX) return true;
  const uint64_t left = file_bytes_ - offset;
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
  const bool known = options_.file_bytes != UINT64_MAX;
  const uint64_t left = known ? options_.file_bytes - position_ : UINT64_MAX;
  if (is_held_) {
    if (!header_fits(p)) {
      look_again();
      return 0;
    }
    report_held();
  }
  length_ = frame_length(p);
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
    begin_ = position_;
    if (skips()) skip_ = length_ + kFrameBytes;
    return consume(p, size);
  }
  // The damaged header itself is no candidate: begin the search one byte on.
  state_ = State::kSearch;
  pass(p, 1);
  return 1;
}

size_t FrameScanner::at_payload(const uint8_t* p, size_t size) {
  if (!skips()) return size < length_ + kFrameBytes ? 0 : end_record(p, size);
  const size_t step = skip_ < size ? static_cast<size_t>(skip_) : size;
  skip_ -= step;
  if (skip_ == 0) leave_record(position_ + step);
  return step;
}

// Reports the complete record at position_, once the bytes after it are known.
size_t FrameScanner::end_record(const uint8_t* p, size_t size) {
  const auto step = static_cast<size_t>(length_ + kFrameBytes);
  const auto fits = [&] { return stored_payload_crc(p, length_) == computed_payload_crc(p, length_); };
  bool is_sound = options_.with_payloads && fits();
  size_t cut = 0;
  if (!is_sound) {
    const Next next = after(p + step, size - step, position_ + step);
    if (next == Next::kUnknown) return 0;
    is_sound = !options_.with_payloads && (next == Next::kFits || fits());
    // Nothing leads on from its end, nor does its payload fit: it was cut short, and the next one begins inside.
    if (!is_sound && next == Next::kBad && may_be_cut_short()) cut = find_header(p, step, size);
  }
  looks_again_ = false;
  if (cut != 0) {
    overlap_ += step - cut;
    return cut_short(p, cut);
  }
  if (is_sound || !options_.with_payloads) {
    visitor_.record(number_++, position_, options_.with_payloads ? p : nullptr, length_);
    state_ = State::kHeader;
  } else {
    begin_damage(DamageKind::kPayloadCrc, stored_payload_crc(p, length_), computed_payload_crc(p, length_));
    visitor_.damaged_bytes(Span{p, step});
    end_damage(position_ + step);
  }
  return step;
}

// Whether a record is followed by a valid successor: a header, the end of the file, zeros that are allowed there.
FrameScanner::Next FrameScanner::after(const uint8_t* end, size_t size, uint64_t offset) const {
  const uint64_t left = file_bytes_ == UINT64_MAX ? UINT64_MAX : file_bytes_ - offset;
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(left, kHeaderBytes));
  if (size < wanted) return Next::kUnknown;
  if (wanted == 0 || (wanted == kHeaderBytes && header_fits(end))) return Next::kFits;
  const bool zeros = std::all_of(end, end + wanted, [](uint8_t byte) { return byte == 0; });
  return zeros && options_.allow_trailing_zeros ? Next::kFits : Next::kBad;
}

// Finds where the next record begins inside the first `frame_bytes` at `p`; 0 if it does nowhere.
size_t FrameScanner::find_header(const uint8_t* p, size_t frame_bytes, size_t size) const {
  for (size_t at = 1; at < frame_bytes && size - at >= kHeaderBytes; at++) {
    if (plausible(p + at, position_ + at)) return at;
  }
  return 0;
}

// Ends the record at position_ where the next one begins inside it. Returns the bytes that it has.
size_t FrameScanner::cut_short(const uint8_t* p, size_t cut) {
  begin_damage(DamageKind::kCutShort, length_ + kFrameBytes, cut);
  pass(p, cut);
  end_damage(position_ + cut);
  return cut;
}

// Leaves the record that was passed over and ends at `end`: holds it if it can be looked at once more.
void FrameScanner::leave_record(uint64_t end) {
  held_offset_ = end - length_ - kFrameBytes;
  held_length_ = length_;
  is_held_ = true;
  state_ = State::kHeader;
  const uint64_t left = file_bytes_ - end;
  if (left == 0 || !options_.can_rewind || !may_be_cut_short()) {
    report_held();
  } else if (left < kHeaderBytes) {
    look_again();
  }
}

void FrameScanner::report_held() {
  is_held_ = false;
  visitor_.record(number_++, held_offset_, nullptr, held_length_);
}

// Goes back to the record that was held, to look at its payload.
void FrameScanner::look_again() {
  is_held_ = false;
  looks_again_ = is_rewound_ = true;
  position_ = begin_ = held_offset_;
  length_ = held_length_;
  state_ = State::kPayload;
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

size_t FrameScanner::run(const uint8_t* p, size_t size) {
  size_t done = 0;
  while (done < size) {
    const size_t step = consume(p + done, size - done);
    if (is_rewound_) return size;  // the caller feeds again, from the new position
    if (step == 0) break;
    done += step;
    position_ += step;
  }
  return done;
}

void FrameScanner::feed(Span bytes) {
  const uint8_t* p = bytes.data;
  size_t size = bytes.size;
  // Remaining bytes come first. Frames that are handed out are in pending_, for the parsers' padding.
  const bool through_pending = pending_.size() != 0 || options_.with_payloads;
  if (through_pending) {
    std::memcpy(pending_.room(size + kReadablePadding), p, size);
    pending_.advance(size);
    p = pending_.data();
    size = pending_.size();
  }
  const size_t done = run(p, size);
  p += done;
  size -= done;
  if (through_pending) {
    if (done != 0) std::memmove(pending_.data(), p, size);
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
      leave_record(position_);
    }
  }
  is_rewound_ = false;
  return position_ + pending_.size();
}

void FrameScanner::finish() {
  if (is_held_) report_held();  // the file has shrunk
  const bool known = file_bytes_ != UINT64_MAX;
  file_bytes_ = position_ + pending_.size();
  // Records that were waiting for the next bytes.
  const uint8_t* p = pending_.data();
  size_t left = pending_.size();
  for (size_t step = left; step != 0 && left != 0; p += step, left -= step) {
    step = run(p, left);
    if (step != 0 || known || state_ != State::kPayload || !may_be_cut_short()) continue;
    step = find_header(p, left, left);
    if (step != 0) position_ += cut_short(p, step);
  }
  if (left != pending_.size()) std::memmove(pending_.data(), p, left);
  pending_.truncate(left);
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
    const uint64_t there = skips() ? length_ + kFrameBytes - skip_ : rest;
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
