// What Python sees of the images of a slice: a plan of all of them, and one call for each that a decoder outside the
// core has decoded. See src/penstock/_native.pyi.
#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "bind/pixel_arrays.h"
#include "image/image_plan.h"

using namespace nb::literals;

namespace penstock {
namespace {

// libjpeg-turbo bypasses the cache where rows begin at multiples of 32 bytes, and the next reader waits for memory:
// 224 x 224 pixels took 235 µs; half a vector further on they took 193 µs, and 18 µs for the copy.
constexpr size_t kVectorBytes = 32;
using Clock = std::chrono::steady_clock;
constexpr auto kShortTime = std::chrono::microseconds(20);
constexpr size_t kLongBytes = size_t{1} << 20;
// Decoded pixels that wait to be placed: three photos of 500 x 375. With second-level caches of 1 MiB, two or three
// took no longer than one, four 1.5 % and twenty 3 % more.
constexpr size_t kMostWaitingBytes = size_t{1792} << 10;

ImageRules rules_of(nb::handle given) {
  const nb::tuple parts = tuple_of(given, 10, "rules");
  ImageRules rules{};
  rules.channels = value_of<size_t>(parts[0], "channels");
  check_channels(rules.channels, "channels");
  rules.formats = value_of<uint32_t>(parts[1], "formats");
  rules.max_pixels = value_of<uint64_t>(parts[2], "max_pixels");
  rules.orients = value_of<bool>(parts[3], "orient");
  rules.size = {value_of<size_t>(parts[4], "height"), value_of<size_t>(parts[5], "width")};
  need(rules.size.height != 0 && rules.size.height <= kLongestSide && rules.size.width != 0 &&
           rules.size.width <= kLongestSide,
       "size", "expected sides of 1 to " + std::to_string(kLongestSide) + " pixels");
  const auto resizing = value_of<uint8_t>(parts[6], "resizing");
  need(resizing <= static_cast<uint8_t>(Resizing::kCrop), "resizing", "expected 0, 1 or 2");
  rules.resizing = static_cast<Resizing>(resizing);
  rules.antialias = value_of<bool>(parts[7], "antialias");
  rules.drafts = value_of<bool>(parts[8], "draft");
  const ArrayView fill = vector_of(parts[9], "fill", {DType::kUInt8});
  need(fill.rows() == rules.channels, "fill", "expected one number per channel");
  std::memcpy(rules.fill, fill.data, rules.channels);
  return rules;
}

class ImagePlan {
 public:
  ImagePlan(nb::handle rules, nb::handle held, nb::handle encoded, nb::handle present, nb::handle crop, bool is_whole)
      : rules_(rules_of(rules)), is_whole_(is_whole) {
    read_held(held);
    read_encoded(encoded);
    const size_t rows = images_.size();
    const uint8_t* const is_present = mask_of(present, rows, "present");
    for (size_t i = 0; i < rows; i++) {
      Image& image = images_[i];
      image.is_absent = is_present != nullptr && is_present[i] == 0;
      need(image.is_absent || image.is_held() || has_encoded_, "images", "a row is neither cached nor encoded");
    }
    std::optional<DrawArguments> draws;
    std::optional<RandomCrop> crops;
    if (!crop.is_none()) {
      const nb::tuple parts = tuple_of(crop, 2, "crop");
      draws.emplace(parts[0], rows, 1);
      crops = crops_of(parts[1]);
    }
    // Most headers take some 0.2 µs; a hostile one is as long as its file.
    Unlocked unlocked(0);
    const auto begin = Clock::now();
    for (size_t i = 0; i < rows; i++) {
      Image& image = images_[i];
      if (image.is_absent) continue;
      if (image.planned.data.size > kLongBytes || Clock::now() - begin > kShortTime) unlocked.unlock();
      if (!image.is_held()) image.planned = plan_image(image.planned.data, rules_);
      if (image.planned.fault != ImageFault::kNone) continue;
      image.planned.frame = make_frame(image.planned.size, image.planned.size, Resizing::kStretch);
      if (is_whole || (image.is_held() && !crops)) continue;  // as it is
      double numbers[RandomCrop::kNumNumbers];
      image.planned.frame = make_frame(image.planned.size, rules_.size, rules_.resizing);
      if (crops) {
        draws->keys.draw_uniform(draws->purposes[0], i, RandomCrop::kNumNumbers, numbers);
        image.planned.frame.box = crops->crop(image.planned.size, numbers);
      }
      const bool is_draft = rules_.drafts && image.planned.header.format == ImageFormat::kJpeg;
      if (is_draft) image.planned.denominator = choose_draft(image.planned.frame);
    }
  }

  ImagePlan(const ImagePlan&) = delete;
  ImagePlan& operator=(const ImagePlan&) = delete;

  size_t num_rows() const { return images_.size(); }

  // (row, number of the fault)
  nb::list faults() const {
    nb::list found;
    for (size_t i = 0; i < images_.size(); i++) {
      const ImageFault fault = images_[i].planned.fault;
      if (fault != ImageFault::kNone) found.append(nb::make_tuple(i, static_cast<int>(fault)));
    }
    return found;
  }

  nb::tuple header(size_t row) const {
    const PlannedImage& planned = image_at(row).planned;
    const ImageHeader& header = planned.header;
    return nb::make_tuple(static_cast<int>(header.format), header.height, header.width, header.scans, start_of(planned),
                          start_of(planned) + planned.data.size);
  }

  nb::tuple frame(size_t row) const {
    const PlannedImage& planned = image_at(row).planned;
    const Box& box = planned.frame.box;
    const Window& window = planned.frame.window;
    return nb::make_tuple(nb::make_tuple(box.top, box.left, box.height, box.width),
                          nb::make_tuple(window.top, window.left, window.height, window.width), planned.denominator);
  }

  // The size of the slot of a row, or None if it needs none.
  nb::object slot_size(size_t row) const {
    const Image& image = image_at(row);
    if (image.is_absent || image.planned.fault != ImageFault::kNone) return nb::none();
    const ImageSize size = size_of_slot(image);
    return nb::make_tuple(size.height, size.width);
  }

  // Whether an image needs a decoder of JPEG.
  bool has_jpegs() const {
    for (const Image& image : images_) {
      if (is_encoded(image) && image.planned.header.format == ImageFormat::kJpeg) return true;
    }
    return false;
  }

  // Fills the slots of all images that it can. Returns (row, fault) of damaged PNGs; and JPEGs that
  // `decode` refused, as well as images of other formats, for the caller to decode and place.
  nb::tuple decode(nb::handle slots, nb::handle decode, nb::handle space) {
    bind(slots);
    const nb::list damaged = draw();
    const nb::list refused = decode_jpegs(slots, decode, space);
    nb::list others;
    for (size_t i = 0; i < images_.size(); i++) {
      const Image& image = images_[i];
      const ImageFormat format = image.planned.header.format;
      const bool is_other = format != ImageFormat::kPng && format != ImageFormat::kJpeg;
      if (is_encoded(image) && image.slot != nullptr && is_other) others.append(describe(i));
    }
    return nb::make_tuple(damaged, refused, others);
  }

  // False if the pixels do not have the size in the header of the image.
  bool place(size_t row, nb::handle given) {
    const Image& image = image_at(row);
    need(is_encoded(image) && image.slot != nullptr, "row", "expected the row of an encoded image with a slot");
    const uint8_t* const pixels = check_decoded(image, given);
    if (pixels == nullptr) return false;
    std::vector<Decoded> decoded;
    if (!is_in_slot(image, pixels)) decoded.push_back({row, nb::borrow(given), pixels});
    place_all(decoded);
    return true;
  }

 private:
  struct Image {
    PlannedImage planned;
    nb::object array;                 // pixels that a cache holds, kept alive
    const uint8_t* pixels = nullptr;  // of that array
    uint8_t* slot = nullptr;          // where the pixels go; null for a row that is left out
    bool is_absent = false;

    bool is_held() const { return pixels != nullptr; }
  };

  void bind(nb::handle slots) {
    targets_.clear();
    for (Image& image : images_) image.slot = nullptr;
    if (PyList_Check(slots.ptr())) bind_list(nb::cast<nb::list>(slots));
    else bind_array(slots);
  }

  // Those that need no decoder outside the core: images that a cache holds, rows without an image, and PNGs.
  nb::list draw() {
    std::vector<std::pair<size_t, std::string>> damaged;
    {
      const Unlocked unlocked(count_drawn_bytes() / 4);
      for (size_t i = 0; i < images_.size(); i++) {
        const Image& image = images_[i];
        if (image.slot == nullptr) continue;
        if (image.is_absent) {
          fill_pixels(slot_of(image), rules_.channels, rules_.fill);
        } else if (image.is_held()) {
          const ImageSize size = image.planned.size;
          const auto stride = static_cast<ptrdiff_t>(size.width * rules_.channels);
          place_pixels({image.pixels, stride, size.height, size.width}, image.planned, rules_, slot_of(image));
        } else if (is_encoded(image) && image.planned.header.format == ImageFormat::kPng) {
          std::string fault = place_png(image.planned, rules_, slot_of(image));
          if (!fault.empty()) damaged.emplace_back(i, std::move(fault));
        }
      }
    }
    nb::list found;
    for (const auto& [row, fault] : damaged) found.append(nb::make_tuple(row, fault.c_str()));
    return found;
  }

  // Pixels that a decoder has made, on their way to the slot of a row.
  struct Decoded {
    size_t row;
    nb::object array;  // keeps the pixels alive
    const uint8_t* pixels;
  };

  // One that `decode` refuses with a ValueError is returned. The pixels of some images are placed together, for every
  // release of the lock is one more wait for it; of few, so that they are still in the cache of the processor.
  nb::list decode_jpegs(nb::handle slots, nb::handle decode, nb::handle space) {
    nb::list refused;
    size_t num_jpegs = 0, most_bytes = 0, all_bytes = 0;
    for (const Image& image : images_) {
      if (!is_jpeg(image)) continue;
      num_jpegs++;
      if (is_decoded_in_slot(image)) continue;
      most_bytes = std::max(most_bytes, image.planned.decoded_bytes(rules_.channels));
      all_bytes += room_for(image.planned);
    }
    if (num_jpegs == 0) return refused;
    const size_t room_bytes = std::max(most_bytes, std::min(all_bytes, kMostWaitingBytes)) + kVectorBytes;
    const NewArray room(DType::kUInt8, {room_bytes});
    const nb::object waiting_room = memory_of(room.object), data = memory_of(arena_);
    std::vector<Decoded> waiting;
    size_t used = 0;
    for (size_t i = 0; i < images_.size(); i++) {
      const Image& image = images_[i];
      if (!is_jpeg(image)) continue;
      const PlannedImage& planned = image.planned;
      const bool is_direct = is_decoded_in_slot(image);
      const size_t num_bytes = planned.decoded_bytes(rules_.channels);
      if (!is_direct && used + num_bytes > room_bytes - kVectorBytes) {
        place_all(waiting);
        used = 0;
      }
      const size_t at = used + kVectorBytes / 2;
      const nb::object buffer =
          is_direct ? nb::object(nb::borrow(slots)[i]) : slice_of(waiting_room, at, at + num_bytes);
      const size_t start = start_of(planned);
      nb::object pixels = call_decoder(decode, slice_of(data, start, start + planned.data.size), space,
                                       planned.decoded_size(), planned.denominator, buffer);
      const uint8_t* const decoded = pixels.is_valid() ? check_decoded(image, pixels) : nullptr;
      if (decoded == nullptr) {
        refused.append(describe(i));
      } else if (!is_in_slot(image, decoded)) {
        waiting.push_back({i, std::move(pixels), decoded});
        if (!is_direct) used += room_for(planned);
      }
    }
    place_all(waiting);
    return refused;
  }

  // The pixels of an array, which has the size in the header of the image; null if it has another.
  const uint8_t* check_decoded(const Image& image, nb::handle given) const {
    const ArrayView pixels = view_of(given, "pixels", {DType::kUInt8});
    need(pixels.rank == 3 && pixels.shape(2) == rules_.channels, "pixels", "expected (height, width, channels)");
    const ImageSize size = image.planned.decoded_size();
    if (pixels.shape(0) != size.height || pixels.shape(1) != size.width) return nullptr;
    need(is_in_slot(image, pixels.data) ||
             !overlap(pixels.data, image.planned.decoded_bytes(rules_.channels), image.slot, slot_bytes(image)),
         "pixels", "they overlap the slot");
    return pixels.data;
  }

  // Whether pixels were decoded where they belong.
  bool is_in_slot(const Image& image, const uint8_t* pixels) const {
    return pixels == image.slot && image.planned.is_copied_to(size_of_slot(image));
  }

  // Turns, crops and resizes pixels, and forgets them.
  void place_all(std::vector<Decoded>& decoded) const {
    size_t num_bytes = 0;
    for (const Decoded& each : decoded) {
      num_bytes += images_[each.row].planned.decoded_bytes(rules_.channels) + slot_bytes(images_[each.row]);
    }
    {
      const Unlocked unlocked(num_bytes / 8);
      for (const Decoded& each : decoded) {
        const Image& image = images_[each.row];
        const ImageSize size = image.planned.decoded_size();
        const auto stride = static_cast<ptrdiff_t>(size.width * rules_.channels);
        place_pixels({each.pixels, stride, size.height, size.width}, image.planned, rules_, slot_of(image));
      }
    }
    decoded.clear();
  }

  // What `decode(data, space, fastdct, fastupsample, height, width, denominator, buffer, strict)` returns; nothing
  // where it raises a ValueError.
  static nb::object call_decoder(nb::handle decode, const nb::object& data, nb::handle space, ImageSize size,
                                 unsigned denominator, const nb::object& buffer) {
    const nb::object height = nb::cast(size.height), width = nb::cast(size.width), factor = nb::cast(denominator);
    PyObject* const arguments[] = {data.ptr(),  space.ptr(),  Py_False,     Py_False, height.ptr(),
                                   width.ptr(), factor.ptr(), buffer.ptr(), Py_True};
    nb::object made =
        nb::steal(PyObject_Vectorcall(decode.ptr(), arguments, sizeof arguments / sizeof *arguments, nullptr));
    if (made.is_valid()) return made;
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw nb::python_error();
    PyErr_Clear();
    return made;
  }

  static nb::object memory_of(const nb::object& array) {
    nb::object view = nb::steal(PyMemoryView_FromObject(array.ptr()));
    if (!view.is_valid()) throw nb::python_error();
    return view;
  }

  static nb::object slice_of(const nb::object& whole, size_t start, size_t stop) {
    const nb::object from = nb::cast(start), to = nb::cast(stop);
    const nb::object range = nb::steal(PySlice_New(from.ptr(), to.ptr(), nullptr));
    if (!range.is_valid()) throw nb::python_error();
    nb::object part = nb::steal(PyObject_GetItem(whole.ptr(), range.ptr()));
    if (!part.is_valid()) throw nb::python_error();
    return part;
  }

  // For a decoder outside the core: row, start, stop, format, height and width of the decoded pixels, denominator,
  // whether it is progressive.
  nb::tuple describe(size_t row) const {
    const PlannedImage& planned = images_[row].planned;
    const ImageSize size = planned.decoded_size();
    const size_t start = start_of(planned);
    return nb::make_tuple(row, start, start + planned.data.size, static_cast<int>(planned.header.format), size.height,
                          size.width, planned.denominator, planned.header.scans > 0);
  }

  static RandomCrop crops_of(nb::handle given) {
    const nb::tuple ranges = tuple_of(given, 4, "ranges");
    double range[4];
    for (size_t i = 0; i < 4; i++) range[i] = value_of<double>(ranges[i], "ranges");
    need(range[0] > 0 && range[0] <= range[1] && range[1] <= 1 && range[2] > 0 && range[2] <= range[3] &&
             range[3] <= 1000,
         "ranges", "expected 0 < least <= greatest <= 1 for the area, and <= 1000 for the aspect ratio");
    return RandomCrop(range[0], range[1], range[2], range[3]);
  }

  void read_held(nb::handle held) {
    if (held.is_none()) return;
    const nb::list arrays = value_of<nb::list>(held, "images");
    images_.resize(nb::len(arrays));
    for (size_t i = 0; i < images_.size(); i++) {
      const nb::handle given = arrays[i];
      if (given.is_none()) continue;
      const ArrayView view = view_of(given, "images", {DType::kUInt8});
      need(view.rank == 3 && view.shape(2) == rules_.channels && view.shape(0) != 0 && view.shape(1) != 0 &&
               view.shape(0) <= kLongestSide && view.shape(1) <= kLongestSide,
           "images", "expected (height, width, channels) with one pixel or more");
      Image& image = images_[i];
      image.array = nb::borrow(given);
      image.pixels = view.data;
      image.planned.size = {view.shape(0), view.shape(1)};
      image.planned.header.height = static_cast<int64_t>(view.shape(0));
      image.planned.header.width = static_cast<int64_t>(view.shape(1));
    }
  }

  void read_encoded(nb::handle encoded) {
    has_encoded_ = !encoded.is_none();
    if (!has_encoded_) return;
    const nb::tuple parts = tuple_of(encoded, 3, "encoded");
    const ArrayView arena = vector_of(parts[0], "arena", {DType::kUInt8});
    const ArrayView starts = vector_of(parts[1], "starts", {DType::kInt64});
    const ArrayView stops = vector_of(parts[2], "stops", {DType::kInt64});
    need(stops.rows() == starts.rows(), "stops", "expected as many as starts");
    need(images_.empty() || images_.size() == starts.rows(), "starts", "expected one for each of the images");
    images_.resize(starts.rows());
    arena_ = nb::borrow(parts[0]);
    bytes_ = arena.data;
    for (size_t i = 0; i < images_.size(); i++) {
      const int64_t start = starts.as<int64_t>()[i], stop = stops.as<int64_t>()[i];
      const bool fits = start >= 0 && start <= stop && static_cast<uint64_t>(stop) <= arena.rows();
      need(fits, "stops", "an image is not inside the arena");
      images_[i].planned.data = Span{arena.data + start, static_cast<size_t>(stop - start)};
    }
  }

  void bind_array(nb::handle slots) {
    const Bytes& target = targets_.emplace_back(slots, "slots", 4, true);
    need(target.is_contiguous() && target.shape(0) == images_.size() && target.shape(3) == rules_.channels, "slots",
         "expected a C-contiguous array (rows, height, width, channels)");
    const ImageSize size{target.shape(1), target.shape(2)};
    for (size_t i = 0; i < images_.size(); i++) {
      if (images_[i].planned.fault != ImageFault::kNone) continue;
      check_slot(images_[i], size);
      images_[i].slot = target.data() + i * size.height * size.width * rules_.channels;
    }
  }

  void bind_list(const nb::list& slots) {
    need(nb::len(slots) == images_.size(), "slots", "expected one for each row");
    targets_.reserve(images_.size());
    for (size_t i = 0; i < images_.size(); i++) {
      const nb::handle given = slots[i];
      if (given.is_none() || images_[i].planned.fault != ImageFault::kNone) continue;
      const Bytes& target = targets_.emplace_back(given, "slots", 3, true);
      need(target.is_contiguous() && target.shape(2) == rules_.channels, "slots",
           "expected C-contiguous arrays (height, width, channels)");
      check_slot(images_[i], {target.shape(0), target.shape(1)});
      images_[i].slot = target.data();
    }
  }

  void check_slot(const Image& image, ImageSize size) const {
    const ImageSize wanted = size_of_slot(image);
    if (size == wanted) return;
    need(false, "slots",
         "expected " + std::to_string(wanted.height) + " x " + std::to_string(wanted.width) + " pixels, got " +
             std::to_string(size.height) + " x " + std::to_string(size.width));
  }

  ImageSize size_of_slot(const Image& image) const {
    const Window& window = image.planned.frame.window;
    const bool is_own = is_whole_ && !image.is_absent;
    return is_own ? ImageSize{window.height, window.width} : rules_.size;
  }
  Rows<uint8_t> slot_of(const Image& image) const {
    const ImageSize size = size_of_slot(image);
    return {image.slot, static_cast<ptrdiff_t>(size.width * rules_.channels), size.height, size.width};
  }
  bool is_encoded(const Image& image) const {
    return !image.is_absent && !image.is_held() && image.planned.fault == ImageFault::kNone;
  }
  bool is_jpeg(const Image& image) const {
    return is_encoded(image) && image.slot != nullptr && image.planned.header.format == ImageFormat::kJpeg;
  }
  // Whether a JPEG is decoded right where it belongs.
  bool is_decoded_in_slot(const Image& image) const {
    const PlannedImage& planned = image.planned;
    return planned.is_copied_to(size_of_slot(image)) && planned.size.width * rules_.channels % kVectorBytes != 0;
  }
  size_t slot_bytes(const Image& image) const {
    const ImageSize size = size_of_slot(image);
    return size.height * size.width * rules_.channels;
  }
  // The pixels of the next image begin half a vector after a multiple of a vector, as these do.
  size_t room_for(const PlannedImage& planned) const {
    return (planned.decoded_bytes(rules_.channels) + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }
  size_t start_of(const PlannedImage& planned) const {
    return planned.data.data == nullptr ? 0 : static_cast<size_t>(planned.data.data - bytes_);
  }
  const Image& image_at(size_t row) const {
    need(row < images_.size(), "row", "expected the row of an image");
    return images_[row];
  }
  size_t count_drawn_bytes() const {
    size_t num_bytes = 0;
    for (const Image& image : images_) {
      const bool is_drawn = image.is_absent || image.is_held() || image.planned.header.format == ImageFormat::kPng;
      if (image.slot == nullptr || !is_drawn) continue;
      num_bytes += (image.planned.size.height * image.planned.size.width + rules_.size.height * rules_.size.width) * 3;
    }
    return num_bytes;
  }

  const ImageRules rules_;
  const bool is_whole_;
  bool has_encoded_ = false;
  std::vector<Image> images_;
  nb::object arena_;
  const uint8_t* bytes_ = nullptr;
  std::vector<Bytes> targets_;
};

}  // namespace

void bind_image_plan(nb::module_& m) {
  m.attr("LONGEST_SIDE") = kLongestSide;
  m.attr("MOST_SCANS") = kMostScans;
  nb::list drafts;
  for (const unsigned denominator : kDrafts) drafts.append(denominator);
  m.attr("DRAFTS") = nb::tuple(drafts);
  m.attr("DRAFT_MARGIN") = kDraftMargin;
  nb::class_<ImagePlan>(m, "ImagePlan")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, bool>(), "rules"_a, "images"_a.none(),
           "encoded"_a.none(), "present"_a.none(), "crop"_a.none(), "is_whole"_a)
      .def("__len__", &ImagePlan::num_rows)
      .def("faults", &ImagePlan::faults)
      .def("header", &ImagePlan::header, "row"_a)
      .def("frame", &ImagePlan::frame, "row"_a)
      .def("slot_size", &ImagePlan::slot_size, "row"_a)
      .def_prop_ro("has_jpegs", &ImagePlan::has_jpegs)
      .def("decode", &ImagePlan::decode, "slots"_a, "decode"_a.none(), "space"_a)
      .def("place", &ImagePlan::place, "row"_a, "pixels"_a);
}

}  // namespace penstock
