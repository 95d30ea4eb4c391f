// What Python sees of encoded images: their headers, and the pixels of PNGs. See src/penstock/_native.pyi.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "bind/numpy.h"
#include "image/image_header.h"
#include "image/inflate.h"
#include "image/jpeg.h"
#include "image/png.h"

using namespace nb::literals;

namespace penstock {
namespace {

constexpr uint64_t kMostPixels = uint64_t{1} << 40;
constexpr size_t kChunkNanoseconds = 5;
constexpr size_t kMostSlack = size_t{1} << 20;

nb::tuple read_image_headers(nb::handle bytes, nb::handle begins, nb::handle ends) {
  const ArrayView arena = vector_of(bytes, "arena", {DType::kUInt8});
  const ArrayView starts = vector_of(begins, "starts", {DType::kInt64});
  const ArrayView stops = vector_of(ends, "stops", {DType::kInt64});
  const size_t rows = starts.rows();
  need(stops.rows() == rows, "stops", "expected as many as starts");
  const int64_t* const start = starts.as<int64_t>();
  const int64_t* const stop = stops.as<int64_t>();
  size_t num_bytes = 0;
  for (size_t i = 0; i < rows; i++) {
    const bool fits = start[i] >= 0 && start[i] <= stop[i] && static_cast<uint64_t>(stop[i]) <= arena.rows();
    need(fits, "stops", "an image is not inside the arena");
    num_bytes += static_cast<size_t>(stop[i] - start[i]);
  }
  NewArray formats(DType::kInt8, {rows}), widths(DType::kInt64, {rows}), heights(DType::kInt64, {rows});
  NewArray orientations(DType::kInt8, {rows}), scans(DType::kInt64, {rows});
  {
    const Unlocked unlocked(rows * 200 + num_bytes);  // a hostile header is as long as its file
    for (size_t i = 0; i < rows; i++) {
      const ImageHeader header =
          read_image_header(Span{arena.data + start[i], static_cast<size_t>(stop[i] - start[i])});
      formats.as<int8_t>()[i] = static_cast<int8_t>(header.format);
      widths.as<int64_t>()[i] = header.width;
      heights.as<int64_t>()[i] = header.height;
      orientations.as<int8_t>()[i] = header.orientation;
      scans.as<int64_t>()[i] = header.scans;
    }
  }
  return nb::make_tuple(formats.object, widths.object, heights.object, orientations.object, scans.object);
}

ImageHeader read_one_header(nb::handle given) {
  const BytesView bytes(given);
  const Unlocked unlocked(bytes.span().size);
  return read_image_header(bytes.span());
}

// Pixels that Python allocated: rows any distance apart, pixels of a row contiguous.
class Target {
 public:
  Target(nb::handle given, size_t height, size_t width, size_t channels) {
    constexpr int kFlags = PyBUF_STRIDES | PyBUF_WRITABLE | PyBUF_FORMAT;
    if (PyObject_GetBuffer(given.ptr(), &view_, kFlags) != 0) throw nb::python_error();
    const auto side = [&](int i) { return static_cast<size_t>(view_.shape[i]); };
    const bool is_bytes = view_.itemsize == 1 && view_.format != nullptr && std::string(view_.format) == "B";
    if (!is_bytes || view_.ndim != 3 || side(0) != height || side(1) != width || side(2) != channels ||
        view_.strides[2] != 1 || view_.strides[1] != static_cast<Py_ssize_t>(channels) ||
        (height > 1 && std::abs(view_.strides[0]) < static_cast<Py_ssize_t>(width * channels))) {
      PyBuffer_Release(&view_);
      need(false, "out",
           "expected uint8 of shape (" + std::to_string(height) + ", " + std::to_string(width) + ", " +
               std::to_string(channels) + ") with pixels side by side, and rows that do not overlap");
    }
  }
  ~Target() { PyBuffer_Release(&view_); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  uint8_t* data() const { return static_cast<uint8_t*>(view_.buf); }
  ptrdiff_t row_bytes() const { return view_.strides[0]; }

 private:
  Py_buffer view_;
};

void refuse(const std::string& fault) {
  if (!fault.empty()) throw nb::value_error(fault.c_str());
}

nb::object read_png(nb::handle given, nb::handle out, unsigned channels, uint64_t max_pixels) {
  need(channels == 1 || channels == 3 || channels == 4, "channels", "expected 1, 3 or 4");
  const BytesView bytes(given);
  PngLayout layout;
  std::string unfit;
  {
    const Unlocked unlocked(bytes.span().size / kChunkBytes * kChunkNanoseconds);
    unfit = read_layout(bytes.span(), std::min(max_pixels, kMostPixels), layout);
    if (unfit.empty()) unfit = check_stream(layout);
  }
  refuse(unfit);
  const auto fill = [&](uint8_t* pixels, ptrdiff_t row_bytes) {
    std::string fault;
    {
      const Unlocked unlocked(static_cast<size_t>(inflated_bytes(layout)) * 3);
      fault = read_pixels(layout, channels, pixels, row_bytes);
    }
    refuse(fault);
  };
  if (!out.is_none()) {
    const Target target(out, layout.height, layout.width, channels);
    fill(target.data(), target.row_bytes());
    return nb::borrow(out);
  }
  NewArray made(DType::kUInt8, {layout.height, layout.width, channels});
  fill(made.data, static_cast<ptrdiff_t>(layout.width) * channels);
  return made.object;
}

nb::object tidy(nb::handle given) {
  const BytesView bytes(given);
  std::vector<uint8_t> out;
  bool is_changed = false;
  {
    const nb::gil_scoped_release unlocked;
    is_changed = tidy_jpeg(bytes.span(), out);
  }
  return is_changed ? nb::bytes(reinterpret_cast<const char*>(out.data()), out.size()) : nb::object(nb::none());
}

bool has_end(nb::handle given) {
  const BytesView bytes(given);
  const nb::gil_scoped_release unlocked;
  return has_jpeg_end(bytes.span());
}

// A zlib stream that must give `size` bytes; without room to spare, so that tests reach the end with care.
nb::object inflate(nb::handle given, size_t size, size_t slack) {
  const BytesView bytes(given);
  need(size / kMostInflation <= bytes.span().size, "size", "expected fewer bytes than no stream of this size can give");
  need(slack <= kMostSlack, "slack", "expected at most " + std::to_string(kMostSlack) + " bytes");
  Buffer room(size + slack);
  InflateFault fault;
  {
    const Unlocked unlocked(size * 2);
    fault = inflate_zlib(bytes.span(), room.data(), size, size + slack);
  }
  if (fault != InflateFault::kNone) throw nb::value_error((std::string("the stream ") + words_of(fault)).c_str());
  return nb::bytes(reinterpret_cast<const char*>(room.data()), size);
}

}  // namespace

void bind_images(nb::module_& m) {
  nb::class_<ImageHeader>(m, "ImageHeader")
      .def_prop_ro("format", [](const ImageHeader& self) { return static_cast<int>(self.format); })
      .def_ro("width", &ImageHeader::width)
      .def_ro("height", &ImageHeader::height)
      .def_ro("orientation", &ImageHeader::orientation)
      .def_ro("scans", &ImageHeader::scans);
  m.def("read_image_header", &read_one_header, "data"_a);
  m.def("read_image_headers", &read_image_headers, "arena"_a, "starts"_a, "stops"_a);
  m.def("tidy_jpeg", &tidy, "data"_a);
  m.def("has_jpeg_end", &has_end, "data"_a);
  m.def("read_png", &read_png, "data"_a, "out"_a.none(), "channels"_a, "max_pixels"_a);
  m.def("inflate", &inflate, "stream"_a, "size"_a, "slack"_a = 0);
}

}  // namespace penstock
