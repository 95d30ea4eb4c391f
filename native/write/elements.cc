#include "write/elements.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "foundation/bytes.h"
#include "foundation/cpu.h"

namespace penstock {
namespace {

// Counts, means and squares of the columns of one piece.
struct Columns {
  std::vector<int64_t> counts;
  std::vector<double> means, squares;
};

// Statistics of the numbers of a piece; the extremes mean nothing if a number is not finite.
struct Whole {
  double least, greatest;
  int64_t num_zero = 0;
};

constexpr size_t kBlock = 8;  // columns whose sums stay in registers

// Adds up `count` columns of kBlock from the first row to the last, and finds their extremes.
__attribute__((always_inline)) inline void add_block(const double* piece, size_t num_rows, size_t width, size_t count,
                                                     double* totals, Whole& whole) {
  double sums[kBlock] = {}, least[kBlock], greatest[kBlock];
  int64_t zeros[kBlock] = {};
  for (size_t i = 0; i < kBlock; i++) least[i] = greatest[i] = piece[i < count ? i : 0];
  for (size_t row = 0; row < num_rows; row++, piece += width) {
    for (size_t i = 0; i < count; i++) {
      const double value = piece[i];
      sums[i] += value;
      least[i] = value < least[i] ? value : least[i];
      greatest[i] = value > greatest[i] ? value : greatest[i];
      zeros[i] += value == 0;
    }
  }
  for (size_t i = 0; i < count; i++) {
    totals[i] = sums[i];
    whole.least = least[i] < whole.least ? least[i] : whole.least;
    whole.greatest = greatest[i] > whole.greatest ? greatest[i] : whole.greatest;
    whole.num_zero += zeros[i];
  }
}

__attribute__((always_inline)) inline void add_up(const double* piece, size_t num_rows, size_t width, double* totals,
                                                  Whole& whole) {
  size_t i = 0;
  for (; i + kBlock <= width; i += kBlock) add_block(piece + i, num_rows, width, kBlock, totals + i, whole);
  if (i < width) add_block(piece + i, num_rows, width, width - i, totals + i, whole);
}

__attribute__((always_inline)) inline void add_squares_of_block(const double* piece, size_t num_rows, size_t width,
                                                                size_t count, const double* means, double* squares) {
  double sums[kBlock] = {}, centers[kBlock] = {};
  for (size_t i = 0; i < count; i++) centers[i] = means[i];
  for (size_t row = 0; row < num_rows; row++, piece += width) {
    for (size_t i = 0; i < count; i++) sums[i] += (piece[i] - centers[i]) * (piece[i] - centers[i]);
  }
  for (size_t i = 0; i < count; i++) squares[i] = sums[i];
}

__attribute__((always_inline)) inline void add_squares(const double* piece, size_t num_rows, size_t width,
                                                       const double* means, double* squares) {
  size_t i = 0;
  for (; i + kBlock <= width; i += kBlock) {
    add_squares_of_block(piece + i, num_rows, width, kBlock, means + i, squares + i);
  }
  if (i < width) add_squares_of_block(piece + i, num_rows, width, width - i, means + i, squares + i);
}

// Adds numbers up in pairs of halves, in the order in which NumPy adds up the numbers of one column: statistics of data
// sets that were written with it stay as they are.
template <typename Term>
double add_pairwise(size_t first, size_t count, const Term& term) {
  constexpr size_t kLanes = 8, kMostAtOnce = 128;
  if (count > kMostAtOnce) {
    const size_t half = count / 2 - count / 2 % kLanes;
    return add_pairwise(first, half, term) + add_pairwise(first + half, count - half, term);
  }
  size_t i = 0;
  double sum = 0;
  if (count >= kLanes) {
    double lanes[kLanes];
    for (size_t lane = 0; lane < kLanes; lane++) lanes[lane] = term(first + lane);
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; lane++) lanes[lane] += term(first + i + lane);
    }
    sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
  for (; i < count; i++) sum += term(first + i);
  return sum;
}

using AddUp = void (*)(const double*, size_t, size_t, double*, Whole&);
using AddSquares = void (*)(const double*, size_t, size_t, const double*, double*);

void add_up_plainly(const double* piece, size_t num_rows, size_t width, double* totals, Whole& whole) {
  add_up(piece, num_rows, width, totals, whole);
}
void add_squares_plainly(const double* piece, size_t num_rows, size_t width, const double* means, double* squares) {
  add_squares(piece, num_rows, width, means, squares);
}

#if defined(__x86_64__)
// Columns do not depend on each other: wider vectors give the same bits.
PENSTOCK_AVX2 void add_up_by_avx2(const double* piece, size_t num_rows, size_t width, double* totals, Whole& whole) {
  add_up(piece, num_rows, width, totals, whole);
}
PENSTOCK_AVX2 void add_squares_by_avx2(const double* piece, size_t num_rows, size_t width, const double* means,
                                       double* squares) {
  add_squares(piece, num_rows, width, means, squares);
}
const AddUp add_up_avx2 = has_avx2() ? add_up_by_avx2 : nullptr;
const AddSquares add_squares_avx2 = has_avx2() ? add_squares_by_avx2 : nullptr;
#else
const AddUp add_up_avx2 = nullptr;
const AddSquares add_squares_avx2 = nullptr;
#endif

class Piece {
 public:
  explicit Piece(size_t width) : width_(width) {
    columns_.counts.resize(width);
    columns_.means.resize(width);
    columns_.squares.resize(width);
  }

  const Columns& measure(const double* piece, size_t num_rows) {
    whole_ = {piece[0], piece[0]};
    const AddUp sum = add_up_avx2 != nullptr ? add_up_avx2 : add_up_plainly;
    const AddSquares sum_squares = add_squares_avx2 != nullptr ? add_squares_avx2 : add_squares_plainly;
    double* const means = columns_.means.data();
    sum(piece, num_rows, width_, means, whole_);
    if (width_ == 1) means[0] = 0.0 + add_pairwise(0, num_rows, [&](size_t i) { return piece[i]; });
    is_finite_ = std::all_of(means, means + width_, [](double total) { return std::isfinite(total); });
    if (is_finite_) {
      std::fill(columns_.counts.begin(), columns_.counts.end(), static_cast<int64_t>(num_rows));
      for (size_t i = 0; i < width_; i++) means[i] /= static_cast<double>(num_rows);
      if (width_ == 1) {
        columns_.squares[0] =
            add_pairwise(0, num_rows, [&](size_t i) { return (piece[i] - means[0]) * (piece[i] - means[0]); });
      } else {
        sum_squares(piece, num_rows, width_, means, columns_.squares.data());
      }
    } else {
      measure_finite(piece, num_rows);
    }
    return columns_;
  }
  // Of the piece that was measured last.
  bool is_finite() const { return is_finite_; }
  const Whole& whole() const { return whole_; }

 private:
  // The same over the finite numbers alone, divided before they are added up: their sum may be out of range.
  void measure_finite(const double* piece, size_t num_rows) {
    for (size_t i = 0; i < width_; i++) {
      int64_t count = 0;
      for (size_t row = 0; row < num_rows; row++) count += std::isfinite(piece[row * width_ + i]);
      const auto divisor = static_cast<double>(std::max<int64_t>(count, 1));
      const auto share_of = [&](size_t row) {
        const double value = piece[row * width_ + i];
        return (std::isfinite(value) ? value : 0.0) / divisor;
      };
      double mean = 0, squares = 0;
      const auto square_of = [&](size_t row) {
        const double value = piece[row * width_ + i], distance = std::isfinite(value) ? value - mean : 0.0;
        return distance * distance;
      };
      if (width_ == 1) {
        mean += add_pairwise(0, num_rows, share_of);
        squares += add_pairwise(0, num_rows, square_of);
      } else {
        for (size_t row = 0; row < num_rows; row++) mean += share_of(row);
        for (size_t row = 0; row < num_rows; row++) squares += square_of(row);
      }
      columns_.counts[i] = count;
      columns_.means[i] = mean;
      columns_.squares[i] = squares;
    }
  }

  size_t width_;
  bool is_finite_ = true;
  Whole whole_ = {};
  Columns columns_;
};

// Adds a piece (Chan, Golub and LeVeque's rule).
template <typename T>
void merge(const Columns& piece, ElementMoments<T>& moments) {
  for (size_t i = 0; i < piece.means.size(); i++) {
    const auto count = static_cast<double>(piece.counts[i]), before = static_cast<double>(moments.counts[i]);
    const double distance = piece.means[i] - moments.means[i];
    const double share = count / static_cast<double>(std::max<int64_t>(moments.counts[i] + piece.counts[i], 1));
    moments.means[i] += distance * share;
    moments.squares[i] = moments.squares[i] + piece.squares[i] + distance * (distance * (before * share));
    moments.counts[i] += piece.counts[i];
  }
}

// Counts zeros and numbers that are not finite, and finds the extremes of the others.
template <typename T>
class Extremes {
 public:
  explicit Extremes(ElementMoments<T>& out) : out_(out) {}

  void add(const T* values, size_t count) {
    for (size_t i = 0; i < count; i++) {
      const T value = values[i];
      if constexpr (!std::is_integral_v<T>) {
        if (!std::isfinite(value)) {
          std::isnan(value) ? out_.num_nan++ : out_.num_inf++;
          continue;
        }
      }
      out_.num_zero += value == 0;
      note(value, value);
    }
  }
  // Statistics of finite numbers.
  void add(const Whole& whole) {
    out_.num_zero += whole.num_zero;
    note(static_cast<T>(whole.least), static_cast<T>(whole.greatest));
  }

 private:
  void note(T least, T greatest) {
    out_.least = is_first_ || least < out_.least ? least : out_.least;
    out_.greatest = is_first_ || greatest > out_.greatest ? greatest : out_.greatest;
    is_first_ = false;
  }

  ElementMoments<T>& out_;
  bool is_first_ = true;
};

}  // namespace

template <typename T>
ElementMoments<T> measure_elements(const T* values, size_t num_rows, size_t width, const bool* keep) {
  ElementMoments<T> moments;
  moments.counts.resize(width);
  moments.means.resize(width);
  moments.squares.resize(width);
  if (width == 0) {
    for (size_t row = 0; row < num_rows; row++) moments.num_rows += keep == nullptr || keep[row];
    return moments;
  }
  const size_t step = std::max<size_t>(1, kElementPiece / width);
  std::vector<double> numbers(std::min(step, num_rows) * width);
  Piece piece(width);
  Extremes<T> extremes(moments);
  size_t in_piece = 0;
  const auto end_piece = [&] {
    if (in_piece == 0) return;
    merge(piece.measure(numbers.data(), in_piece), moments);
    if constexpr (!std::is_integral_v<T>) {
      if (piece.is_finite()) {
        extremes.add(piece.whole());
      } else {
        // Every float is a double: the doubles of the piece are the numbers themselves.
        const std::vector<T> exact(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(in_piece * width));
        extremes.add(exact.data(), exact.size());
      }
    }
    in_piece = 0;
  };
  for (size_t row = 0; row < num_rows; row++) {
    if (keep != nullptr && !keep[row]) continue;
    const T* const from = values + row * width;
    double* const to = numbers.data() + in_piece * width;
    for (size_t i = 0; i < width; i++) to[i] = static_cast<double>(from[i]);
    // Doubles do not hold every integer.
    if constexpr (std::is_integral_v<T>) extremes.add(from, width);
    moments.num_rows++;
    if (++in_piece == step) end_piece();
  }
  end_piece();
  return moments;
}

template ElementMoments<int64_t> measure_elements(const int64_t*, size_t, size_t, const bool*);
template ElementMoments<float> measure_elements(const float*, size_t, size_t, const bool*);
template ElementMoments<double> measure_elements(const double*, size_t, size_t, const bool*);

}  // namespace penstock
