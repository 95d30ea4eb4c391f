// How often each distinct value occurs, in the order of first appearance, up to a number of distinct values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/bytes.h"

namespace penstock {

class ValueCounter {
 public:
  explicit ValueCounter(size_t max_values) : max_values_(max_values), table_(64, 0) {}

  void add(Span value);
  void add(int64_t value);
  // Adds values that another counter counted, of the same kind; not those for which that had no room.
  void merge(const ValueCounter& other);

  size_t size() const { return counts.size(); }
  Span string(size_t i) const {
    return Span{reinterpret_cast<const uint8_t*>(arena_.data()) + starts_[i], starts_[i + 1] - starts_[i]};
  }

  std::vector<int64_t> ints;    // the distinct integers, if integers were added
  std::vector<int64_t> counts;  // of each distinct value
  int64_t num_overflowed = 0;   // how many values were new when there was no room for one more

 private:
  template <typename Same, typename Store>
  void count(uint64_t hash, int64_t times, const Same& is_same, const Store& store);
  void add(Span value, uint64_t hash, int64_t times);
  void add(int64_t value, uint64_t hash, int64_t times);
  void grow();

  size_t max_values_;
  std::vector<uint32_t> table_;  // number of a value, plus one; a power of two, at most half full
  std::vector<uint64_t> hashes_;
  std::string arena_;
  std::vector<size_t> starts_ = std::vector<size_t>(1, 0);
};

}  // namespace penstock
