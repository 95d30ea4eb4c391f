// The contents of a file whose schema is not declared: counts over all fields of all records, for inference and for
// `inspect`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "decode/feature.h"
#include "foundation/bytes.h"
#include "record/status.h"

namespace penstock {

inline constexpr size_t kMostDistinct = 256;    // more distinct values than this are not listed
inline constexpr size_t kLongestDistinct = 64;  // nor is a string longer than this
inline constexpr int64_t kMostWorded = 256;     // strings whose words are counted, the first of each field
// Keys beyond these are not counted: data with a new key in each record must not fill memory.
inline constexpr size_t kMostKeys = 200000;

// Number of distinct hashes: exact up to 4096, then an estimate from those that end in a number of zero bits, which
// grows. The order in which values are added does not matter.
class DistinctCounter {
 public:
  void add(uint64_t hash);
  int64_t count() const { return static_cast<int64_t>(size_) << num_zeros_; }

 private:
  static constexpr size_t kFirstSlots = 1024, kMostSlots = 8192;  // powers of two, at most half of them in use

  bool is_kept(uint64_t hash) const { return (hash & ((uint64_t{1} << num_zeros_) - 1)) == 0; }
  void insert(uint64_t hash);
  void rebuild(size_t num_slots);

  std::vector<uint64_t> slots_;  // a hash table; 0 is an empty slot
  size_t size_ = 0;
  unsigned num_zeros_ = 0;
};

// Counts of one field. For a feature list all but `records`, `min_steps` and `max_steps` is counted over steps.
struct FieldCounts {
  std::string name;
  int64_t by_kind[4] = {};  // indexed by Kind
  int64_t min_len = INT64_MAX, max_len = 0;
  int64_t int_min = INT64_MAX, int_max = INT64_MIN;
  std::unordered_set<int64_t> int_values;
  bool many_ints = false;
  int64_t min_bytes = INT64_MAX, max_bytes = 0, num_values = 0;
  int64_t text = 0, jpeg = 0, png = 0, webp = 0, gif = 0, bmp = 0;
  std::unordered_set<std::string> strings;
  bool many_strings = false;
  DistinctCounter distinct;               // of ints or strings, once they are too many to be listed
  int64_t num_worded = 0, num_words = 0;  // of the first strings
  int64_t records = 0, min_steps = INT64_MAX, max_steps = 0;
  int64_t last_record = -1;  // the last record that had the key

  Status add(const Feature& feature, std::vector<int64_t>& scratch);

 private:
  void add_int(int64_t value);
  void add_bytes(Span value);
};

class Survey {
 public:
  struct Result {
    Status status = Status::kOk;       // as an Example
    Status list_status = Status::kOk;  // of what would be its feature lists
  };

  // Counts one record, which must be readable for kReadablePadding bytes past its end.
  Result add(Span payload);

  int64_t records = 0, unparsable = 0, featureless = 0, empty = 0, with_lists = 0;
  // std::deque: the maps point into it.
  std::deque<FieldCounts> fields, lists;

 private:
  struct Found {
    FieldCounts* counts;
    Span entry;
  };
  using Names = std::unordered_map<std::string_view, FieldCounts*>;

  struct Map {
    Names names;
    std::vector<Found> found;         // in the current record
    std::vector<FieldCounts*> usual;  // in the order of the record before: a guess that saves a lookup
    bool has_duplicates = false;
  };

  Status find_entries(Span message, Map& map, std::deque<FieldCounts>& store);
  FieldCounts* find_counts(Span key, Map& map, std::deque<FieldCounts>& store);
  void keep_last(Map& map);
  Status parse_features();
  Status check_lists();
  void count_lists();
  Status each_step(Span message, bool is_entry, FieldCounts* counts, int64_t& steps);

  Map field_map_, list_map_;
  std::vector<Feature> features_;  // features of the current record, as in field_map_.found
  Feature feature_;
  std::vector<int64_t> scratch_;
  FieldCounts discarded_;
};

}  // namespace penstock
