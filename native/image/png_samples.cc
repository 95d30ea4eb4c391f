#include "image/png_samples.h"

#include <algorithm>

namespace penstock {
namespace {

inline uint8_t grey_of(const uint8_t* rgb, size_t step) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[step] + 7471u * rgb[2 * step] + 32768u) >> 16);
}

// Samples of 8 bits or 16, whose high byte comes first.
template <unsigned kSamples, unsigned kBytes, unsigned kChannels>
void expand_wide(const uint8_t* in, size_t width, const uint8_t* hidden, uint8_t* out) {
  constexpr bool kIsGrey = kSamples < 3;
  for (size_t i = 0; i < width; i++, in += kSamples * kBytes, out += kChannels) {
    if (kChannels == 1) {
      out[0] = kIsGrey ? in[0] : grey_of(in, kBytes);
      continue;
    }
    for (unsigned k = 0; k < 3; k++) out[k] = in[kIsGrey ? 0 : k * kBytes];
    if (kChannels != 4) continue;
    out[3] = kSamples % 2 == 0 ? in[(kSamples - 1) * kBytes] : uint8_t{255};
    if (kSamples % 2 == 1 && hidden != nullptr && std::memcmp(in, hidden, kSamples * kBytes) == 0) out[3] = 0;
  }
}

template <unsigned kSamples, unsigned kBytes>
void expand_to(const uint8_t* in, size_t width, const uint8_t* hidden, unsigned channels, uint8_t* out) {
  if (channels == 1) expand_wide<kSamples, kBytes, 1>(in, width, hidden, out);
  if (channels == 3) expand_wide<kSamples, kBytes, 3>(in, width, hidden, out);
  if (channels == 4) expand_wide<kSamples, kBytes, 4>(in, width, hidden, out);
}

using ExpandTo = void (*)(const uint8_t*, size_t, const uint8_t*, unsigned, uint8_t*);
constexpr ExpandTo kExpand[4][2] = {{expand_to<1, 1>, expand_to<1, 2>},
                                    {expand_to<2, 1>, expand_to<2, 2>},
                                    {expand_to<3, 1>, expand_to<3, 2>},
                                    {expand_to<4, 1>, expand_to<4, 2>}};

// Numbers of fewer than eight bits, the first of a byte highest.
void unpack(const uint8_t* in, size_t width, unsigned depth, uint8_t* out) {
  const unsigned mask = (1u << depth) - 1, per_byte = 8 / depth;
  for (size_t i = 0; i < width; in++) {
    const size_t stop = std::min<size_t>(i + per_byte, width);
    for (unsigned shift = 8 - depth; i < stop; i++, shift -= depth) out[i] = static_cast<uint8_t>(*in >> shift & mask);
  }
}

bool is_copy(const PixelForm& form, unsigned channels) {
  if (form.depth != 8 || form.colour == ColourType::kPalette || form.colour == ColourType::kGreyAlpha) return false;
  return samples_of(form.colour) == channels;
}

}  // namespace

Expander::Expander(const PixelForm& form, unsigned channels)
    : form_(form),
      channels_(channels),
      by_table_(form.colour == ColourType::kPalette || (form.colour == ColourType::kGrey && form.depth <= 8)),
      copies_(is_copy(form, channels)) {
  if (by_table_) make_table(form);
  const unsigned samples = samples_of(form.colour);
  if (form.colour == ColourType::kPalette || form.transparency.size != 2 * samples) return;
  hides_ = true;
  const bool is_deep = form.depth == 16;
  for (unsigned i = 0; i < samples; i++) {
    if (is_deep) hidden_[2 * i] = form.transparency.data[2 * i];
    hidden_[is_deep ? 2 * i + 1 : i] = form.transparency.data[2 * i + 1];
  }
  if (by_table_) table_[hidden_[0] & ((1u << form.depth) - 1)][3] = 0;
}

void Expander::make_table(const PixelForm& form) {
  if (form.colour == ColourType::kGrey) {
    const unsigned most = (1u << form.depth) - 1;
    for (unsigned i = 0; i <= most; i++) {
      std::memset(table_[i], static_cast<int>(i * 255 / most), 3);
      table_[i][3] = 255;
    }
    return;
  }
  num_colours_ = static_cast<unsigned>(std::min<size_t>(form.palette.size / 3, 256));
  for (unsigned i = 0; i < num_colours_; i++) {
    std::memcpy(table_[i], form.palette.data + 3 * i, 3);
    table_[i][3] = i < form.transparency.size ? form.transparency.data[i] : uint8_t{255};
    if (channels_ == 1) table_[i][0] = grey_of(table_[i], 1);
  }
}

bool Expander::expand_by_table(const uint8_t* samples, size_t width, uint8_t* out) {
  const uint8_t* indexes = samples;
  if (form_.depth < 8) {
    indexes_.resize(width);
    unpack(samples, width, form_.depth, indexes_.data());
    indexes = indexes_.data();
  }
  if (num_colours_ < 256) {
    uint8_t most = 0;
    for (size_t i = 0; i < width; i++) most = std::max(most, indexes[i]);
    if (most >= num_colours_) return false;
  }
  if (channels_ == 1) {
    for (size_t i = 0; i < width; i++) out[i] = table_[indexes[i]][0];
  } else if (channels_ == 3) {
    for (size_t i = 0; i < width; i++) std::memcpy(out + 3 * i, table_[indexes[i]], 3);
  } else {
    for (size_t i = 0; i < width; i++) std::memcpy(out + 4 * i, table_[indexes[i]], 4);
  }
  return true;
}

bool Expander::expand(const uint8_t* samples, size_t width, uint8_t* out) {
  if (by_table_) return expand_by_table(samples, width, out);
  kExpand[samples_of(form_.colour) - 1][form_.depth / 16](samples, width, hides_ ? hidden_ : nullptr, channels_, out);
  return true;
}

}  // namespace penstock
