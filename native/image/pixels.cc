#include "image/pixels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace penstock {
namespace {

constexpr size_t kTile = 16;  // pixels of a side that are turned together: their lines of the cache are used whole

// The pixel at (y, x) of the result lies at `origin` + y · `down` + x · `across`.
struct Turn {
  const uint8_t* origin;
  ptrdiff_t down, across;
};

// Of orientations 5 to 8, whose rows are the source's columns.
Turn turn_of(const Rows<const uint8_t>& source, size_t channels, int orientation) {
  const auto pixel = static_cast<ptrdiff_t>(channels);
  const bool from_bottom = orientation == 6 || orientation == 7, from_right = orientation >= 7;
  const uint8_t* origin = source.row(from_bottom ? source.height - 1 : 0);
  if (from_right) origin += (source.width - 1) * channels;
  return {origin, from_right ? -pixel : pixel, from_bottom ? -source.stride : source.stride};
}

template <size_t kChannels>
void copy_turned(const Turn& turn, const Rows<uint8_t>& out) {
  for (size_t top = 0; top < out.height; top += kTile) {
    const size_t bottom = std::min(top + kTile, out.height);
    for (size_t left = 0; left < out.width; left += kTile) {
      const size_t num = std::min(kTile, out.width - left);
      for (size_t y = top; y < bottom; y++) {
        const uint8_t* from =
            turn.origin + static_cast<ptrdiff_t>(y) * turn.down + static_cast<ptrdiff_t>(left) * turn.across;
        uint8_t* to = out.row(y) + left * kChannels;
        for (size_t x = 0; x < num; x++, from += turn.across, to += kChannels) std::memcpy(to, from, kChannels);
      }
    }
  }
}

template <size_t kChannels>
void mirror(const uint8_t* row, size_t width, uint8_t* out) {
  for (const uint8_t* p = row + width * kChannels; p != row; out += kChannels) {
    p -= kChannels;
    std::memcpy(out, p, kChannels);
  }
}

void mirror_row_plainly(const uint8_t* row, size_t width, size_t channels, uint8_t* out) {
  if (channels == 1) mirror<1>(row, width, out);
  else if (channels == 3) mirror<3>(row, width, out);
  else mirror<4>(row, width, out);
}

detail::MirrorRow choose_mirror(bool by_scalar) {
  return !by_scalar && detail::mirror_row_avx2 != nullptr ? detail::mirror_row_avx2 : mirror_row_plainly;
}

void flip_rows(uint8_t* image, size_t height, size_t row_bytes) {
  for (size_t y = 0; y < height / 2; y++) {
    uint8_t* const low = image + y * row_bytes;
    std::swap_ranges(low, low + row_bytes, image + (height - 1 - y) * row_bytes);
  }
}

size_t reflect(int64_t place, size_t side) {
  const auto last = static_cast<int64_t>(side) - 1;
  return static_cast<size_t>(place < 0 ? -place : place > last ? 2 * last - place : place);
}

template <size_t kChannels>
void shift_row(const uint8_t* from, size_t width, int64_t columns, uint8_t* to) {
  const auto side = static_cast<int64_t>(width);
  // The pixels that lie inside are one piece.
  const auto begin = static_cast<size_t>(std::max<int64_t>(0, -columns));
  const auto end = static_cast<size_t>(std::min(side, side - columns));
  const auto first = static_cast<size_t>(std::max<int64_t>(0, columns));
  std::memcpy(to + begin * kChannels, from + first * kChannels, (end - begin) * kChannels);
  const auto copy_reflected = [&](size_t x) {
    std::memcpy(to + x * kChannels, from + reflect(static_cast<int64_t>(x) + columns, width) * kChannels, kChannels);
  };
  for (size_t x = 0; x < begin; x++) copy_reflected(x);
  for (size_t x = end; x < width; x++) copy_reflected(x);
}

template <size_t kChannels>
void shift_image(const uint8_t* image, const Images& images, const int32_t* offset, uint8_t* out) {
  for (size_t y = 0; y < images.height; y++, out += images.row_bytes()) {
    const size_t from = reflect(static_cast<int64_t>(y) + offset[0], images.height);
    shift_row<kChannels>(image + from * images.row_bytes(), images.width, offset[1], out);
  }
}

// The part of [start, start + extent) that is inside [0, side).
struct Piece {
  size_t begin, end;

  Piece(int32_t start, int32_t extent, size_t side) {
    const auto most = static_cast<int64_t>(side);
    begin = static_cast<size_t>(std::clamp<int64_t>(start, 0, most));
    end = static_cast<size_t>(std::clamp<int64_t>(int64_t{start} + std::max(extent, 0), 0, most));
  }
};

}  // namespace

void orient_pixels(const Rows<const uint8_t>& source, const Rows<uint8_t>& out, size_t channels, int orientation) {
  if (orientation < 5) {
    const bool from_bottom = orientation >= 3, from_right = orientation == 2 || orientation == 3;
    const detail::MirrorRow mirror_row = choose_mirror(false);
    for (size_t y = 0; y < out.height; y++) {
      const uint8_t* const row = source.row(from_bottom ? source.height - 1 - y : y);
      from_right ? mirror_row(row, out.width, channels, out.row(y))
                 : static_cast<void>(std::memcpy(out.row(y), row, out.width * channels));
    }
    return;
  }
  const Turn turn = turn_of(source, channels, orientation);
  if (channels == 1) copy_turned<1>(turn, out);
  else if (channels == 3) copy_turned<3>(turn, out);
  else copy_turned<4>(turn, out);
}

void flip_images(const Images& images, const uint8_t* across, const uint8_t* down, bool by_scalar) {
  const detail::MirrorRow mirror_row = choose_mirror(by_scalar);
  const size_t row_bytes = images.row_bytes();
  std::vector<uint8_t> copy(row_bytes);
  for (size_t i = 0; i < images.num; i++) {
    uint8_t* const image = images.image(i);
    if (down[i] != 0) flip_rows(image, images.height, row_bytes);
    if (across[i] == 0) continue;
    for (uint8_t* row = image; row != image + images.image_bytes(); row += row_bytes) {
      std::memcpy(copy.data(), row, row_bytes);
      mirror_row(copy.data(), images.width, images.channels, row);
    }
  }
}

void erase_boxes(const Images& images, const int32_t* boxes, const uint8_t* colour) {
  const size_t channels = images.channels;
  for (size_t i = 0; i < images.num; i++, boxes += 4) {
    const Piece rows(boxes[0], boxes[2], images.height), columns(boxes[1], boxes[3], images.width);
    if (rows.begin >= rows.end || columns.begin >= columns.end) continue;
    uint8_t* const first = images.image(i) + rows.begin * images.row_bytes() + columns.begin * channels;
    const size_t bytes = (columns.end - columns.begin) * channels;
    for (size_t x = 0; x < bytes; x += channels) std::memcpy(first + x, colour, channels);
    for (size_t y = 1; y < rows.end - rows.begin; y++) std::memcpy(first + y * images.row_bytes(), first, bytes);
  }
}

void shift_images(const Images& images, const int32_t* offsets, uint8_t* out) {
  const auto shift = images.channels == 1 ? shift_image<1> : images.channels == 3 ? shift_image<3> : shift_image<4>;
  for (size_t i = 0; i < images.num; i++) {
    shift(images.image(i), images, offsets + 2 * i, out + i * images.image_bytes());
  }
}

}  // namespace penstock
