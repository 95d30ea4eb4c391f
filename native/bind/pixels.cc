// What Python sees of the kernels for images: checks of the pixels that come in. See src/penstock/_native.pyi.
#include <cmath>
#include <string>

#include "bind/arguments.h"
#include "bind/pixel_arrays.h"
#include "image/augment.h"
#include "image/colour.h"
#include "image/image_header.h"
#include "image/resize.h"

using namespace nb::literals;

namespace penstock {
namespace {

// One image of (height, width, channels), whose rows may lie apart.
struct ImageView {
  Bytes bytes;
  size_t channels;

  ImageView(nb::handle given, const char* what, bool is_written)
      : bytes(given, what, 3, is_written), channels(bytes.shape(2)) {
    check_channels(channels, what);
    need(height() != 0 && width() != 0, what, "expected one pixel or more, got none");
    need(height() <= kLongestSide && width() <= kLongestSide, what,
         "expected sides of at most " + std::to_string(kLongestSide) + " pixels");
    const auto pixel = static_cast<ptrdiff_t>(channels);
    need((channels == 1 || bytes.stride(2) == 1) && (width() == 1 || bytes.stride(1) == pixel), what,
         "expected pixels that lie side by side in a row");
    need(height() == 1 || std::abs(bytes.stride(0)) >= static_cast<ptrdiff_t>(width()) * pixel, what,
         "expected rows that do not overlap");
  }
  size_t height() const { return bytes.shape(0); }
  size_t width() const { return bytes.shape(1); }
  template <typename Byte>
  Rows<Byte> rows() const {
    return {bytes.data(), height() == 1 ? 0 : bytes.stride(0), height(), width()};
  }
  bool overlaps(const ImageView& other) const {
    const auto span = [](const ImageView& image) {
      const Rows<const uint8_t> all = image.rows<const uint8_t>();
      const uint8_t *first = all.row(0), *last = all.row(all.height - 1);
      const uint8_t* const low = first < last ? first : last;
      return Span{low, static_cast<size_t>((first < last ? last : first) - low) + all.width * image.channels};
    };
    const Span a = span(*this), b = span(other);
    return overlap(a.data, a.size, b.data, b.size);
  }
};

void need_shape(const ArrayView& view, const char* what, std::initializer_list<size_t> shape) {
  bool is_equal = view.rank == shape.size();
  std::string wanted;
  size_t i = 0;
  for (const size_t side : shape) {
    is_equal = is_equal && view.shape(i++) == side;
    wanted += (wanted.empty() ? "(" : ", ") + std::to_string(side);
  }
  if (!is_equal) need(false, what, "expected the shape " + wanted + (shape.size() == 1 ? ",)" : ")"));
}

// Boxes are computed with rounding errors, and may reach out by as little.
Box box_of(nb::handle given, size_t height, size_t width) {
  const nb::tuple parts = nb::cast<nb::tuple>(given);
  need(nb::len(parts) == 4, "box", "expected (top, left, height, width)");
  const Box box{nb::cast<double>(parts[0]), nb::cast<double>(parts[1]), nb::cast<double>(parts[2]),
                nb::cast<double>(parts[3])};
  constexpr double kRounding = 1e-6;
  const auto rows = static_cast<double>(height), columns = static_cast<double>(width);
  need(box.height > 0 && box.width > 0, "box", "expected a height and a width above 0");
  need(box.top >= 0 && box.left >= 0 && box.top < rows && box.left < columns &&
           box.top + box.height <= rows + kRounding && box.left + box.width <= columns + kRounding,
       "box",
       "it is not inside the source of " + std::to_string(height) + " rows and " + std::to_string(width) + " columns");
  return box;
}

void resize(nb::handle given, nb::handle target, nb::handle box, bool antialias, bool by_scalar) {
  const ImageView source(given, "source", false), out(target, "out", true);
  need(source.channels == out.channels, "out",
       "expected " + std::to_string(source.channels) + " channels as in source, got " + std::to_string(out.channels));
  need(!source.overlaps(out), "out", "it overlaps source");
  const Box part = box_of(box, source.height(), source.width());
  const nb::gil_scoped_release unlocked;
  resize_pixels(source.rows<const uint8_t>(), out.rows<uint8_t>(), source.channels, part, antialias, by_scalar);
}

void orient(nb::handle given, nb::handle target, int orientation) {
  const ImageView source(given, "source", false), out(target, "out", true);
  need(orientation >= 1 && orientation <= 8, "orientation", "expected 1 to 8, got " + std::to_string(orientation));
  const bool is_swapped = orientation >= 5;
  const size_t height = is_swapped ? source.width() : source.height();
  const size_t width = is_swapped ? source.height() : source.width();
  need(out.height() == height && out.width() == width && out.channels == source.channels, "out",
       "expected the shape (" + std::to_string(height) + ", " + std::to_string(width) + ", " +
           std::to_string(source.channels) + ")");
  need(!source.overlaps(out), "out", "it overlaps source");
  const nb::gil_scoped_release unlocked;
  orient_pixels(source.rows<const uint8_t>(), out.rows<uint8_t>(), source.channels, orientation);
}

// `given`: as many numbers as `out` has room for.
template <typename T, typename Number, size_t kCount>
void read_numbers(nb::handle given, const char* what, T (&out)[kCount]) {
  const nb::tuple numbers = tuple_of(given, kCount, what);
  for (size_t i = 0; i < kCount; i++) out[i] = static_cast<T>(value_of<Number>(numbers[i], what));
}

void augment(nb::handle given, nb::handle shares, nb::handle paint, nb::handle drawn, bool by_scalar) {
  const Batch batch(given, "images", true);
  const size_t num = batch.bytes.shape(0);
  double share[7];
  read_numbers<double, double>(shares, "changes", share);
  for (const double each : share) need(each >= 0 && each <= 1, "changes", "expected numbers from 0 to 1");
  Changes changes{share[0], share[1], share[2], share[3], share[4], share[5], share[6], {}};
  const ArrayView colour = view_of(paint, "colour", {DType::kUInt8});
  need_shape(colour, "colour", {batch.images.channels});
  std::memcpy(changes.colour, colour.data, batch.images.channels);
  const DrawArguments draws(drawn, num, 6);
  const uint16_t* const purposes = draws.purposes;
  const ChangePurposes each{purposes[0], purposes[1], purposes[2], purposes[3], purposes[4], purposes[5]};
  need(batch.images.height <= kLongestSide && batch.images.width <= kLongestSide, "images",
       "expected sides of at most " + std::to_string(kLongestSide) + " pixels");
  if (batch.images.num == 0) return;
  const Unlocked unlocked(batch.bytes.size() / 4);
  Augmenter(changes, each, draws.keys).augment(batch.images, by_scalar);
}

nb::object scale_pixels(nb::handle given, nb::handle factors, nb::handle terms, nb::handle target, bool by_scalar) {
  const Bytes images(given, "images", 0, false);
  need(images.rank() != 0 && images.rank() <= kMostRank, "images", "expected from 1 to 32 dimensions");
  need(images.is_contiguous(), "images", "expected a C-contiguous array");
  size_t shape[kMostRank];
  for (size_t i = 0; i < images.rank(); i++) shape[i] = images.shape(i);
  const size_t channels = shape[images.rank() - 1];
  const ArrayView factor = view_of(factors, "factor", {DType::kFloat32});
  const ArrayView offset = view_of(terms, "offset", {DType::kFloat32});
  need_shape(factor, "factor", {channels});
  need_shape(offset, "offset", {channels});
  nb::object made;
  float* out = nullptr;
  if (target.is_none()) {
    NewArray array(DType::kFloat32, shape, images.rank());
    out = array.as<float>();
    made = array.object;
  } else {
    const ArrayView view = view_of(target, "out", {DType::kFloat32});
    bool is_equal = view.rank == images.rank();
    for (size_t i = 0; is_equal && i < view.rank; i++) is_equal = view.shape(i) == shape[i];
    need(is_equal, "out", "expected the shape of images");
    need(view.is_writable, "out", "expected an array that may be written");
    need(!overlap(images.data(), images.size(), view.data, images.size() * sizeof(float)), "out", "it overlaps images");
    out = const_cast<float*>(view.as<float>());
    made = nb::borrow(target);
  }
  if (images.size() == 0) return made;
  Unlocked unlocked(images.size() / 4);
  scale_bytes(images.data(), images.size() / channels, channels, factor.as<float>(), offset.as<float>(), by_scalar,
              out);
  unlocked.relock();
  return made;
}

}  // namespace

void bind_pixels(nb::module_& m) {
  import_numpy();
  m.def("resize", &resize, "source"_a, "out"_a, "box"_a, "antialias"_a, "by_scalar"_a = false);
  m.def("orient", &orient, "source"_a, "out"_a, "orientation"_a);
  m.def("augment", &augment, "images"_a, "changes"_a, "colour"_a, "draws"_a, "by_scalar"_a = false);
  m.def("scale_pixels", &scale_pixels, "images"_a, "factor"_a, "offset"_a, "out"_a = nb::none(), "by_scalar"_a = false);
}

}  // namespace penstock
