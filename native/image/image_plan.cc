#include "image/image_plan.h"

#include <algorithm>

#include "foundation/pool.h"
#include "image/pixels.h"
#include "image/png.h"

namespace penstock {
namespace {

constexpr int8_t kFirstSwapped = 5;  // EXIF orientations from here on swap the sides

ImageFault judge(const ImageHeader& header, const ImageRules& rules) {
  if (header.format == ImageFormat::kNone || (rules.formats >> static_cast<unsigned>(header.format) & 1) == 0) {
    return ImageFault::kFormat;
  }
  if (header.height == 0 || header.width == 0) return ImageFault::kNoSize;
  const auto height = static_cast<uint64_t>(header.height), width = static_cast<uint64_t>(header.width);
  if (height > rules.max_pixels / width) return ImageFault::kNumPixels;
  if (std::max(height, width) > kLongestSide) return ImageFault::kSide;
  return header.scans > kMostScans ? ImageFault::kScans : ImageFault::kNone;
}

Rows<uint8_t> contiguous_rows(uint8_t* data, ImageSize size, size_t channels) {
  return {data, static_cast<ptrdiff_t>(size.width * channels), size.height, size.width};
}

Rows<const uint8_t> constant(const Rows<uint8_t>& rows) { return {rows.data, rows.stride, rows.height, rows.width}; }

void copy_rows(const Rows<const uint8_t>& from, const Rows<uint8_t>& to, size_t channels) {
  if (from.data == to.data) return;
  for (size_t y = 0; y < to.height; y++) std::memcpy(to.row(y), from.row(y), to.width * channels);
}

// The part of the pixels that is the image. It is all of them, except that an image of a reduced size ends within the
// pixels of its last block, or begins within the pixels of its first block where it was mirrored.
Box area_of(const Rows<const uint8_t>& stored, const PlannedImage& planned) {
  const int orientation = planned.header.orientation;
  const auto tall = static_cast<double>(planned.header.height), wide = static_cast<double>(planned.header.width);
  const bool is_reduced = stored.height != static_cast<size_t>(planned.header.height) ||
                          stored.width != static_cast<size_t>(planned.header.width);
  const double height = is_reduced ? tall / planned.denominator : tall;
  const double width = is_reduced ? wide / planned.denominator : wide;
  const bool is_upside_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool is_mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const double top = is_upside_down ? static_cast<double>(stored.height) - height : 0.0;
  const double left = is_mirrored ? static_cast<double>(stored.width) - width : 0.0;
  if (orientation >= kFirstSwapped) return {left, top, width, height};
  return {top, left, height, width};
}

}  // namespace

PlannedImage plan_image(Span data, const ImageRules& rules) {
  PlannedImage planned;
  planned.data = data;
  planned.header = read_image_header(data);
  if (!rules.orients) planned.header.orientation = 1;
  planned.fault = judge(planned.header, rules);
  if (planned.fault != ImageFault::kNone) return planned;
  planned.size = {static_cast<size_t>(planned.header.height), static_cast<size_t>(planned.header.width)};
  if (planned.header.orientation >= kFirstSwapped) std::swap(planned.size.height, planned.size.width);
  return planned;
}

void fill_pixels(const Rows<uint8_t>& slot, size_t channels, const uint8_t* colour) {
  uint8_t* const first = slot.row(0);
  for (size_t x = 0; x < slot.width; x++) std::memcpy(first + x * channels, colour, channels);
  for (size_t y = 1; y < slot.height; y++) std::memcpy(slot.row(y), first, slot.width * channels);
}

void place_pixels(const Rows<const uint8_t>& pixels, const PlannedImage& planned, const ImageRules& rules,
                  const Rows<uint8_t>& slot) {
  const size_t channels = rules.channels;
  const Box area = area_of(pixels, planned);
  const Window& window = planned.frame.window;
  const bool fills_slot = planned.fills({slot.height, slot.width});
  Rows<const uint8_t> upright = pixels;
  Buffer turned;
  if (planned.header.orientation != 1) {
    ImageSize size{pixels.height, pixels.width};
    if (planned.header.orientation >= kFirstSwapped) std::swap(size.height, size.width);
    const bool is_final = planned.denominator == 1 && planned.is_whole() && fills_slot && size.height == slot.height &&
                          size.width == slot.width;
    if (!is_final) turned = Buffer(size.height * size.width * channels);
    const Rows<uint8_t> target = is_final ? slot : contiguous_rows(turned.data(), size, channels);
    orient_pixels(pixels, target, channels, planned.header.orientation);
    if (is_final) return;
    upright = constant(target);
  }
  Rows<uint8_t> target = slot;
  if (!fills_slot) {
    fill_pixels(slot, channels, rules.fill);
    target = {slot.row(window.top) + window.left * channels, slot.stride, window.height, window.width};
  }
  if (planned.denominator == 1 && planned.is_whole() && upright.height == target.height &&
      upright.width == target.width) {
    return copy_rows(upright, target, channels);
  }
  const Box& part = planned.frame.box;
  const double down = area.height / static_cast<double>(planned.size.height);
  const double across = area.width / static_cast<double>(planned.size.width);
  const Box box{area.top + part.top * down, area.left + part.left * across, part.height * down, part.width * across};
  resize_pixels(upright, target, channels, box, rules.antialias, false);
}

std::string place_png(const PlannedImage& planned, const ImageRules& rules, const Rows<uint8_t>& slot) {
  PngLayout layout;
  std::string fault = read_layout(planned.data, rules.max_pixels, layout);
  if (fault.empty()) fault = check_stream(layout);
  if (!fault.empty()) return fault;
  const ImageSize size = planned.decoded_size();
  if (layout.height != size.height || layout.width != size.width) return "its size differs from that in its header";
  const auto channels = static_cast<unsigned>(rules.channels);
  if (planned.is_copied_to({slot.height, slot.width})) return read_pixels(layout, channels, slot.data, slot.stride);
  Buffer pixels(size.height * size.width * channels);
  const Rows<uint8_t> rows = contiguous_rows(pixels.data(), size, channels);
  fault = read_pixels(layout, channels, rows.data, rows.stride);
  if (fault.empty()) place_pixels(constant(rows), planned, rules, slot);
  return fault;
}

}  // namespace penstock
