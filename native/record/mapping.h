// A file in memory as the kernel keeps it, for many small reads all over it: a system call for each would cost more
// than the copy. No address of it leaves this class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// The first `size` bytes of a file. The file may shrink under it: a copy then ends early, where reading such a page
// would otherwise end the process (SIGBUS). Any number of threads may copy at once.
class Mapping {
 public:
  Mapping(int fd, size_t size);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Asks the kernel to read all of the file into memory in the background.
  void read_ahead() const;

  // Whether the file could be mapped.
  bool holds() const { return data_ != nullptr; }

  // Copies `size` bytes from `offset` on, or as many as the mapping has, and sets `count` to their number. False if
  // they could not be read: the file no longer has them, or its disk failed.
  bool copy(uint64_t offset, uint8_t* out, size_t size, size_t& count) const;

  // Begins to load the first bytes of a range into the cache of the processor. Always inlined: g++ 12 takes a function
  // that does nothing else for one without effect, and removes its calls.
  __attribute__((always_inline)) void touch(uint64_t offset, size_t size) const {
    constexpr size_t kLine = 64, kMostBytes = 1024;  // the processor itself loads the bytes after these
    if (offset >= size_ || size_ - offset < size) return;
    const uint8_t* const begin = data_ + offset;
    for (size_t at = 0; at < size && at < kMostBytes; at += kLine) __builtin_prefetch(begin + at);
  }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Makes sure that the signal of a page that is gone reaches this code first. Once a call that copies: others install
// handlers too.
void watch_for_lost_pages();

}  // namespace penstock
