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

// Adds each column up, from the first row to the last.
__attribute__((always_inline)) inline void add_up(const double* piece, size_t num_rows, size_t width, double* totals) {
  std::fill(totals, totals + width, 0.0);
  for (size_t row = 0; row < num_rows; row++) {
    for (size_t i = 0; i < width; i++) totals[i] += piece[row * width + i];
  }
}

__attribute__((always_inline)) inline void add_squares(const double* piece, size_t num_rows, size_t width,
                                                       const double* means, double* squares) {
  std::fill(squares, squares + width, 0.0);
  for (size_t row = 0; row < num_rows; row++) {
    for (size_t i = 0; i < width; i++) {
      const double distance = piece[row * width + i] - means[i];
      squares[i] += distance * distance;
    }
  }
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

using AddUp = void (*)(const double*, size_t, size_t, double*);
using AddSquares = void (*)(const double*, size_t, size_t, const double*, double*);

void add_up_plainly(const double* piece, size_t num_rows, size_t width, double* totals) {
  add_up(piece, num_rows, width, totals);
}
void add_squares_plainly(const double* piece, size_t num_rows, size_t width, const double* means, double* squares) {
  add_squares(piece, num_rows, width, means, squares);
}

#if defined(__x86_64__)
// Columns do not depend on each other: wider vectors give the same bits.
PENSTOCK_AVX2 void add_up_by_avx2(const double* piece, size_t num_rows, size_t width, double* totals) {
  add_up(piece, num_rows, width, totals);
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
    const AddUp sum = add_up_avx2 != nullptr ? add_up_avx2 : add_up_plainly;
    const AddSquares sum_squares = add_squares_avx2 != nullptr ? add_squares_avx2 : add_squares_plainly;
    double* const means = columns_.means.data();
    if (width_ == 1) {
      means[0] = 0.0 + add_pairwise(0, num_rows, [&](size_t i) { return piece[i]; });
    } else {
      sum(piece, num_rows, width_, means);
    }
    const bool is_finite = std::all_of(means, means + width_, [](double total) { return std::isfinite(total); });
    if (is_finite) {
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
  void add(const T* row, size_t width) {
    for (size_t i = 0; i < width; i++) {
      const T value = row[i];
      if constexpr (!std::is_integral_v<T>) {
        if (PENSTOCK_UNLIKELY(!std::isfinite(value))) {
          std::isnan(value) ? num_nan++ : num_inf++;
          continue;
        }
      }
      num_zero += value == 0;
      least = value < least ? value : least;
      greatest = value > greatest ? value : greatest;
    }
  }
  void begin(T value) { least = greatest = value; }

  int64_t num_nan = 0, num_inf = 0, num_zero = 0;
  T least = 0, greatest = 0;
};

// The first finite number of the rows that are kept; 0 without one.
template <typename T>
T find_finite(const T* values, size_t num_rows, size_t width, const bool* keep) {
  for (size_t row = 0; row < num_rows; row++) {
    if (keep != nullptr && !keep[row]) continue;
    for (size_t i = 0; i < width; i++) {
      if constexpr (std::is_integral_v<T>) return values[row * width + i];
      if (std::isfinite(static_cast<double>(values[row * width + i]))) return values[row * width + i];
    }
  }
  return 0;
}

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
  Extremes<T> extremes;
  extremes.begin(find_finite(values, num_rows, width, keep));
  size_t in_piece = 0;
  for (size_t row = 0; row < num_rows; row++) {
    if (keep != nullptr && !keep[row]) continue;
    const T* const from = values + row * width;
    double* const to = numbers.data() + in_piece * width;
    for (size_t i = 0; i < width; i++) to[i] = static_cast<double>(from[i]);
    extremes.add(from, width);
    moments.num_rows++;
    if (++in_piece == step) {
      merge(piece.measure(numbers.data(), in_piece), moments);
      in_piece = 0;
    }
  }
  if (in_piece != 0) merge(piece.measure(numbers.data(), in_piece), moments);
  moments.num_nan = extremes.num_nan;
  moments.num_inf = extremes.num_inf;
  moments.num_zero = extremes.num_zero;
  moments.least = extremes.least;
  moments.greatest = extremes.greatest;
  return moments;
}

template ElementMoments<int64_t> measure_elements(const int64_t*, size_t, size_t, const bool*);
template ElementMoments<float> measure_elements(const float*, size_t, size_t, const bool*);
template ElementMoments<double> measure_elements(const double*, size_t, size_t, const bool*);

}  // namespace penstock
