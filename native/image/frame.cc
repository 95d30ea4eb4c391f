#include "image/frame.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

double ratio(size_t a, size_t b) { return static_cast<double>(a) / static_cast<double>(b); }

size_t scaled_side(size_t side, double scale, size_t most) {
  const double length = std::nearbyint(static_cast<double>(side) * scale);
  return length >= static_cast<double>(most) ? most : std::max<size_t>(1, static_cast<size_t>(length));
}

Frame fit(ImageSize image, ImageSize out) {
  const double scale = std::min(ratio(out.height, image.height), ratio(out.width, image.width));
  const size_t height = scaled_side(image.height, scale, out.height),
               width = scaled_side(image.width, scale, out.width);
  return {{0.0, 0.0, static_cast<double>(image.height), static_cast<double>(image.width)},
          {(out.height - height) / 2, (out.width - width) / 2, height, width}};
}

Frame cover(ImageSize image, ImageSize out) {
  const double scale = std::max(ratio(out.height, image.height), ratio(out.width, image.width));
  const auto tall = static_cast<double>(image.height), wide = static_cast<double>(image.width);
  const double height = std::min(tall, static_cast<double>(out.height) / scale);
  const double width = std::min(wide, static_cast<double>(out.width) / scale);
  return {{(tall - height) / 2, (wide - width) / 2, height, width}, {0, 0, out.height, out.width}};
}

}  // namespace

Frame make_frame(ImageSize image, ImageSize out, Resizing resizing) {
  if (resizing == Resizing::kPad) return fit(image, out);
  if (resizing == Resizing::kCrop) return cover(image, out);
  return {{0.0, 0.0, static_cast<double>(image.height), static_cast<double>(image.width)},
          {0, 0, out.height, out.width}};
}

unsigned choose_draft(const Frame& frame) {
  const double room = std::min(frame.box.height / static_cast<double>(frame.window.height),
                               frame.box.width / static_cast<double>(frame.window.width));
  for (const unsigned denominator : kDrafts) {
    if (room >= denominator * kDraftMargin) return denominator;
  }
  return 1;
}

RandomCrop::RandomCrop(double least_area, double greatest_area, double least_aspect, double greatest_aspect)
    : least_area_(least_area),
      area_range_(greatest_area - least_area),
      least_aspect_(least_aspect),
      greatest_aspect_(greatest_aspect) {
  double root = greatest_aspect / least_aspect;
  for (double& each : roots_) each = root = std::sqrt(root);
}

double RandomCrop::draw_aspect(double number) const {
  const auto bits = static_cast<uint32_t>(std::floor(number * 65536.0));
  double power = 1.0;
  for (unsigned i = 0; i < 16; i++) {
    if ((bits >> (15 - i) & 1) != 0) power *= roots_[i];
  }
  return least_aspect_ * power;
}

Box RandomCrop::crop(ImageSize image, const double* numbers) const {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  for (size_t i = 0; i < kNumAttempts; i++, numbers += 4) {
    const double area = (least_area_ + numbers[0] * area_range_) * height * width, aspect = draw_aspect(numbers[1]);
    const double tall = std::nearbyint(std::sqrt(area / aspect)), wide = std::nearbyint(std::sqrt(area * aspect));
    if (tall < 1 || wide < 1 || tall > height || wide > width) continue;
    return {std::floor(numbers[2] * (height - tall + 1)), std::floor(numbers[3] * (width - wide + 1)), tall, wide};
  }
  const double tall = std::min(height, std::max(1.0, std::nearbyint(width / least_aspect_)));
  const double wide = std::min(width, std::max(1.0, std::nearbyint(height * greatest_aspect_)));
  return {std::floor((height - tall) / 2), std::floor((width - wide) / 2), tall, wide};
}

}  // namespace penstock
