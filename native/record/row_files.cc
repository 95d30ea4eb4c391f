#include "record/row_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

namespace penstock {
namespace {

// Objects that have opened a file, and the number of files that they keep open; guarded by process_mutex(). They share
// the descriptors of the process.
std::vector<const RowFiles*> users;
size_t num_kept = 0;

int open_descriptor(const std::string& path) {
  for (;;) {
    // O_NONBLOCK: opening a pipe without a writer must not block.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

}  // namespace

OpenedFile::~OpenedFile() {
  if (fd >= 0) close(fd);
}

RowFiles::RowFiles(const RowLocations& locations, std::vector<File> files, const Limits& limits)
    : locations_(locations),
      files_(std::move(files)),
      limits_(limits),
      maps_(limits.maps && files_.size() <= limits.most_open),
      pins_(files_.size()),
      is_used_(files_.size()) {}

RowFiles::~RowFiles() {
  const std::lock_guard<std::mutex> lock(process_mutex());
  if (!has_opened_) return;
  users.erase(std::find(users.begin(), users.end(), this));
  num_kept -= open_.size();
}

bool RowFiles::find(const int64_t* rows, size_t count, RowSegment& out) const {
  std::vector<uint32_t> numbers;
  if (!locate(rows, count, out, numbers)) return false;
  const size_t num_pinned = std::min(numbers.size(), std::max<size_t>(1, limits_.most_pinned));
  if (!pin(numbers.data(), num_pinned, out.files)) return false;
  for (const Pin& file : out.files) {
    FrameSource source;
    source.fd = file->fd;
    source.mapping = file->mapping.get();
    out.segment.sources.push_back(source);
  }
  return num_pinned == numbers.size() || load(numbers, num_pinned, out);
}

bool RowFiles::prefetch(const int64_t* rows, size_t count) const {
  RowSegment out;
  std::vector<uint32_t> numbers;
  if (!locate(rows, count, out, numbers)) return false;
  // File by file, so that few are open at the same time.
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; i++) order[i] = i;
  const uint32_t* const which = out.segment.which;
  std::stable_sort(order.begin(), order.end(), [which](size_t a, size_t b) { return which[a] < which[b]; });
  std::vector<Pin> file;
  for (size_t i = 0; i < count;) {
    const uint32_t number = which[order[i]];
    file.clear();
    if (!pin(&numbers[number], 1, file)) return false;
    for (; i < count && which[order[i]] == number; i++) {
#ifdef POSIX_FADV_WILLNEED
      const auto begin = static_cast<off_t>(out.segment.begins[order[i]]);
      (void)posix_fadvise(file[0]->fd, begin, static_cast<off_t>(out.segment.sizes[order[i]]), POSIX_FADV_WILLNEED);
#endif
    }
  }
  return true;
}

size_t RowFiles::num_open() const {
  const std::lock_guard<std::mutex> lock(process_mutex());
  return open_.size();
}

bool RowFiles::locate(const int64_t* rows, size_t count, RowSegment& out, std::vector<uint32_t>& numbers) const {
  out.which = Buffer(count * sizeof(uint32_t));
  out.begins = Buffer(count * sizeof(uint64_t));
  out.sizes = Buffer(count * sizeof(uint64_t));
  uint32_t* const which = out.which.as<uint32_t>();
  uint64_t* const begins = out.begins.as<uint64_t>();
  uint64_t* const sizes = out.sizes.as<uint64_t>();
  if (!locations_.find_files(rows, count, which, numbers)) return false;
  if (!locations_.find_frames(rows, count, which, numbers, begins, sizes)) return false;
  for (size_t i = 0; i < count; i++) {
    if (!is_possible_frame(begins[i], sizes[i])) return false;
  }
  out.segment.which = which;
  out.segment.begins = begins;
  out.segment.sizes = sizes;
  out.segment.num_records = static_cast<int64_t>(count);
  return true;
}

bool RowFiles::pin(const uint32_t* numbers, size_t count, std::vector<Pin>& out) const {
  out.resize(count);
  {
    const std::lock_guard<std::mutex> lock(process_mutex());
    for (size_t i = 0; i < count; i++) {
      out[i] = pins_[numbers[i]];
      is_used_[numbers[i]] = 1;
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (out[i] == nullptr) {
      out[i] = open_file(numbers[i]);
      if (out[i] == nullptr) return false;
      keep(numbers[i], out[i]);
    } else if (!files_[numbers[i]].identity.is_of(out[i]->fd)) {
      drop(numbers[i]);
      return false;
    }
  }
  return true;
}

// Copies the frames of the files from `first` on, one file at a time, so that none of them stays open.
bool RowFiles::load(const std::vector<uint32_t>& numbers, size_t first, RowSegment& out) const {
  const uint32_t* const which = out.segment.which;
  const uint64_t* const sizes = out.segment.sizes;
  uint64_t* const begins = out.begins.as<uint64_t>();
  std::vector<size_t> order;
  uint64_t num_bytes = 0;
  for (size_t i = 0; i < static_cast<size_t>(out.segment.num_records); i++) {
    if (which[i] < first) continue;
    order.push_back(i);
    num_bytes += sizes[i];
  }
  std::stable_sort(order.begin(), order.end(), [which](size_t a, size_t b) { return which[a] < which[b]; });
  out.loaded = Buffer(static_cast<size_t>(num_bytes));
  uint8_t* const data = out.loaded.data();
  FrameSource source;
  source.memory = Span{data, static_cast<size_t>(num_bytes)};
  std::vector<Pin> file;
  uint64_t used = 0;
  size_t at = 0;
  for (size_t number = first; number < numbers.size(); number++) {
    file.clear();
    if (!pin(&numbers[number], 1, file)) return false;
    out.segment.sources.push_back(source);
    FrameSource from;
    from.fd = file[0]->fd;
    from.mapping = file[0]->mapping.get();
    for (; at < order.size() && which[order[at]] == number; at++) {
      const size_t i = order[at];
      const auto size = static_cast<size_t>(sizes[i]);
      int error;
      const size_t got = read_at(from, begins[i], data + used, size, error);
      std::memset(data + used + got, 0, size - got);  // a file that ends early: the CRC of the frame will not fit
      begins[i] = used;
      used += size;
    }
  }
  return true;
}

RowFiles::Pin RowFiles::open_file(uint32_t number) const {
  const File& file = files_[number];
  if (file.path.empty()) return nullptr;
  int fd = open_descriptor(file.path);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    drop_all();
    fd = open_descriptor(file.path);
  }
  if (fd < 0) return nullptr;
  auto opened = std::make_shared<OpenedFile>(fd);
  if (!file.identity.is_of(fd)) return nullptr;
  if (maps_) {
    auto mapping = std::make_unique<const Mapping>(fd, static_cast<size_t>(file.identity.size));
    mapping->read_ahead();  // all of it will be read, in some order
    if (mapping->holds()) opened->mapping = std::move(mapping);
  }
  return opened;
}

// Keeps a file open, and closes another one if there are too many. If another thread has opened it too, that one is
// kept, and replaces `file`.
void RowFiles::keep(uint32_t number, Pin& file) const {
  std::vector<Pin> closed;  // after the lock was let go of
  const std::lock_guard<std::mutex> lock(process_mutex());
  if (pins_[number] != nullptr) {
    closed.push_back(std::exchange(file, pins_[number]));
    return;
  }
  if (!has_opened_) users.push_back(this);
  has_opened_ = true;
  while (num_kept > 0 && num_kept >= limits_.most_open) {
    // The object with the most files closes one, so that all objects get the same share, also beside idle ones.
    const RowFiles* largest = this;
    for (const RowFiles* const user : users) {
      if (user->open_.size() > largest->open_.size()) largest = user;
    }
    largest->close_one(closed);
  }
  pins_[number] = file;
  is_used_[number] = 1;
  open_.push_back(number);
  num_kept++;
}

// Closes the first file that was not used since the hand last came by.
void RowFiles::close_one(std::vector<Pin>& closed) const {
  for (;;) {
    if (hand_ >= open_.size()) hand_ = 0;
    const uint32_t number = open_[hand_];
    if (is_used_[number] == 0) break;
    is_used_[number] = 0;
    hand_++;
  }
  const uint32_t number = open_[hand_];
  closed.push_back(std::move(pins_[number]));
  pins_[number] = nullptr;
  open_[hand_] = open_.back();
  open_.pop_back();
  num_kept--;
}

void RowFiles::drop(uint32_t number) const {
  Pin closed;
  const std::lock_guard<std::mutex> lock(process_mutex());
  if (pins_[number] == nullptr) return;
  closed = std::move(pins_[number]);
  pins_[number] = nullptr;
  const auto at = std::find(open_.begin(), open_.end(), number);
  *at = open_.back();
  open_.pop_back();
  num_kept--;
}

// Closes the files of all objects: the process can open no more.
void RowFiles::drop_all() {
  std::vector<Pin> closed;
  const std::lock_guard<std::mutex> lock(process_mutex());
  for (const RowFiles* const user : users) {
    for (const uint32_t number : user->open_) {
      closed.push_back(std::move(user->pins_[number]));
      user->pins_[number] = nullptr;
    }
    user->open_.clear();
  }
  num_kept = 0;
}

}  // namespace penstock
