#include "write/encode.h"
#include "write/hash.h"

namespace penstock {
namespace {

// A word for all values of one field in one row. Lists of numbers are hashed as their bytes in memory.
class RowWords {
 public:
  RowWords(const EncodeField& field, const EncodeColumn& column) : field_(field), column_(column) {}

  uint64_t operator()(int64_t row) const {
    if (field_.source == Source::kDeferred) return column_.hashes[row];
    if (field_.source == Source::kRaw) {
      return column_.doubles != nullptr ? word_of(column_.doubles[row]) : hash_bytes(column_.raw(row));
    }
    if (field_.is_feature_list) return hash_steps(row);
    const bool is_single = column_.row_offsets == nullptr && column_.count == 1;
    if (!is_single) return hash_list(column_.values_of(row));
    if (field_.source == Source::kStrings) return hash_bytes(column_.string(row));
    return field_.source == Source::kInts ? word_of(column_.ints[row])
                                          : word_of(static_cast<double>(column_.floats[row]));
  }

 private:
  uint64_t hash_list(std::pair<int64_t, int64_t> range) const {
    const auto [first, last] = range;
    const auto count = static_cast<size_t>(last - first);
    if (field_.source == Source::kFloats) {
      return hash_bytes({reinterpret_cast<const uint8_t*>(column_.floats + first), count * sizeof(float)});
    }
    if (field_.source == Source::kInts) {
      return hash_bytes({reinterpret_cast<const uint8_t*>(column_.ints + first), count * sizeof(int64_t)});
    }
    uint64_t state = count;
    for (int64_t i = first; i < last; i++) state = mix(state ^ hash_bytes(column_.string(i)));
    return state;
  }

  uint64_t hash_steps(int64_t row) const {
    const auto [first, last] = column_.values_of(row);
    auto state = static_cast<uint64_t>(last - first);
    for (int64_t step = first; step < last; step++) state = mix(state ^ hash_list(column_.values_of_step(step)));
    return state;
  }

  const EncodeField& field_;
  const EncodeColumn& column_;
};

}  // namespace

void Encoder::add_hashes(size_t field, const EncodeColumn& column, int64_t num_rows, bool is_named,
                         uint64_t* sums) const {
  const std::string& key = fields_[field].key;
  const uint64_t name = is_named ? hash_bytes(Span{reinterpret_cast<const uint8_t*>(key.data()), key.size()}) : 0;
  const RowWords word(fields_[field], column);
  for (int64_t row = 0; row < num_rows; row++) {
    if (column.has(row)) sums[row] += mix(name ^ word(row));
  }
}

}  // namespace penstock
