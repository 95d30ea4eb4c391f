// What the binding files share: views of Python's buffers, arrays over ours. These files alone know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>

#include "foundation/bytes.h"
#include "foundation/growable_array.h"
#include "foundation/pool.h"

namespace nb = nanobind;

namespace penstock {

// A borrowed view of a bytes-like object.
class BytesView {
 public:
  explicit BytesView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;
  Span span() const { return Span{static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)}; }

 private:
  Py_buffer view_;
};

// An array over a pooled buffer; the buffer goes back to the pool with the last array that shows it.
template <typename T>
nb::object as_array(Buffer buffer, size_t count) {
  auto* const owned = new Buffer(std::move(buffer));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Buffer*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {count}, owner));
}

template <typename T>
nb::object as_matrix(Buffer buffer, size_t rows, size_t columns) {
  auto* const owned = new Buffer(std::move(buffer));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Buffer*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(owned->data(), {rows, columns}, owner));
}

template <typename T>
nb::object as_array(GrowableArray<T>& values) {
  const size_t count = values.size();
  Buffer buffer = values.release();
  if (buffer.data() == nullptr) buffer = Buffer(1);
  return as_array<T>(std::move(buffer), count);
}

// Each adds the functions and classes of one file in bind/ to the module.
void bind_reading(nb::module_& m);     // read.cc: records into columns
void bind_scanning(nb::module_& m);    // scan.cc: indexes, checks, repair
void bind_writing(nb::module_& m);     // write.cc: hashes, the encoder, frames
void bind_statistics(nb::module_& m);  // statistics.cc: moments, counts, samples of lists
void bind_rows(nb::module_& m);        // rows.cc: rows of many files
void bind_batching(nb::module_& m);    // batch.cc: arrays of a batch
void bind_columns(nb::module_& m);     // column_set.cc: columns as programs read them
void bind_program(nb::module_& m);     // program.cc: a pipeline as one call
void bind_slices(nb::module_& m);      // batch_slices.cc: slices that the core makes alone
void bind_text(nb::module_& m);        // text.cc: vocabularies and tokens
void bind_images(nb::module_& m);      // images.cc: encoded images
void bind_pixels(nb::module_& m);      // pixels.cc: their pixels
void bind_image_plan(nb::module_& m);  // image_plan.cc: the images of a slice

}  // namespace penstock
