// NumPy arrays as arguments and results, at some nanoseconds each: nanobind's own way takes about a microsecond for
// each, as long as a whole kernel for a batch. NumPy's table of functions and what it keeps of an array are part of its
// ABI, the same in versions 1 and 2.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "bind/buffers.h"
#include "foundation/dtype.h"

namespace penstock {

// Finds NumPy's table; an ImportError if there is none that we know. Once, when the module is made.
void import_numpy();

const char* name_of(DType dtype);
DType dtype_named(nb::handle name);

// An argument that is an array, as long as the call lasts: C-contiguous, aligned, in this machine's byte order.
struct ArrayView {
  const uint8_t* data = nullptr;
  DType dtype = DType::kOther;
  size_t rank = 0;
  const Py_ssize_t* dimensions = nullptr;
  bool is_writable = false;

  size_t shape(size_t i) const { return static_cast<size_t>(dimensions[i]); }
  size_t rows() const { return shape(0); }
  size_t width() const;  // items of one row
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
};

// An array argument of rank 1 or more whose dtype is one of these (any of the enum's, if none is named); a ValueError
// with `what` in it if not, a TypeError if it is no array at all.
ArrayView view_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes);
// An array whose single rows alone need to be contiguous; `stride` gets the bytes from one row to the next.
ArrayView rows_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes, size_t& stride);
// An array of rank 1.
ArrayView vector_of(nb::handle given, const char* what, std::initializer_list<DType> dtypes);
// A mask of `rows`, or null for None. As bytes: elements of an array of bool need not be 0 or 1.
const uint8_t* mask_of(nb::handle given, size_t rows, const char* what);

// A new array over memory from the pool, not initialised.
struct NewArray {
  nb::object object;
  uint8_t* data = nullptr;

  NewArray(DType dtype, const size_t* shape, size_t rank);
  NewArray(DType dtype, std::initializer_list<size_t> shape) : NewArray(dtype, shape.begin(), shape.size()) {}
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data);
  }
};

// An array over memory of a buffer, which it keeps alive.
nb::object array_over(DType dtype, std::initializer_list<size_t> shape, void* data, std::shared_ptr<Buffer> owner);

inline constexpr size_t kMostRank = 32;  // of NumPy 1; NumPy 2 takes 64

// A ValueError about argument `what`, unless it holds.
inline void need(bool holds, const char* what, const char* fault) {
  if (!holds) throw nb::value_error((std::string(what) + ": " + fault).c_str());
}
inline void need(bool holds, const char* what, const std::string& fault) { need(holds, what, fault.c_str()); }

// Lets other threads run for as long as this lives, if the work ahead takes long: another thread that takes the lock
// meanwhile keeps it for up to 5 ms, a hundred times what most kernels need for a batch.
class Unlocked {
 public:
  explicit Unlocked(size_t nanoseconds) {
    if (nanoseconds > 20000) state_ = PyEval_SaveThread();
  }
  ~Unlocked() { relock(); }
  // For work that turns out to take long.
  void unlock() {
    if (state_ == nullptr) state_ = PyEval_SaveThread();
  }
  // Before an object of Python is touched: a return value is copied before locals end.
  void relock() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
    state_ = nullptr;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

}  // namespace penstock
