#include "image/png.h"

#include <algorithm>

#include "foundation/pool.h"
#include "image/inflate.h"
#include "image/png_filters.h"

namespace penstock {
namespace {

// The positions of the pixels of a pass in the image: an interlaced one has seven passes, any other has one.
struct Pass {
  uint32_t left, top, across, down;

  uint32_t width(const PngLayout& layout) const {
    return layout.width <= left ? 0 : (layout.width - left - 1) / across + 1;
  }
  uint32_t height(const PngLayout& layout) const {
    return layout.height <= top ? 0 : (layout.height - top - 1) / down + 1;
  }
};

constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kInterlaced[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

struct Passes {
  const Pass* begin_;
  const Pass* end_;

  explicit Passes(const PngLayout& layout)
      : begin_(layout.interlaced ? kInterlaced : kWhole), end_(layout.interlaced ? kInterlaced + 7 : kWhole + 1) {}
  const Pass* begin() const { return begin_; }
  const Pass* end() const { return end_; }
};

uint64_t row_size(const PngLayout& layout, uint32_t width) {
  return (static_cast<uint64_t>(width) * layout.form.bits() + 7) / 8;
}

// Turns the inflated bytes into pixels, pass by pass.
class Painter {
 public:
  Painter(const PngLayout& layout, unsigned channels, uint8_t* out, ptrdiff_t row_bytes)
      : layout_(layout), channels_(channels), out_(out), row_bytes_(row_bytes), expander_(layout.form, channels) {
    const auto widest = static_cast<size_t>(row_size(layout, layout.width));
    nothing_.resize(widest);
    if (!is_direct()) {
      for (std::vector<uint8_t>& row : rows_) row.resize(widest);
    }
    if (layout.interlaced) pixels_.resize(static_cast<size_t>(layout.width) * channels);
  }

  std::string paint(const uint8_t* raw) {
    for (const Pass& pass : Passes(layout_)) {
      const std::string fault = paint(pass, raw);
      if (!fault.empty()) return fault;
    }
    return {};
  }

 private:
  std::string paint(const Pass& pass, const uint8_t*& raw) {
    const uint32_t width = pass.width(layout_), height = pass.height(layout_);
    if (width == 0) return {};
    const auto size = static_cast<size_t>(row_size(layout_, width));
    const size_t pixel_bytes = std::max(layout_.form.bits() / 8, 1u);
    const uint8_t* above = nothing_.data();
    for (uint32_t y = 0; y < height;) {
      uint8_t* const row = row_of(pass, y);
      uint32_t undone = 1;
      if (y + 1 < height && raw[0] == kPaethFilter && raw[size + 1] == kPaethFilter &&
          unfilter_two({raw + 1, raw + size + 2, row, row_of(pass, y + 1)}, above, size, pixel_bytes)) {
        undone = 2;
      } else if (*raw < kNumFilters) {
        unfilter(*raw, raw + 1, above, row, size, pixel_bytes);
      } else {
        return "a row has the unknown filter " + std::to_string(*raw);
      }
      for (raw += undone * (size + 1); undone > 0; undone--, y++) {
        above = row_of(pass, y);
        if (!is_direct() && !place(above, width, pass, y)) return "a pixel has a colour that is not in its palette";
      }
    }
    return {};
  }

  // Whether rows are made at their final address, and need no further work.
  bool is_direct() const { return expander_.copies() && !layout_.interlaced; }
  uint8_t* target_of(const Pass& pass, uint32_t y) const {
    return out_ + static_cast<ptrdiff_t>(pass.top + y * pass.down) * row_bytes_;
  }
  uint8_t* row_of(const Pass& pass, uint32_t y) { return is_direct() ? target_of(pass, y) : rows_[y % 3].data(); }

  bool place(const uint8_t* row, uint32_t width, const Pass& pass, uint32_t y) {
    uint8_t* const target = target_of(pass, y);
    uint8_t* const pixels = layout_.interlaced ? pixels_.data() : target;
    if (!expander_.expand(row, width, pixels)) return false;
    if (layout_.interlaced) spread(pixels, width, pass, target);
    return true;
  }

  void spread(const uint8_t* pixels, uint32_t width, const Pass& pass, uint8_t* target) const {
    target += static_cast<size_t>(pass.left) * channels_;
    const size_t step = static_cast<size_t>(pass.across) * channels_;
    for (uint32_t x = 0; x < width; x++, pixels += channels_, target += step) {
      for (unsigned k = 0; k < channels_; k++) target[k] = pixels[k];
    }
  }

  const PngLayout& layout_;
  const unsigned channels_;
  uint8_t* const out_;
  const ptrdiff_t row_bytes_;
  Expander expander_;
  std::vector<uint8_t> nothing_, rows_[3], pixels_;  // rows: one, the one below it, and the one above both
};

// The stream in one piece.
Span join(const PngLayout& layout, Buffer& joined) {
  if (layout.streams.size() == 1) return layout.streams[0];
  joined = Buffer(layout.stream_bytes);
  size_t size = 0;
  for (const Span& stream : layout.streams) {
    if (stream.size != 0) std::memcpy(joined.data() + size, stream.data, stream.size);
    size += stream.size;
  }
  return Span{joined.data(), size};
}

}  // namespace

uint64_t inflated_bytes(const PngLayout& layout) {
  uint64_t size = 0;
  for (const Pass& pass : Passes(layout)) {
    const uint32_t width = pass.width(layout);
    if (width != 0) size += (row_size(layout, width) + 1) * pass.height(layout);
  }
  return size;
}

std::string check_stream(const PngLayout& layout) {
  if (inflated_bytes(layout) / kMostInflation <= layout.stream_bytes) return {};
  return "it is cut short: " + std::to_string(layout.stream_bytes) + " bytes of deflate are too few for " +
         std::to_string(layout.width) + " x " + std::to_string(layout.height) + " pixels";
}

std::string read_pixels(const PngLayout& layout, unsigned channels, uint8_t* out, ptrdiff_t row_bytes) {
  for (const PngChunk& chunk : layout.to_check) {
    if (!chunk.is_sound()) return "a chunk is damaged: the CRC of " + name_of_chunk(chunk.name) + " does not fit";
  }
  Buffer joined;
  const Span stream = join(layout, joined);
  const auto size = static_cast<size_t>(inflated_bytes(layout));
  Buffer inflated(size + kInflateSlack);
  const InflateFault fault = inflate_zlib(stream, inflated.data(), size, size + kInflateSlack);
  if (fault != InflateFault::kNone) return std::string("the stream of its pixels ") + words_of(fault);
  return Painter(layout, channels, out, row_bytes).paint(inflated.data());
}

}  // namespace penstock
