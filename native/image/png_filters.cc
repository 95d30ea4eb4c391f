#include "image/png_filters.h"

#include <cstdlib>
#include <cstring>

namespace penstock {
namespace {

using detail::kMostPixelBytes;

// The one nearest to left + above - corner; the left one, then the one above, if two are equally near.
inline uint8_t paeth(int left, int above, int corner) {
  const int by_left = std::abs(above - corner), by_above = std::abs(left - corner);
  const int by_corner = std::abs(left + above - 2 * corner);
  if (by_left <= by_above && by_left <= by_corner) return static_cast<uint8_t>(left);
  return static_cast<uint8_t>(by_above <= by_corner ? above : corner);
}

// The size of a pixel is a constant here, so that the compiler keeps the pixel on the left in registers.
template <size_t kPixelBytes>
void undo(uint8_t filter, const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size) {
  uint8_t left[kPixelBytes] = {}, corner[kPixelBytes] = {};
  const auto run = [&](auto predict) __attribute__((always_inline)) {
    for (size_t i = 0; i + kPixelBytes <= size; i += kPixelBytes) {
      for (size_t k = 0; k < kPixelBytes; k++) {
        left[k] = static_cast<uint8_t>(raw[i + k] + predict(left[k], above[i + k], corner[k]));
        corner[k] = above[i + k];
        out[i + k] = left[k];
      }
    }
  };
  if (filter == 1) run([](int a, int, int) { return a; });
  if (filter == 3) run([](int a, int b, int) { return (a + b) / 2; });
  if (filter == 4) run([](int a, int b, int c) { return paeth(a, b, c); });
}

using Undo = void (*)(uint8_t, const uint8_t*, const uint8_t*, uint8_t*, size_t);
constexpr Undo kUndo[kMostPixelBytes] = {undo<1>, undo<2>, undo<3>, undo<4>, undo<5>, undo<6>, undo<7>, undo<8>};

}  // namespace

void unfilter_by_byte(uint8_t filter, const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size,
                      size_t pixel_bytes) {
  if (filter == 0) std::memcpy(out, raw, size);
  if (filter == 2) {
    for (size_t i = 0; i < size; i++) out[i] = static_cast<uint8_t>(raw[i] + above[i]);
  }
  if (filter == 1 || filter == 3 || filter == 4) kUndo[pixel_bytes - 1](filter, raw, above, out, size);
}

void unfilter(uint8_t filter, const uint8_t* raw, const uint8_t* above, uint8_t* out, size_t size, size_t pixel_bytes) {
  if (const detail::Unfilter by_vector = detail::unfilter_sse.one[filter][pixel_bytes]) {
    by_vector(raw, above, out, size);
  } else {
    unfilter_by_byte(filter, raw, above, out, size, pixel_bytes);
  }
}

bool unfilter_two(const RowPair& rows, const uint8_t* above, size_t size, size_t pixel_bytes) {
  const detail::UnfilterTwo by_vector = detail::unfilter_sse.two[pixel_bytes];
  if (by_vector != nullptr) by_vector(rows, above, size);
  return by_vector != nullptr;
}

}  // namespace penstock
