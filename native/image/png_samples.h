// Rows of samples, as PNG has them, into pixels of 1, 3 or 4 bytes: grey, RGB or RGBA.
#pragma once

#include <vector>

#include "foundation/bytes.h"

namespace penstock {

// PNG's numbers: 1 palette, 2 colours, 4 alpha, added up.
enum class ColourType : uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6 };

constexpr unsigned samples_of(ColourType colour) {
  switch (colour) {
    case ColourType::kRgb:
      return 3;
    case ColourType::kGreyAlpha:
      return 2;
    case ColourType::kRgba:
      return 4;
    default:
      return 1;
  }
}

struct PixelForm {
  ColourType colour = ColourType::kGrey;
  unsigned depth = 8;  // bits of a sample
  Span palette;        // 3 bytes a colour
  Span transparency;  // of a palette, an alpha a colour; else the samples, of two bytes, that are transparent; or empty

  unsigned bits() const { return depth * samples_of(colour); }
};

// Grey becomes RGB by repetition, RGB grey by weights 0.299, 0.587 and 0.114. Of 16 bits, the high byte stays; fewer
// than 8 bits of grey are scaled to 0 … 255. Alpha that is not asked for is dropped; where there is none, it is 255.
class Expander {
 public:
  Expander(const PixelForm& form, unsigned channels);

  // Whether samples are pixels as they stand.
  bool copies() const { return copies_; }
  // False if a pixel has a colour that the palette has not.
  bool expand(const uint8_t* samples, size_t width, uint8_t* out);

 private:
  void make_table(const PixelForm& form);
  bool expand_by_table(const uint8_t* samples, size_t width, uint8_t* out);

  const PixelForm form_;
  const unsigned channels_;
  const bool by_table_;
  const bool copies_;
  unsigned num_colours_ = 256;
  uint8_t table_[256][4] = {};
  uint8_t hidden_[6] = {};  // the samples that are transparent, as a row has them
  bool hides_ = false;
  std::vector<uint8_t> indexes_;
};

}  // namespace penstock
