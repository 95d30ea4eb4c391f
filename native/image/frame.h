// Which part of an image is used, which part of the output it fills, and at which size a JPEG is decoded for that.
#pragma once

#include "image/resize.h"

namespace penstock {

struct ImageSize {
  size_t height, width;

  bool operator==(const ImageSize& other) const { return height == other.height && width == other.width; }
};

// How an image gets the size of the output. Numbers cross from Python: append, never renumber.
enum class Resizing : uint8_t {
  kStretch = 0,  // the whole image, with a change of its aspect ratio
  kPad = 1,      // the whole image with its aspect ratio, centered in a padded output
  kCrop = 2,     // the largest centered part that has the aspect ratio of the output
};

// Whole pixels of the output.
struct Window {
  size_t top, left, height, width;
};

struct Frame {
  Box box;  // in pixels of the image
  Window window;
};

Frame make_frame(ImageSize image, ImageSize out, Resizing resizing);

// The denominators of the reduced sizes at which libjpeg decodes quickly, and the least ratio of a reduced image to the
// output in each direction; the rest is resized as usual.
inline constexpr unsigned kDrafts[] = {8, 4, 2};
inline constexpr double kDraftMargin = 1.5;

// One of kDrafts, or 1.
unsigned choose_draft(const Frame& frame);

// Random crops of whole pixels: the range of their area as a fraction of the image, and of their ratio of width to
// height, whose logarithm is uniformly distributed.
class RandomCrop {
 public:
  static constexpr size_t kNumAttempts = 10;
  static constexpr size_t kNumNumbers = 4 * kNumAttempts;  // random ones in [0, 1) for each image

  RandomCrop(double least_area, double greatest_area, double least_aspect, double greatest_aspect);

  // The first attempt that fits the image, or else the largest centered part with an aspect ratio in the range.
  Box crop(ImageSize image, const double* numbers) const;

 private:
  // The aspect ratio for a number in [0, 1), with 16 bits of precision. It is made of square roots and products, which
  // round identically on every machine; logarithms do not.
  double draw_aspect(double number) const;

  double least_area_, area_range_, least_aspect_, greatest_aspect_;
  double roots_[16];  // of the ratio of the aspects: the second root, the fourth, …
};

}  // namespace penstock
