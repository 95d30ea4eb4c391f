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

  // Whether the file could be mapped.
  bool holds() const { return data_ != nullptr; }

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
