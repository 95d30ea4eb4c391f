// The pool's interface on memory of exactly the size asked for, and filled with rubbish: a byte too far, or one that
// was never written, is hidden by blocks that are rounded up and used again.
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "foundation/pool.h"

namespace penstock {
namespace {

constexpr size_t kMostFilled = 4096;  // a quarter of a megabyte for each input would take all the time

}  // namespace

Buffer::Buffer(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  std::memset(block, 0xa5, bytes < kMostFilled ? bytes : kMostFilled);
  data_ = static_cast<uint8_t*>(block);
  capacity_ = bytes;
}

Buffer::~Buffer() { std::free(data_); }

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

void Buffer::reserve(size_t bytes, size_t used) {
  if (bytes <= capacity_ && data_ != nullptr) return;
  Buffer larger(bytes);
  if (used != 0) std::memcpy(larger.data_, data_, used);
  *this = std::move(larger);
}

std::mutex& process_mutex() {
  static std::mutex mutex;
  return mutex;
}

size_t pooled_bytes() { return 0; }

void empty_pool() {}

}  // namespace penstock
