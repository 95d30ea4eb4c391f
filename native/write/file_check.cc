#include "write/file_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "write/digest_lanes.h"
#include "write/hash.h"

namespace penstock {
namespace {

constexpr size_t kClaimed = 32;            // files that a thread takes at a time
constexpr size_t kTogether = 8;            // files that are digested together, at most
constexpr size_t kGroupBytes = 256 << 10;  // and while they stay in the second-level cache
constexpr size_t kMostKept = 4 << 20;      // bytes of a buffer that is used again
constexpr size_t kHeadBytes = 4096;        // with the size of nearly every image
constexpr size_t kMostAtOnce = 1 << 30;    // bytes that one call reads

// A regular file that is open, with its size when it was opened.
class OpenedFile {
 public:
  OpenedFile() = default;
  // Not blocking: opening a pipe would wait for a writer.
  explicit OpenedFile(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status;
    is_valid_ = fd_ >= 0 && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0 &&
                static_cast<uint64_t>(status.st_size) <= kLargestValue;
    if (is_valid_) size_ = static_cast<size_t>(status.st_size);
  }
  ~OpenedFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenedFile(OpenedFile&& other) noexcept : OpenedFile() { *this = std::move(other); }
  OpenedFile& operator=(OpenedFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(is_valid_, other.is_valid_);
    std::swap(size_, other.size_);
    return *this;
  }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  bool is_valid() const { return is_valid_; }
  size_t size() const { return size_; }

  // Fills `out`, which has room for one byte more than the size. False if the file has another size by now.
  bool read_all(uint8_t* out) {
    size_t done = 0;
    while (done <= size_) {
      const ssize_t got = read(fd_, out + done, std::min(size_ + 1 - done, kMostAtOnce));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got == 0 && done == size_;
      done += static_cast<size_t>(got);
    }
    return false;
  }

 private:
  int fd_ = -1;
  bool is_valid_ = false;
  size_t size_ = 0;
};

ImageHeader find_header(Span data) {
  const ImageHeader header = read_image_header({data.data, std::min(data.size, kHeadBytes)});
  const bool may_be_later = header.format != ImageFormat::kNone && header.width == 0 && data.size > kHeadBytes;
  return may_be_later ? read_image_header(data) : header;
}

}  // namespace

FileCheck::FileCheck(std::vector<std::string> paths, bool reads_headers)
    : paths_(std::move(paths)), reads_headers_(reads_headers), files_(paths_.size()) {}

void FileCheck::run() noexcept {
  Buffer arena;
  for (size_t first; (first = next_.fetch_add(kClaimed)) < paths_.size();) {
    const size_t last = std::min(paths_.size(), first + kClaimed);
    try {
      check(first, last, arena);
    } catch (const std::exception&) {
      // For lack of memory: the caller reads these files by itself.
      for (size_t row = first; row < last; row++) files_[row] = CheckedFile();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      num_done_ += last - first;
    }
    changed_.notify_all();
  }
}

void FileCheck::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return num_done_ == paths_.size(); });
}

void FileCheck::check(size_t first, size_t last, Buffer& arena) {
  OpenedFile file;
  for (size_t row = first; row < last;) {
    size_t rows[kTogether], begins[kTogether];
    size_t count = 0, used = 0;
    // A file that does not fit into the group is the first one of the next.
    for (; row < last && count < kTogether; row++) {
      if (!file.is_valid()) file = OpenedFile(paths_[row].c_str());
      if (!file.is_valid()) continue;
      if (count != 0 && file.size() > kGroupBytes - std::min(used, kGroupBytes)) break;
      if (used + file.size() + 1 > arena.capacity()) arena.reserve(used + file.size() + 1, used);
      uint8_t* const data = arena.data() + used;
      CheckedFile& found = files_[row];
      bool is_fine = file.read_all(data);
      if (is_fine && reads_headers_) {
        const ImageHeader header = find_header({data, file.size()});
        found.format = header.format;
        found.width = header.width;
        found.height = header.height;
        is_fine = header.format != ImageFormat::kNone && header.width > 0;
      }
      if (is_fine) {
        found.size = static_cast<int64_t>(file.size());
        rows[count] = row;
        begins[count++] = used;
        used += file.size();
      }
      file = OpenedFile();
    }
    Span values[kTogether];
    uint64_t hashes[kTogether];
    Digest digests[kTogether];
    for (size_t i = 0; i < count; i++) {
      values[i] = {arena.data() + begins[i], static_cast<size_t>(files_[rows[i]].size)};
    }
    hash_values(values, count, hashes);
    digest_values(values, count, digests);
    for (size_t i = 0; i < count; i++) {
      files_[rows[i]].hash = hashes[i];
      files_[rows[i]].digest = digests[i];
    }
    if (arena.capacity() > kMostKept) arena = Buffer();
  }
}

}  // namespace penstock
