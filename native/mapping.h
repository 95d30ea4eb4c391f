// A file in memory as the kernel keeps it, for many small reads all over it: a system call for each would cost more than
// the copy. No address of it leaves this class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// The first `size` bytes of a file. The file may shrink under it: a copy then ends early, where reading such a page would
// otherwise end the process (SIGBUS). Any number of threads may copy at once.
class Mapping {
 public:
  Mapping(int fd, size_t size);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Whether the file could be mapped.
  bool holds() const { return data_ != nullptr; }

  // Asks the processor to bring bytes into its cache; harmless where they are gone.
  void prefetch(uint64_t offset, size_t size) const {
    constexpr size_t kMostBytes = 2048, kLine = 64;
    if (offset >= size_) return;
    const uint8_t* const begin = data_ + offset;
    const size_t count = size < kMostBytes ? size : kMostBytes;
    for (size_t at = 0; at < count; at += kLine) __builtin_prefetch(begin + at);
  }

  // Copies `size` bytes from `offset` on. Returns how many there were: `size`, what the mapping has, or 0 if the file
  // no longer has them.
  size_t copy(uint64_t offset, uint8_t* out, size_t size) const;

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Makes sure that the signal of a page that is gone reaches this code first. Once a call that copies: others install
// handlers too.
void watch_for_lost_pages();

}  // namespace penstock
