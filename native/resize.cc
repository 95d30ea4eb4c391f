#include "resize.h"

#include <cstring>
#include <optional>

#include "avx2.h"

namespace penstock {
namespace {

using detail::kColumnBits;

// The sum of rows of pixels, in one way for every machine: products lose their low byte, which is a half on average.
void blend_rows_plainly(const uint8_t* rows, ptrdiff_t stride, const uint32_t* weights, size_t num, size_t bytes,
                        uint8_t* out) {
  for (size_t i = 0; i < bytes; i++) {
    const uint8_t* p = rows + i;
    uint32_t sum = static_cast<uint32_t>(128 + num / 2);
    for (size_t j = 0; j < num; j++, p += stride) sum += *p * weights[j] >> 8;
    out[i] = static_cast<uint8_t>(sum >> 8);
  }
}

uint8_t byte_of_wide(uint64_t sum) { return static_cast<uint8_t>((sum + Taps::kWideTotal / 2) / Taps::kWideTotal); }

void blend_rows_widely(const uint8_t* rows, ptrdiff_t stride, const uint32_t* weights, size_t num, size_t bytes,
                       uint64_t* sums, uint8_t* out) {
  std::memset(sums, 0, bytes * sizeof *sums);
  for (size_t j = 0; j < num; j++, rows += stride) {
    const uint64_t weight = weights[j];
    for (size_t i = 0; i < bytes; i++) sums[i] += rows[i] * weight;
  }
  for (size_t i = 0; i < bytes; i++) out[i] = byte_of_wide(sums[i]);
}

template <typename Sum>
Sum blend_one(const uint8_t* p, size_t channels, const uint32_t* weights, size_t num) {
  Sum sum = 0;
  for (size_t j = 0; j < num; j++, p += channels) sum += static_cast<Sum>(*p) * weights[j];
  return sum;
}

void blend_columns_plainly(const uint8_t* row, const Taps& taps, size_t channels, uint8_t* out) {
  for (size_t i = 0; i < taps.first.size(); i++) {
    const uint8_t* const p = row + (taps.first[i] - taps.left) * channels;
    const uint32_t* const weights = taps.weights_of(i);
    for (size_t c = 0; c < channels; c++) {
      if (taps.is_wide) {
        *out++ = byte_of_wide(blend_one<uint64_t>(p + c, channels, weights, taps.count[i]));
      } else {
        const uint32_t half = 1u << (kColumnBits - 1);
        *out++ = static_cast<uint8_t>((blend_one<uint32_t>(p + c, channels, weights, taps.count[i]) + half) >> kColumnBits);
      }
    }
  }
}

}  // namespace

void resize_pixels(const Rows<const uint8_t>& source, const Rows<uint8_t>& out, size_t channels, const Box& box,
                   bool antialias, bool by_scalar) {
  const Taps rows({source.height, box.top, box.height, out.height, antialias}, detail::kRowTotal);
  const Taps columns({source.width, box.left, box.width, out.width, antialias}, 1u << kColumnBits);
  const bool by_vector = !by_scalar && has_avx2();
  std::optional<detail::ColumnLanes> lanes;
  if (by_vector && !columns.is_wide) lanes.emplace(columns, channels);

  const size_t bytes = (columns.right - columns.left) * channels;
  std::vector<uint8_t> blended(bytes + (columns.most + 8) * channels + detail::kRowPadding);
  std::vector<uint64_t> sums(rows.is_wide ? bytes : 0);
  for (size_t y = 0; y < out.height; y++) {
    const uint8_t* const from = source.row(rows.first[y]) + columns.left * channels;
    const uint32_t* const weights = rows.weights_of(y);
    if (rows.count[y] == 1) {
      std::memcpy(blended.data(), from, bytes);
    } else if (rows.is_wide) {
      blend_rows_widely(from, source.stride, weights, rows.count[y], bytes, sums.data(), blended.data());
    } else if (by_vector) {
      detail::blend_rows_avx2(from, source.stride, weights, rows.count[y], bytes, blended.data());
    } else {
      blend_rows_plainly(from, source.stride, weights, rows.count[y], bytes, blended.data());
    }
    if (lanes) {
      detail::blend_columns_avx2(blended.data(), *lanes, out.row(y));
    } else {
      blend_columns_plainly(blended.data(), columns, channels, out.row(y));
    }
  }
}

}  // namespace penstock
