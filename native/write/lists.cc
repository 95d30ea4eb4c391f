#include "write/lists.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

// Calls `take` with the first value and the exclusive end of each run of lists that are kept.
template <typename Take>
void for_runs(const int64_t* offsets, size_t num_lists, const bool* keep, const Take& take) {
  size_t list = 0;
  while (list < num_lists) {
    if (keep != nullptr && !keep[list]) {
      list++;
      continue;
    }
    const size_t first = list;
    while (list < num_lists && (keep == nullptr || keep[list])) list++;
    if (offsets[first] != offsets[list]) take(offsets[first], offsets[list]);
  }
}

constexpr size_t kAhead = 4;  // lists; they are in random order

template <typename T>
void prefetch(const T* values, int64_t length) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values);
  const size_t size = static_cast<size_t>(length) * sizeof(T);
  for (size_t at = 0; at < size && at < 2048; at += 64) __builtin_prefetch(bytes + at);
}

}  // namespace

IntCounts count_list_ints(const int64_t* values, const int64_t* offsets, size_t num_lists, const bool* keep,
                          int64_t max_range) {
  IntCounts found;
  uint64_t bits = 0;  // of all values together: no value has others
  for_runs(offsets, num_lists, keep, [&](int64_t first, int64_t end) {
    found.num_values += end - first;
    for (int64_t i = first; i < end; i++) bits |= static_cast<uint64_t>(values[i]);
  });
  if (found.num_values == 0) return found;
  int64_t low = 0, high = static_cast<int64_t>(bits);
  if (bits >= static_cast<uint64_t>(max_range)) {
    low = std::numeric_limits<int64_t>::max();
    high = std::numeric_limits<int64_t>::min();
    for_runs(offsets, num_lists, keep, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; i++) {
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
      }
    });
    if (static_cast<uint64_t>(high) - static_cast<uint64_t>(low) >= static_cast<uint64_t>(max_range)) return found;
    if (low >= 0 && high < max_range) low = 0;
  }
  found.low = low;
  // Counters of 32 bits are half as large, and the counters of most vocabularies stay in the second-level cache.
  std::vector<uint32_t> counters(static_cast<size_t>(high - low) + 1);
  found.counts.resize(counters.size());
  uint64_t num_counted = 0;
  const auto flush = [&] {
    for (size_t i = 0; i < counters.size(); i++) found.counts[i] += counters[i];
    std::fill(counters.begin(), counters.end(), 0);
    num_counted = 0;
  };
  for_runs(offsets, num_lists, keep, [&](int64_t first, int64_t end) {
    constexpr int64_t kStep = 1 << 30;
    for (; first < end; first += kStep) {
      const int64_t stop = end - first > kStep ? first + kStep : end;
      if (num_counted + kStep > std::numeric_limits<uint32_t>::max()) flush();
      num_counted += static_cast<uint64_t>(stop - first);
      uint32_t* const table = counters.data();
      for (int64_t i = first; i < stop; i++) table[values[i] - low]++;
    }
  });
  flush();
  while (found.counts.back() == 0) found.counts.pop_back();  // up to the greatest value
  return found;
}

template <typename T>
void take_evenly(const T* values, const int64_t* starts, const int64_t* lengths, size_t num_lists, double* out) {
  constexpr size_t most = kListValues;
  for (size_t list = 0; list < num_lists; list++, out += most) {
    if (list + kAhead < num_lists) prefetch(values + starts[list + kAhead], lengths[list + kAhead]);
    const auto length = static_cast<size_t>(lengths[list]);
    const T* const from = values + starts[list];
    // Value i of a list of n is at i * n / most; of a shorter list, at i.
    const size_t spread = std::max(length, most);
    for (size_t i = 0; i < most; i++) {
      out[i] = i < length ? static_cast<double>(from[i * spread / most]) : std::numeric_limits<double>::quiet_NaN();
    }
  }
}

template void take_evenly(const int64_t*, const int64_t*, const int64_t*, size_t, double*);
template void take_evenly(const float*, const int64_t*, const int64_t*, size_t, double*);
template void take_evenly(const double*, const int64_t*, const int64_t*, size_t, double*);

}  // namespace penstock
