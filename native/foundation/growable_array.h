// An array from the pool that grows at its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "foundation/pool.h"

namespace penstock {

template <typename T>
class GrowableArray {
 public:
  size_t size() const { return size_; }
  T* data() { return buffer_.as<T>(); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_.data()); }

  // Room for `count` more, which the caller fills and then claims with advance(). Sixteen bytes of slack follow,
  // so that short copies may be made in one vector move.
  T* room(size_t count) {
    const size_t bytes = (size_ + count) * sizeof(T) + 16;
    if (bytes > buffer_.capacity()) buffer_.reserve(bytes, size_ * sizeof(T));
    return data() + size_;
  }
  void advance(size_t count) { size_ += count; }
  void push(T value) {
    *room(1) = value;
    size_++;
  }
  void truncate(size_t size) { size_ = size; }
  Buffer release() { return std::move(buffer_); }

 private:
  Buffer buffer_;
  size_t size_ = 0;
};

}  // namespace penstock
