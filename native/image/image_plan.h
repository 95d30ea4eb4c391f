// The work for each image of a slice of a batch: whether its header permits to decode it, at which size, and
// which part of its pixels becomes which part of the output.
#pragma once

#include <string>

#include "foundation/bytes.h"
#include "image/frame.h"
#include "image/image_header.h"

namespace penstock {

struct ImageRules {
  size_t channels;      // 1, 3 or 4
  uint32_t formats;     // bit i: images of the format of number i are decoded
  uint64_t max_pixels;  // of an image
  bool orients;         // turns photos upright by their EXIF orientation
  ImageSize size;       // of the output
  Resizing resizing;
  bool antialias;
  bool drafts;      // decodes large JPEGs at a reduced size
  uint8_t fill[4];  // the colour where there is no image
};

// Numbers cross into Python: append, never renumber.
enum class ImageFault : int8_t {
  kNone = 0,
  kFormat = 1,     // not an image, or not of a format that is decoded
  kNoSize = 2,     // truncated or damaged before its size
  kNumPixels = 3,  // more than allowed
  kSide = 4,       // longer than kLongestSide
  kScans = 5,      // more scans than encoders write: each takes a few bytes and a pass over all pixels
};

inline constexpr int64_t kMostScans = 100;  // of a progressive JPEG; encoders write about ten

struct PlannedImage {
  Span data;  // as stored; empty for pixels that a cache holds
  ImageHeader header;
  ImageFault fault = ImageFault::kNone;
  ImageSize size{1, 1};  // upright
  Frame frame{};
  unsigned denominator = 1;  // of the size at which a JPEG is decoded

  // Of the pixels that a decoder makes.
  ImageSize decoded_size() const {
    const auto reduced = [this](int64_t side) { return (static_cast<size_t>(side) + denominator - 1) / denominator; };
    return {reduced(header.height), reduced(header.width)};
  }
  size_t decoded_bytes(size_t channels) const {
    const ImageSize decoded = decoded_size();
    return decoded.height * decoded.width * channels;
  }
  // Whether the pixels go to a slot of this size as a decoder makes them.
  bool is_copied_to(ImageSize slot) const {
    return header.orientation == 1 && denominator == 1 && is_whole() && fills(slot) && size == slot;
  }
  bool is_whole() const {
    return frame.box.top == 0 && frame.box.left == 0 && frame.box.height == static_cast<double>(size.height) &&
           frame.box.width == static_cast<double>(size.width);
  }
  bool fills(ImageSize slot) const { return frame.window.height == slot.height && frame.window.width == slot.width; }
};

// Reads and judges the header of an encoded image; the frame is not set yet.
PlannedImage plan_image(Span data, const ImageRules& rules);

// Writes pixels of `planned.decoded_size()` to their slot: upright, and the part in the box resized to the window.
void place_pixels(const Rows<const uint8_t>& pixels, const PlannedImage& planned, const ImageRules& rules,
                  const Rows<uint8_t>& slot);

void fill_pixels(const Rows<uint8_t>& slot, size_t channels, const uint8_t* colour);

// Decodes a PNG into its slot. Returns the fault, or nothing.
std::string place_png(const PlannedImage& planned, const ImageRules& rules, const Rows<uint8_t>& slot);

}  // namespace penstock
