#include "image/resize.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace penstock {
namespace {

using detail::kColumnBits;

uint8_t byte_of_wide(uint64_t sum) {
  return static_cast<uint8_t>((sum + ResizeFilter::kWideTotal / 2) / ResizeFilter::kWideTotal);
}

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

void blend_columns_plainly(const uint8_t* row, const ResizeFilter& filter, size_t channels, uint8_t* out) {
  for (size_t i = 0; i < filter.side.out; i++) {
    const uint8_t* const p = row + (filter.first[i] - filter.left) * channels;
    const uint32_t* const weights = filter.weights_of(i);
    for (size_t c = 0; c < channels; c++) {
      if (filter.is_wide) {
        *out++ = byte_of_wide(blend_one<uint64_t>(p + c, channels, weights, filter.count[i]));
      } else {
        const uint32_t half = 1u << (kColumnBits - 1),
                       sum = blend_one<uint32_t>(p + c, channels, weights, filter.count[i]);
        *out++ = static_cast<uint8_t>((sum + half) >> kColumnBits);
      }
    }
  }
}

// What a resize needs to know of two sizes. Making it takes an eighth of the time of 500×375 to 224×224, so a thread
// keeps its last one.
struct Plan {
  size_t channels;
  bool by_vector;
  ResizeFilter rows, columns;
  std::optional<detail::ColumnLanes> lanes;

  Plan(const Side& tall, const Side& wide, size_t num_channels, bool is_vector)
      : channels(num_channels), by_vector(is_vector), rows(tall, detail::kRowTotal), columns(wide, 1u << kColumnBits) {
    if (by_vector && !columns.is_wide) lanes.emplace(columns, channels);
  }
  bool is_of(const Side& tall, const Side& wide, size_t num_channels, bool is_vector) const {
    return rows.side == tall && columns.side == wide && channels == num_channels && by_vector == is_vector;
  }
  bool is_small() const { return rows.weights.size() + columns.weights.size() <= 65536; }
};

class Resizer {
 public:
  Resizer(const Plan& plan, const Rows<const uint8_t>& source)
      : plan_(plan),
        source_(source),
        bytes_((plan.columns.right - plan.columns.left) * plan.channels),
        blended_(bytes_ + (plan.columns.most + 8) * plan.channels + detail::kRowPadding),
        sums_(plan.rows.is_wide ? bytes_ : 0) {}

  void make_row(size_t y, uint8_t* out) {
    blend_rows(y);
    if (plan_.lanes) return detail::blend_columns_avx2(blended_.data(), *plan_.lanes, out);
    blend_columns_plainly(blended_.data(), plan_.columns, plan_.channels, out);
  }

 private:
  void blend_rows(size_t y) {
    const ResizeFilter& filter = plan_.rows;
    const size_t begin = plan_.columns.left * plan_.channels;
    const uint8_t* const from = source_.row(filter.first[y]) + begin;
    const uint32_t* const weights = filter.weights_of(y);
    const size_t num = filter.count[y];
    uint8_t* const out = blended_.data();
    // The rows that the next output takes and this one does not.
    const size_t after = std::min(y + 1, filter.side.out - 1), end = filter.first[after] + filter.count[after];
    const size_t fresh = std::max<size_t>(filter.first[after], filter.first[y] + num);
    const size_t num_next = end - std::min(fresh, end);
    const uint8_t* const next = num_next == 0 ? from : source_.row(fresh) + begin;
    if (num == 1) {
      std::memcpy(out, from, bytes_);
    } else if (filter.is_wide) {
      blend_rows_widely(from, source_.stride, weights, num, bytes_, sums_.data(), out);
    } else if (plan_.by_vector) {
      detail::blend_rows_avx2({from, source_.stride, weights, num, bytes_, next, num_next}, out);
    } else {
      detail::blend_rows_plainly({from, source_.stride, weights, num, bytes_, next, num_next}, 0, out);
    }
  }

  const Plan& plan_;
  Rows<const uint8_t> source_;
  size_t bytes_;  // of the part of a row that is read
  std::vector<uint8_t> blended_;
  std::vector<uint64_t> sums_;
};

}  // namespace

void resize_pixels(const Rows<const uint8_t>& source, const Rows<uint8_t>& out, size_t channels, const Box& box,
                   bool antialias, bool by_scalar) {
  thread_local std::unique_ptr<const Plan> last;
  const Side tall{source.height, box.top, box.height, out.height, antialias};
  const Side wide{source.width, box.left, box.width, out.width, antialias};
  const bool by_vector = !by_scalar && detail::blend_rows_avx2 != nullptr;
  if (last == nullptr || !last->is_of(tall, wide, channels, by_vector)) {
    last = std::make_unique<const Plan>(tall, wide, channels, by_vector);
  }
  Resizer resizer(*last, source);
  for (size_t y = 0; y < out.height; y++) resizer.make_row(y, out.row(y));
  if (!last->is_small()) last.reset();
}

}  // namespace penstock
