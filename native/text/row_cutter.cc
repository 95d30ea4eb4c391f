#include "text/row_cutter.h"

#include <cstring>

namespace penstock {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;

// Zero if no byte of the word equals the repeated one; bits above the first that does may be wrong.
inline uint64_t find_byte(uint64_t word, uint8_t byte) {
  const uint64_t difference = word ^ (kOnes * byte);
  return (difference - kOnes) & ~difference & kHighs;
}

inline bool is_special(uint8_t byte) { return byte == '"' || byte == '\n' || byte == '\r'; }

// The first quote or line end, or `end`.
const uint8_t* find_special(const uint8_t* at, const uint8_t* end) {
  while (end - at >= 8) {
    const uint64_t word = load64(at);
    const uint64_t found = find_byte(word, '"') | find_byte(word, '\n') | find_byte(word, '\r');
    // The lowest bit is right: a byte can be found by mistake only above one that is there.
    if (found != 0) return at + __builtin_ctzll(found) / 8;
    at += 8;
  }
  while (at < end && !is_special(*at)) at++;
  return at;
}

}  // namespace

void RowCutter::end_row(uint64_t end, std::vector<uint64_t>& ends) {
  const uint64_t length = end - row_start_;
  row_start_ = end + 1;
  if (length == 0) return;
  if (length > longest_row_) longest_row_ = length;
  if (++num_rows_ == rows_per_range_) {
    ends.push_back(row_start_);
    num_rows_ = 0;
  }
}

void RowCutter::scan(Span piece, std::vector<uint64_t>& ends) {
  if (piece.size == 0) return;
  const uint8_t* const end = piece.end();
  const uint8_t* at = piece.begin();
  while (at < end) {
    if (state_ == State::kAfterQuote) {
      state_ = *at == '"' ? State::kQuoted : State::kPlain;
      if (state_ == State::kQuoted) {
        at++;
        continue;
      }
    }
    if (state_ == State::kQuoted) {
      const void* const found = std::memchr(at, '"', static_cast<size_t>(end - at));
      if (found == nullptr) break;
      at = static_cast<const uint8_t*>(found) + 1;
      state_ = State::kAfterQuote;
      continue;
    }
    at = find_special(at, end);
    if (at == end) break;
    const uint64_t offset = offset_ + static_cast<uint64_t>(at - piece.begin());
    if (*at != '"') {
      end_row(offset, ends);
    } else if (offset == row_start_ || (at == piece.begin() ? previous_ : at[-1]) == delimiter_) {
      state_ = State::kQuoted;
    }
    at++;
  }
  previous_ = end[-1];
  offset_ += piece.size;
}

}  // namespace penstock
