// Any rows of the files of a split as a segment. Files are opened when they are first read, and the most recently used
// ones stay open, as a process may have fewer files open than a data set has.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "record/file_identity.h"
#include "record/mapping.h"
#include "record/row_finder.h"
#include "record/row_locations.h"

namespace penstock {

// An open file, closed with the last reference.
struct OpenedFile {
  int fd;
  std::unique_ptr<const Mapping> mapping;  // null if the file is not mapped

  explicit OpenedFile(int descriptor) : fd(descriptor) {}
  ~OpenedFile();
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
};

class RowFiles : public RowFinder {
 public:
  struct File {
    std::string path;  // empty if the rows of the file cannot be read here
    FileIdentity identity;
  };
  struct Limits {
    size_t most_open;    // files that all objects of this class together keep open
    size_t most_pinned;  // files that one segment keeps open; of others, it holds copies of the frames
    bool maps;           // whether files are mapped into memory, if all of them can stay open
  };

  // The locations must outlive this.
  RowFiles(const RowLocations& locations, std::vector<File> files, const Limits& limits);
  ~RowFiles() override;
  RowFiles(const RowFiles&) = delete;
  RowFiles& operator=(const RowFiles&) = delete;

  // False also if the location of a row is not known, or its file cannot be opened or has changed.
  bool find(const int64_t* rows, size_t count, RowSegment& out) const override;

  // Asks the kernel to read rows into memory in the background. False as for find().
  bool prefetch(const int64_t* rows, size_t count) const;

  size_t num_open() const;

 private:
  using Pin = std::shared_ptr<const OpenedFile>;

  bool locate(const int64_t* rows, size_t count, RowSegment& out, std::vector<uint32_t>& numbers) const;
  bool pin(const uint32_t* numbers, size_t count, std::vector<Pin>& out) const;
  bool load(const std::vector<uint32_t>& numbers, size_t first, RowSegment& out) const;
  Pin open_file(uint32_t number) const;
  void keep(uint32_t number, Pin& file) const;
  void drop(uint32_t number) const;
  void close_one(std::vector<Pin>& closed) const;
  static void drop_all();

  const RowLocations& locations_;
  const std::vector<File> files_;
  const Limits limits_;
  const bool maps_;
  // Guarded by process_mutex(). The open files are in no order: a hand goes round, and closes the first one that was
  // not used since it last came by.
  mutable std::vector<Pin> pins_;
  mutable std::vector<uint8_t> is_used_;
  mutable std::vector<uint32_t> open_;
  mutable size_t hand_ = 0;
  mutable bool has_opened_ = false;
};

}  // namespace penstock
