// Random changes to images of one size: moved, mirrored, with other colours, partly covered.
#pragma once

#include <vector>

#include "image/pixels.h"
#include "order/random.h"

namespace penstock {

// Each is 0 for off. The changes are made in this order; all colours together are one map, rounded once.
struct Changes {
  double crop;        // largest shift, as a fraction of the sides
  double flip;        // probability to mirror left to right
  double flip_down;   // probability to mirror top to bottom
  double brightness;  // largest change, as a fraction of the full range
  double contrast;    // largest relative change of the difference from the mean brightness
  double saturation;  // largest relative change of the difference from grey
  double cutout;      // side of a square that is painted over, as a fraction of the shorter side
  uint8_t colour[4];  // of that square
};

// The purposes of the random numbers; both flips share one.
struct ChangePurposes {
  uint16_t crop, flip, brightness, contrast, saturation, cutout;
};

class Augmenter {
 public:
  Augmenter(const Changes& changes, const ChangePurposes& purposes, const DrawKeys& keys)
      : changes_(changes), purposes_(purposes), keys_(keys) {}

  // Changes all images in place, one after the other, while each is in the cache of the processor.
  void augment(const Images& images, bool by_scalar);

 private:
  void shift(const Images& image, size_t row);
  void flip(const Images& image, size_t row, bool by_scalar) const;
  void recolour(const Images& image, size_t row, bool by_scalar) const;
  void cut_out(const Images& image, size_t row) const;
  double draw(uint16_t purpose, size_t row) const;

  const Changes& changes_;
  const ChangePurposes& purposes_;
  const DrawKeys& keys_;
  std::vector<uint8_t> copy_;
};

}  // namespace penstock
