#include "batch/codes.h"

#include <algorithm>

#include "write/hash.h"

namespace penstock {

bool place_codes(const int32_t* codes, const uint8_t* present, size_t rows, const CodeSlots& slots, int32_t* out) {
  const CodeSlots to = slots;
  int32_t greatest = -1;
  // Unsigned, so that a sum which does not fit is only wrong; it is refused below.
  const auto placed = [&](int32_t code) {
    return static_cast<int32_t>(static_cast<uint32_t>(code) + static_cast<uint32_t>(to.first));
  };
  if (present == nullptr) {
    for (size_t i = 0; i < rows; i++) {
      greatest = std::max(greatest, codes[i]);
      out[i] = codes[i] >= 0 ? placed(codes[i]) : to.unknown;
    }
  } else {
    for (size_t i = 0; i < rows; i++) {
      const int32_t gone = -static_cast<int32_t>(present[i] == 0);  // all bits, or none
      const int32_t code = codes[i] | gone, instead = to.unknown ^ ((to.unknown ^ to.missing) & gone);
      greatest = std::max(greatest, code);
      out[i] = code >= 0 ? placed(code) : instead;
    }
  }
  return static_cast<int64_t>(greatest) + to.first <= INT32_MAX;
}

Bins::Bins(uint32_t num_bins, uint64_t salt) : key_(key_of(salt)), num_bins_(num_bins) {}

int32_t Bins::bin(Span bytes) const { return reduce(hash_bytes(bytes)); }

int32_t Bins::bin(int64_t value) const { return reduce(word_of(value)); }

int32_t Bins::reduce(uint64_t word) const {
  const auto product = static_cast<unsigned __int128>(mix_keyed(key_, word)) * num_bins_;
  return static_cast<int32_t>(product >> 64);
}

void multi_hot(const int32_t* codes, const int64_t* offsets, size_t rows, size_t width, bool counts, float* out) {
  std::fill_n(out, rows * width, 0.0f);
  for (size_t row = 0; row < rows; row++, out += width) {
    for (int64_t i = offsets[row]; i < offsets[row + 1]; i++) {
      const auto code = static_cast<uint32_t>(codes[i]);  // a negative one is larger than any width
      if (codes[i] < 0 || code >= width) continue;
      out[code] = counts ? out[code] + 1.0f : 1.0f;
    }
  }
}

}  // namespace penstock
