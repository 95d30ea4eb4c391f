// Finds where the rows of a CSV file end, without its cells: the file can then be parsed in ranges of whole rows.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/bytes.h"

namespace penstock {

// Counts rows in a text that comes in pieces of any size. A quote opens a cell only where the cell begins, and is
// doubled inside; lines end with \n, \r or \r\n; lines without any byte are not rows. As source/csv_scanner.py.
class RowCutter {
 public:
  // `start` is the offset of the first piece, where a row begins.
  RowCutter(uint8_t delimiter, uint64_t rows_per_range, uint64_t start)
      : delimiter_(delimiter), rows_per_range_(rows_per_range), offset_(start), row_start_(start) {}

  // Scans the next piece; appends the offset at which each range of `rows_per_range` rows ends.
  void scan(Span piece, std::vector<uint64_t>& ends);

  // Rows since the end of the last range, with the last one if no line end follows it.
  uint64_t num_rows() const { return num_rows_ + (offset_ > row_start_ ? 1 : 0); }
  // Whether the text so far ends inside of quotes.
  bool is_quoted() const { return state_ == State::kQuoted; }
  // The length of the longest row so far, without its line end.
  uint64_t longest_row() const {
    const uint64_t last = offset_ - row_start_;
    return last > longest_row_ ? last : longest_row_;
  }

 private:
  enum class State : uint8_t { kPlain, kQuoted, kAfterQuote };  // after a quote inside of quotes

  void end_row(uint64_t end, std::vector<uint64_t>& ends);

  uint8_t delimiter_;
  uint8_t previous_ = 0;  // the last byte of the previous piece
  State state_ = State::kPlain;
  uint64_t rows_per_range_;
  uint64_t offset_;  // of the next piece
  uint64_t row_start_;
  uint64_t num_rows_ = 0;
  uint64_t longest_row_ = 0;
};

}  // namespace penstock
