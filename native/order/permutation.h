// A permutation of 0…size−1 as a function of a key, computed at any position without the others: the order of an epoch.
// Runs are resumed by it, so what it returns must never change (tests/golden holds it to that).
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

class Permutation {
 public:
  static constexpr uint64_t kMostSize = uint64_t{1} << 62;

  Permutation(uint64_t seed, uint64_t epoch, uint64_t purpose, uint64_t size);

  // The value at each position; every position must be below the size.
  void apply(const int64_t* positions, size_t count, int64_t* out) const;
  // The position of each value.
  void invert(const int64_t* values, size_t count, int64_t* out) const;

 private:
  // Up to this size the whole permutation is drawn (Fisher and Yates), which makes each equally likely.
  static constexpr uint64_t kSmallSize = 64;
  // Larger ones are a Feistel network on a grid: each round adds to one coordinate a keyed hash of the other. By pairs
  // of positions eight rounds are within 10⁻⁷ of uniform on the smallest grid, and nearer on larger ones.
  static constexpr int kRounds = 8;

  struct Cell {
    uint64_t row, column;
  };

  void draw_whole(uint64_t key);
  Cell cell_of(uint64_t position) const;
  uint64_t position_of(Cell cell) const { return cell.row * num_columns_ + cell.column; }
  template <bool kInverse>
  void run(const int64_t* from, size_t count, int64_t* to) const;
  template <bool kInverse, size_t kLanes>
  void run_rounds(Cell* cells) const;
  template <bool kInverse>
  uint64_t cycle_walk(uint64_t position) const;

  uint64_t size_;
  uint64_t num_rows_ = 1, num_columns_ = 1;
  uint64_t reciprocal_ = 0;  // 2^64 / num_columns_, rounded down
  uint64_t keys_[kRounds] = {};
  uint8_t forward_[kSmallSize] = {}, backward_[kSmallSize] = {};
};

}  // namespace penstock
