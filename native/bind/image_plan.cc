// What Python sees of the images of a slice: a plan of all of them, and one call for each that a decoder outside the
// core has decoded. See src/penstock/_native.pyi.
#include <optional>
#include <vector>

#include "bind/pixel_arrays.h"
#include "image/image_plan.h"

using namespace nb::literals;

namespace penstock {
namespace {

constexpr size_t kVectorBytes = 32;

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
    size_t num_bytes = 0;
    for (size_t i = 0; i < rows; i++) {
      Image& image = images_[i];
      image.is_absent = is_present != nullptr && is_present[i] == 0;
      need(image.is_absent || image.is_held() || has_encoded_, "images", "a row is neither cached nor encoded");
      num_bytes += image.is_held() ? 0 : image.planned.data.size;
    }
    std::optional<DrawArguments> draws;
    std::optional<RandomCrop> crops;
    if (!crop.is_none()) {
      const nb::tuple parts = tuple_of(crop, 2, "crop");
      draws.emplace(parts[0], rows, 1);
      crops = crops_of(parts[1]);
    }
    const Unlocked unlocked(rows * 300 + num_bytes);  // a hostile header is as long as its file
    for (size_t i = 0; i < rows; i++) {
      Image& image = images_[i];
      if (image.is_absent) continue;
      if (!image.is_held()) image.planned = plan_image(image.planned.data, rules_);
      if (image.planned.fault != ImageFault::kNone) continue;
      image.planned.frame = make_whole(image.planned.size);
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

  // Returns the images that are decoded outside the core: JPEGs, and those of other formats.
  nb::tuple bind(nb::handle slots) {
    targets_.clear();
    for (Image& image : images_) image.slot = nullptr;
    if (PyList_Check(slots.ptr())) bind_list(nb::cast<nb::list>(slots));
    else bind_array(slots);
    nb::list jpegs, others;
    for (size_t i = 0; i < images_.size(); i++) {
      const Image& image = images_[i];
      if (!is_encoded(image) || image.slot == nullptr) continue;
      const PlannedImage& planned = image.planned;
      const size_t start = start_of(planned), stop = start + planned.data.size;
      const ImageSize size = planned.decoded_size();
      if (planned.header.format == ImageFormat::kJpeg) {
        const size_t row_bytes = size.width * rules_.channels;
        // libjpeg-turbo bypasses the cache where rows begin at multiples of 32 bytes: see decode/jpeg.py.
        const bool is_direct = planned.is_copied_to(size_of_slot(image)) && row_bytes % kVectorBytes != 0;
        jpegs.append(nb::make_tuple(i, start, stop, size.height, size.width, planned.denominator,
                                    size.height * row_bytes, planned.header.scans > 0, is_direct));
      } else if (planned.header.format != ImageFormat::kPng) {
        others.append(nb::make_tuple(i, start, stop, static_cast<int>(planned.header.format), size.height, size.width));
      }
    }
    return nb::make_tuple(jpegs, others);
  }

  // Fills the slots of all images that need no decoder outside the core: those that a cache holds, rows without an
  // image, and PNGs. Returns (row, what is wrong with it) of damaged ones.
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

  // False if the pixels do not have the size in the header of the image.
  bool place(size_t row, nb::handle given) {
    const Image& image = image_at(row);
    need(is_encoded(image) && image.slot != nullptr, "row", "expected that of an encoded image with a slot");
    const ArrayView pixels = view_of(given, "pixels", {DType::kUInt8});
    need(pixels.rank == 3 && pixels.shape(2) == rules_.channels, "pixels", "expected (height, width, channels)");
    const ImageSize size = image.planned.decoded_size();
    if (pixels.shape(0) != size.height || pixels.shape(1) != size.width) return false;
    const ImageSize slot = size_of_slot(image);
    if (pixels.data == image.slot && image.planned.is_copied_to(slot)) return true;  // they were decoded there
    const size_t num_bytes = size.height * size.width * rules_.channels;
    const size_t slot_bytes = slot.height * slot.width * rules_.channels;
    need(!overlap(pixels.data, num_bytes, image.slot, slot_bytes), "pixels", "they overlap the slot");
    const Unlocked unlocked((num_bytes + slot_bytes) / 8);
    const auto stride = static_cast<ptrdiff_t>(size.width * rules_.channels);
    place_pixels({pixels.data, stride, size.height, size.width}, image.planned, rules_, slot_of(image));
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

  static Frame make_whole(ImageSize size) {
    return {{0.0, 0.0, static_cast<double>(size.height), static_cast<double>(size.width)},
            {0, 0, size.height, size.width}};
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
  size_t start_of(const PlannedImage& planned) const {
    return planned.data.data == nullptr ? 0 : static_cast<size_t>(planned.data.data - bytes_);
  }
  const Image& image_at(size_t row) const {
    need(row < images_.size(), "row", "expected that of an image");
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
      .def("bind", &ImagePlan::bind, "slots"_a)
      .def("draw", &ImagePlan::draw)
      .def("place", &ImagePlan::place, "row"_a, "pixels"_a);
}

}  // namespace penstock
