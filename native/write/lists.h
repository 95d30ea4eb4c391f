// Statistics of lists: how often each integer occurs, and a few values of each list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

// How often each integer from `low` on occurs; empty where the integers lie too wide apart, or there are none.
struct IntCounts {
  int64_t num_values = 0, low = 0;
  std::vector<int64_t> counts;
};

// Counts the integers of the lists for which `keep` is true; of all, if it is null. List i has the values from
// offsets[i] to offsets[i + 1]. Integers from 0 to below `max_range` are counted from 0 on; others from the least on,
// if they are less than `max_range` apart.
IntCounts count_list_ints(const int64_t* values, const int64_t* offsets, size_t num_lists, const bool* keep,
                          int64_t max_range);

// Up to kListValues values of each list at even distances, and NaN after the last: kListValues numbers per list. The
// values of list i are the lengths[i] from starts[i] on.
inline constexpr size_t kListValues = 16;
template <typename T>
void take_evenly(const T* values, const int64_t* starts, const int64_t* lengths, size_t num_lists, double* out);

}  // namespace penstock
