// What is in a file whose schema nobody told: counts over all fields of all records, for inference and for `inspect`.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bytes.h"
#include "feature.h"
#include "status.h"

namespace penstock {

inline constexpr size_t kMostDistinct = 256;      // more distinct values than this are not listed
inline constexpr size_t kLongestDistinct = 64;    // nor is a string longer than this

// What was seen of one field. For a feature list all but `records`, `min_steps` and `max_steps` is counted over steps.
struct FieldCounts {
  std::string name;
  int64_t by_kind[4] = {};  // indexed by Kind
  int64_t min_len = INT64_MAX, max_len = 0;
  int64_t int_min = INT64_MAX, int_max = INT64_MIN;
  std::set<int64_t> int_values;
  bool many_ints = false;
  int64_t min_bytes = INT64_MAX, max_bytes = 0, num_values = 0;
  int64_t text = 0, jpeg = 0, png = 0, webp = 0, gif = 0, bmp = 0;
  std::set<std::string, std::less<>> strings;
  bool many_strings = false;
  int64_t records = 0, min_steps = INT64_MAX, max_steps = 0;

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

  int64_t records = 0, unparsable = 0, featureless = 0, empty = 0, with_lists = 0, bad_lists = 0;
  // std::deque: the maps point into it.
  std::deque<FieldCounts> fields, lists;

 private:
  struct Found {
    FieldCounts* counts;
    Span entry;
  };
  using Names = std::unordered_map<std::string_view, FieldCounts*>;

  Status find_entries(Span map, Names& names, std::deque<FieldCounts>& store, std::vector<Found>& found);
  Status count_features(const std::vector<Found>& found);
  Status count_lists(const std::vector<Found>& found);
  Status check(const std::vector<Found>& found, bool as_lists);
  Status each_step(Span message, bool is_entry, FieldCounts* counts, int64_t& steps);

  Names field_names_, list_names_;
  std::vector<Found> found_fields_, found_lists_;
  Feature feature_;
  std::vector<int64_t> scratch_;
  FieldCounts discarded_;
};

}  // namespace penstock
