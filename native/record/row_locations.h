// Where the records of a split are: the file of each row, and its frame there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

class RowLocations {
 public:
  // `starts` is the first row of each file, and one more for the end; it must not fall.
  explicit RowLocations(std::vector<int64_t> starts) : starts_(std::move(starts)), offsets_(starts_.size()) {}

  RowLocations(const RowLocations&) = delete;
  RowLocations& operator=(const RowLocations&) = delete;

  size_t num_files() const { return starts_.size() - 1; }
  int64_t num_rows() const { return starts_.back(); }
  int64_t num_rows(size_t file) const { return starts_[file + 1] - starts_[file]; }

  // Takes where the records of a file begin, and the last ends: one more than it has rows. Not copied.
  void set(size_t file, const uint64_t* offsets) { offsets_[file].store(offsets, std::memory_order_release); }

  // Finds the files of rows whose offsets are not set. False if there is no such row.
  bool find_unknown(const int64_t* rows, size_t count, std::vector<uint32_t>& files) const;

  // Finds the file of each row. `which` gets a number in `files`, which gets the files met, in the order in which they
  // are met. False if there is no such row.
  bool find_files(const int64_t* rows, size_t count, uint32_t* which, std::vector<uint32_t>& files) const;

  // Finds the frame of each row. False if the offsets of a file were not set, or fall.
  bool find_frames(const int64_t* rows, size_t count, const uint32_t* which, const std::vector<uint32_t>& files,
                   uint64_t* begins, uint64_t* sizes) const;

 private:
  std::vector<int64_t> starts_;
  std::vector<std::atomic<const uint64_t*>> offsets_;  // null until they are set
};

}  // namespace penstock
