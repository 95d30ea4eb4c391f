// What is in a file whose schema is not declared: counts over all fields of all records, for inference and for
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
// Keys beyond these are not counted: data with a new key in each record must not fill memory.
inline constexpr size_t kMostKeys = 200000;

// What was seen of one field. For a feature list all but `records`, `min_steps` and `max_steps` is counted over steps.
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
  std::vector<Feature> features_;  // those of the current record, as in field_map_.found
  Feature feature_;
  std::vector<int64_t> scratch_;
  FieldCounts discarded_;
};

}  // namespace penstock
