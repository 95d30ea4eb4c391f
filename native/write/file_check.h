// The files of a block of rows: read, recognized as images, hashed and digested, by any number of threads at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "foundation/bytes.h"
#include "foundation/pool.h"
#include "image/image_header.h"
#include "write/digest.h"

namespace penstock {

inline constexpr size_t kLargestValue = (size_t{1} << 31) - 1;  // of a protobuf message, and thus of a file in one

// What was found in a file. A file that is not checked here (it cannot be read, changes while it is read, or is not an
// image) has a size of -1: the caller finds out why.
struct CheckedFile {
  int64_t size = -1;
  uint64_t hash = 0;
  Digest digest;
  ImageFormat format = ImageFormat::kNone;
  int64_t width = 0, height = 0;
};

class FileCheck {
 public:
  // `reads_headers`: whether the files must be images with a size.
  FileCheck(std::vector<std::string> paths, bool reads_headers);

  // Checks files until all have begun. Any number of threads may call this.
  void run() noexcept;
  // Waits for the files that threads have begun; all have, once run() has returned.
  void wait();
  // The files in the order of their paths; after wait().
  const std::vector<CheckedFile>& files() const { return files_; }

 private:
  void check(size_t first, size_t last, Buffer& arena);

  std::vector<std::string> paths_;
  bool reads_headers_;
  std::vector<CheckedFile> files_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t num_done_ = 0;
};

}  // namespace penstock
