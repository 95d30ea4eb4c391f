// Memory that is reused. A fresh page costs several times what it costs to fill a warm one, so the buffers of arrays
// come from a pool, and return to it when the last array over them is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace penstock {

inline constexpr size_t kAlignment = 64;  // what the frameworks ask of memory that they take without a copy

// A block of memory from the pool, given back when this is destroyed. Contents are not initialised.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

  // Makes room for `bytes`, keeping the first `used`. Grows by doubling.
  void reserve(size_t bytes, size_t used);

 private:
  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
};

// Guards what threads share for moments. A process that is forked while another thread holds it would wait indefinitely
// in the child: it is taken before a fork and let go of after it, on both sides.
std::mutex& process_mutex();

// What the pool keeps for later, in bytes; and a way to let go of it.
size_t pooled_bytes();
void empty_pool();

// Returns freed memory to the system: every thread keeps it for itself, and seldom needs it again.
void trim_memory();

}  // namespace penstock
