#include "order/permutation.h"

#include <cmath>
#include <utility>

#include "write/hash.h"

namespace penstock {
namespace {

// Hashes that are computed in parallel: one alone waits for its multiplications most of the time.
constexpr size_t kLanes = 4;

inline uint64_t high_product(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}

// A keyed hash of x, from 0 to below `limit`.
inline uint64_t hash_below(uint64_t key, uint64_t x, uint64_t limit) { return high_product(mix_keyed(key, x), limit); }

// Both are below the modulus, which is at most 2^32.
inline uint64_t add_modulo(uint64_t a, uint64_t b, uint64_t modulus) {
  const uint64_t sum = a + b;
  return sum >= modulus ? sum - modulus : sum;
}
inline uint64_t subtract_modulo(uint64_t a, uint64_t b, uint64_t modulus) { return a >= b ? a - b : a - b + modulus; }

uint64_t root_above(uint64_t size) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root < size) root++;
  while ((root - 1) * (root - 1) >= size) root--;
  return root;
}

}  // namespace

Permutation::Permutation(uint64_t seed, uint64_t epoch, uint64_t purpose, uint64_t size) : size_(size) {
  const uint64_t key = mix_keyed(mix_keyed(key_of(seed), epoch), purpose);
  if (size <= kSmallSize) {
    draw_whole(key);
    return;
  }
  num_rows_ = root_above(size);
  num_columns_ = (size - 1) / num_rows_ + 1;
  // Rounds on a grid of two odd sides would make even permutations only.
  if (num_rows_ % 2 == 1 && num_columns_ % 2 == 1) num_columns_++;
  reciprocal_ = static_cast<uint64_t>((static_cast<unsigned __int128>(1) << 64) / num_columns_);
  for (int round = 0; round < kRounds; round++) keys_[round] = mix_keyed(key, static_cast<uint64_t>(round));
}

void Permutation::draw_whole(uint64_t key) {
  for (uint64_t i = 0; i < size_; i++) forward_[i] = static_cast<uint8_t>(i);
  for (uint64_t i = size_; i > 1; i--) std::swap(forward_[i - 1], forward_[hash_below(key, i, i)]);
  for (uint64_t i = 0; i < size_; i++) backward_[forward_[i]] = static_cast<uint8_t>(i);
}

Permutation::Cell Permutation::cell_of(uint64_t position) const {
  // The quotient by the reciprocal is right or one too small: positions are below 2^63.
  uint64_t row = high_product(position, reciprocal_), column = position - row * num_columns_;
  const bool is_small = column >= num_columns_;
  row += is_small ? 1 : 0;
  column -= is_small ? num_columns_ : 0;
  return {row, column};
}

template <bool kInverse, size_t kCells>
inline void Permutation::run_rounds(Cell* cells) const {
  const uint64_t rows = num_rows_, columns = num_columns_;
  for (int i = 0; i < kRounds; i += 2) {
    const uint64_t first = keys_[kInverse ? kRounds - 1 - i : i], second = keys_[kInverse ? kRounds - 2 - i : i + 1];
    for (size_t lane = 0; lane < kCells; lane++) {
      Cell& cell = cells[lane];
      if constexpr (kInverse) {
        cell.column = subtract_modulo(cell.column, hash_below(first, cell.row, columns), columns);
      } else {
        cell.row = add_modulo(cell.row, hash_below(first, cell.column, rows), rows);
      }
    }
    for (size_t lane = 0; lane < kCells; lane++) {
      Cell& cell = cells[lane];
      if constexpr (kInverse) {
        cell.row = subtract_modulo(cell.row, hash_below(second, cell.column, rows), rows);
      } else {
        cell.column = add_modulo(cell.column, hash_below(second, cell.row, columns), columns);
      }
    }
  }
}

// The grid is a little larger than the size: from a cell outside, on to where that one goes, until one is inside.
template <bool kInverse>
uint64_t Permutation::cycle_walk(uint64_t position) const {
  while (position >= size_) {
    Cell cell = cell_of(position);
    run_rounds<kInverse, 1>(&cell);
    position = position_of(cell);
  }
  return position;
}

template <bool kInverse>
void Permutation::run(const int64_t* from, size_t count, int64_t* to) const {
  if (size_ <= kSmallSize) {
    const uint8_t* const table = kInverse ? backward_ : forward_;
    for (size_t i = 0; i < count; i++) to[i] = table[from[i]];
    return;
  }
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Cell cells[kLanes];
    for (size_t lane = 0; lane < kLanes; lane++) cells[lane] = cell_of(static_cast<uint64_t>(from[i + lane]));
    run_rounds<kInverse, kLanes>(cells);
    for (size_t lane = 0; lane < kLanes; lane++) {
      to[i + lane] = static_cast<int64_t>(cycle_walk<kInverse>(position_of(cells[lane])));
    }
  }
  for (; i < count; i++) {
    Cell cell = cell_of(static_cast<uint64_t>(from[i]));
    run_rounds<kInverse, 1>(&cell);
    to[i] = static_cast<int64_t>(cycle_walk<kInverse>(position_of(cell)));
  }
}

void Permutation::apply(const int64_t* positions, size_t count, int64_t* out) const {
  run<false>(positions, count, out);
}

void Permutation::invert(const int64_t* values, size_t count, int64_t* out) const { run<true>(values, count, out); }

}  // namespace penstock
