#include "write/value_counter.h"

#include "write/hash.h"

namespace penstock {

template <typename Same, typename Store>
void ValueCounter::count(uint64_t hash, int64_t times, const Same& is_same, const Store& store) {
  const size_t mask = table_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    const uint32_t entry = table_[at];
    if (entry == 0) {
      if (counts.size() == max_values_) {
        num_overflowed += times;
        return;
      }
      store();
      hashes_.push_back(hash);
      counts.push_back(times);
      table_[at] = static_cast<uint32_t>(counts.size());
      if (counts.size() * 2 > table_.size()) grow();
      return;
    }
    if (hashes_[entry - 1] == hash && is_same(entry - 1)) {
      counts[entry - 1] += times;
      return;
    }
  }
}

void ValueCounter::add(Span value) { add(value, hash_bytes(value), 1); }

void ValueCounter::add(Span value, uint64_t hash, int64_t times) {
  count(
      hash, times,
      [&](size_t i) {
        const Span known = string(i);
        return known.size == value.size && (value.size == 0 || std::memcmp(known.data, value.data, value.size) == 0);
      },
      [&] {
        if (value.size != 0) arena_.append(reinterpret_cast<const char*>(value.data), value.size);
        starts_.push_back(arena_.size());
      });
}

void ValueCounter::add(int64_t value) { add(value, mix(static_cast<uint64_t>(value)), 1); }

void ValueCounter::add(int64_t value, uint64_t hash, int64_t times) {
  count(hash, times, [&](size_t i) { return ints[i] == value; }, [&] { ints.push_back(value); });
}

void ValueCounter::merge(const ValueCounter& other) {
  for (size_t i = 0; i < other.size(); i++) {
    if (other.ints.empty()) {
      add(other.string(i), other.hashes_[i], other.counts[i]);
    } else {
      add(other.ints[i], other.hashes_[i], other.counts[i]);
    }
  }
}

void ValueCounter::grow() {
  table_.assign(table_.size() * 2, 0);
  const size_t mask = table_.size() - 1;
  for (size_t i = 0; i < hashes_.size(); i++) {
    size_t at = hashes_[i] & mask;
    while (table_[at] != 0) at = (at + 1) & mask;
    table_[at] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace penstock
