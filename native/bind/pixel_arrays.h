// Arrays of pixels as arguments, in place and in any strides, and the random draws of their rows.
#pragma once

#include <string>

#include "bind/arguments.h"
#include "bind/numpy.h"
#include "image/pixels.h"
#include "order/random.h"

namespace penstock {

// The memory of an array of bytes for as long as this lives; in place and in any strides, other than `view_of`.
class Bytes {
 public:
  Bytes(nb::handle given, const char* what, size_t rank, bool is_written) {
    if (PyObject_GetBuffer(given.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) throw nb::python_error();
    try {
      need(view_.itemsize == 1 && view_.format != nullptr && std::string(view_.format) == "B", what,
           "expected an array of uint8");
      need(rank == 0 || static_cast<size_t>(view_.ndim) == rank, what,
           "expected " + std::to_string(rank) + " dimensions, got " + std::to_string(view_.ndim));
      need(!is_written || view_.readonly == 0, what, "expected an array that may be written");
    } catch (...) {
      PyBuffer_Release(&view_);
      throw;
    }
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(Bytes&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(view_.buf); }
  size_t rank() const { return static_cast<size_t>(view_.ndim); }
  size_t shape(size_t i) const { return static_cast<size_t>(view_.shape[i]); }
  ptrdiff_t stride(size_t i) const { return view_.strides[i]; }
  bool is_contiguous() const { return PyBuffer_IsContiguous(&view_, 'C') != 0; }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

inline bool overlap(const uint8_t* a, size_t a_bytes, const uint8_t* b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

inline void check_channels(size_t channels, const char* what) {
  need(channels == 1 || channels == 3 || channels == 4, what,
       "expected 1, 3 or 4 channels, got " + std::to_string(channels));
}

// Images of (images, height, width, channels).
struct Batch {
  Bytes bytes;
  Images images;

  Batch(nb::handle given, const char* what, bool is_written)
      : bytes(given, what, 4, is_written),
        images{bytes.data(), bytes.shape(0), bytes.shape(1), bytes.shape(2), bytes.shape(3)} {
    check_channels(images.channels, what);
    need(bytes.is_contiguous(), what, "expected a C-contiguous array");
    if (bytes.size() == 0) images.num = 0;
  }
};

// The tuple (seed, epoch, purposes, records) of `Draws.keys`, with a record for each row.
struct DrawArguments {
  static constexpr size_t kMostPurposes = 8;

  DrawKeys keys;
  uint16_t purposes[kMostPurposes] = {};

  DrawArguments(nb::handle given, size_t rows, size_t num_purposes) {
    const nb::tuple parts = tuple_of(given, 4, "draws");
    const auto epoch = value_of<int64_t>(parts[1], "epoch");
    need(epoch >= 0 && epoch <= UINT32_MAX, "epoch", "expected from 0 to 4294967295");
    const nb::tuple numbers = tuple_of(parts[2], num_purposes, "purposes");
    for (size_t i = 0; i < num_purposes && i < kMostPurposes; i++) {
      const auto number = value_of<int64_t>(numbers[i], "purposes");
      need(number >= 0 && number <= UINT16_MAX, "purposes", "expected from 0 to 65535");
      purposes[i] = static_cast<uint16_t>(number);
    }
    const ArrayView records = vector_of(parts[3], "records", {DType::kInt64});
    need(records.rows() == rows, "records", "expected one for each of " + std::to_string(rows) + " rows");
    keys = DrawKeys{value_of<uint64_t>(parts[0], "seed"), static_cast<uint32_t>(epoch), records.as<int64_t>()};
  }
};

}  // namespace penstock
