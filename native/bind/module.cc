// The module _native. See src/penstock/_native.pyi.
#include "bind/buffers.h"
#include "foundation/pool.h"
#include "record/crc32c.h"

NB_MODULE(_native, m) {
  using namespace penstock;
  nb::set_leak_warnings(false);  // an exception's traceback may hold an array when the interpreter ends

  m.def("crc32c", [](nb::bytes data) { return crc32c(reinterpret_cast<const uint8_t*>(data.c_str()), data.size()); });
  m.def("masked_crc32c",
        [](nb::bytes data) { return masked_crc32c(reinterpret_cast<const uint8_t*>(data.c_str()), data.size()); });
  m.def("crc32c_by_table",
        [](nb::bytes data) { return crc32c_by_table(reinterpret_cast<const uint8_t*>(data.c_str()), data.size()); });
  m.def("crc32c_method", &crc32c_method);
  m.def("pooled_bytes", &pooled_bytes);
  m.def("empty_pool", &empty_pool);
  m.def("trim_memory", &trim_memory, nb::call_guard<nb::gil_scoped_release>());
  bind_reading(m);
  bind_scanning(m);
  bind_writing(m);
  bind_statistics(m);
  bind_rows(m);
  bind_batching(m);
  bind_columns(m);
  bind_program(m);
  bind_slices(m);
  bind_text(m);
  bind_images(m);
  bind_pixels(m);
  bind_image_plan(m);
}
