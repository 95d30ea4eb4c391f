#include "image/augment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "image/colour.h"

namespace penstock {
namespace {

constexpr double kGrey[3] = {0.299, 0.587, 0.114};  // of red, green and blue in the brightness, as in JPEG

// An affine map of colours: rows of a factor for each colour, and a term.
struct ColourMap {
  size_t side;
  double values[3][4] = {};

  // Multiplies all colours by `factor`, and adds `added`.
  ColourMap(size_t num_colours, double factor, double added) : side(num_colours) {
    for (size_t i = 0; i < side; i++) {
      values[i][i] = factor;
      values[i][side] = added;
    }
  }
};

// Products and sums in this order, so that the last bit is the same on every machine.
ColourMap combine(const ColourMap& first, const ColourMap& second) {
  const size_t side = first.side;
  ColourMap both(side, 0.0, 0.0);
  for (size_t inner = 0; inner < side; inner++) {
    for (size_t row = 0; row < side; row++) {
      for (size_t column = 0; column <= side; column++) {
        both.values[row][column] += second.values[row][inner] * first.values[inner][column];
      }
    }
  }
  for (size_t row = 0; row < side; row++) both.values[row][side] += second.values[row][side];
  return both;
}

// Relative changes are from 1 - `most` to 1 + `most`.
double change(double number, double most) { return (2 * number - 1) * most; }

double mean_brightness(const Images& image, bool by_scalar) {
  double means[4];
  mean_channels(image, by_scalar, means);
  if (image.channels == 1) return means[0];
  return means[0] * kGrey[0] + means[1] * kGrey[1] + means[2] * kGrey[2];
}

}  // namespace

double Augmenter::draw(uint16_t purpose, size_t row) const {
  double number;
  keys_.draw_uniform(purpose, row, 1, &number);
  return number;
}

void Augmenter::augment(const Images& images, bool by_scalar) {
  for (size_t i = 0; i < images.num; i++) {
    const Images image{images.image(i), 1, images.height, images.width, images.channels};
    if (changes_.crop != 0) shift(image, i);
    if (changes_.flip != 0 || changes_.flip_down != 0) flip(image, i, by_scalar);
    recolour(image, i, by_scalar);
    if (changes_.cutout != 0) cut_out(image, i);
  }
}

void Augmenter::shift(const Images& image, size_t row) {
  double numbers[2];
  keys_.draw_uniform(purposes_.crop, row, 2, numbers);
  int32_t offsets[2];
  for (size_t i = 0; i < 2; i++) {
    const auto side = static_cast<double>(i == 0 ? image.height : image.width);
    const double reach = std::min(std::nearbyint(side * changes_.crop), side - 1);
    offsets[i] = static_cast<int32_t>(std::floor(numbers[i] * (2 * reach + 1)) - reach);
  }
  copy_.assign(image.data, image.data + image.image_bytes());
  shift_images({copy_.data(), 1, image.height, image.width, image.channels}, offsets, image.data);
}

void Augmenter::flip(const Images& image, size_t row, bool by_scalar) const {
  double numbers[2];
  keys_.draw_uniform(purposes_.flip, row, 2, numbers);
  const uint8_t across = numbers[0] < changes_.flip, down = numbers[1] < changes_.flip_down;
  flip_images(image, &across, &down, by_scalar);
}

void Augmenter::recolour(const Images& image, size_t row, bool by_scalar) const {
  const size_t side = image.channels == 1 ? 1 : 3;  // alpha is no colour
  ColourMap whole(side, 1.0, 0.0);
  bool is_first = true;
  const auto add = [&](const ColourMap& map) {
    whole = is_first ? map : combine(whole, map);
    is_first = false;
  };
  if (changes_.brightness != 0) {
    add(ColourMap(side, 1.0, change(draw(purposes_.brightness, row), changes_.brightness) * 255));
  }
  if (changes_.contrast != 0) {
    // The mean brightness of the image that the contrast applies to: a change of the brightness comes first.
    double middle = mean_brightness(image, by_scalar);
    if (!is_first) middle += whole.values[0][side];
    const double factor = 1 + change(draw(purposes_.contrast, row), changes_.contrast);
    add(ColourMap(side, factor, (1 - factor) * middle));
  }
  if (changes_.saturation != 0 && side == 3) {
    const double factor = 1 + change(draw(purposes_.saturation, row), changes_.saturation);
    ColourMap map(3, factor, 0.0);
    for (auto& values : map.values) {
      for (size_t i = 0; i < 3; i++) values[i] += (1 - factor) * kGrey[i];
    }
    add(map);
  }
  if (is_first) return;
  float matrix[12];
  float* out = matrix;
  for (size_t i = 0; i < side; i++) {
    for (size_t j = 0; j <= side; j++) *out++ = static_cast<float>(whole.values[i][j]);
  }
  recolour_images(image, matrix, by_scalar);
}

void Augmenter::cut_out(const Images& image, size_t row) const {
  const auto length =
      static_cast<int32_t>(std::nearbyint(changes_.cutout * static_cast<double>(std::min(image.height, image.width))));
  if (length == 0) return;
  double numbers[2];
  keys_.draw_uniform(purposes_.cutout, row, 2, numbers);
  const auto middle = [&](size_t i, size_t side) {
    return static_cast<int32_t>(std::floor(numbers[i] * static_cast<double>(side)));
  };
  const int32_t box[4] = {middle(0, image.height) - length / 2, middle(1, image.width) - length / 2, length, length};
  erase_boxes(image, box, changes_.colour);
}

}  // namespace penstock
