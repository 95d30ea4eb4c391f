#include "plain_inflate.h"

#include <algorithm>

namespace penstock::fuzz {
namespace {

struct Wrong {};  // thrown at anything that is

class Bits {
 public:
  explicit Bits(Span bytes) : bytes_(bytes) {}

  unsigned take(unsigned count) {
    unsigned value = 0;
    for (unsigned i = 0; i < count; i++) value |= next() << i;
    return value;
  }
  unsigned next() {
    if (at_ / 8 >= bytes_.size) throw Wrong();
    const unsigned bit = bytes_.data[at_ / 8] >> at_ % 8 & 1u;
    at_++;
    return bit;
  }
  void align() { at_ = (at_ + 7) / 8 * 8; }

 private:
  Span bytes_;
  size_t at_ = 0;
};

// Codes of each length in the order of their symbols, as the standard numbers them.
class Code {
 public:
  Code(const std::vector<unsigned>& lengths, bool may_be_sparse) {
    for (unsigned bits = 1; bits <= 15; bits++) {
      for (size_t i = 0; i < lengths.size(); i++) {
        if (lengths[i] == bits) symbols_[bits].push_back(static_cast<unsigned>(i));
      }
    }
    long room = 1;
    size_t count = 0;
    for (const std::vector<unsigned>& each : symbols_) {
      if (&each != symbols_) room = 2 * room - static_cast<long>(each.size());
      if (room < 0) throw Wrong();
      count += each.size();
    }
    const bool is_sparse = count == 0 || (count == 1 && symbols_[1].size() == 1);
    if (room > 0 && !(may_be_sparse && is_sparse)) throw Wrong();
  }

  unsigned read(Bits& bits) const {
    unsigned code = 0, first = 0;
    for (unsigned length = 1; length <= 15; length++) {
      code = 2 * code + bits.next();
      first *= 2;
      if (code - first < symbols_[length].size()) return symbols_[length][code - first];
      first += static_cast<unsigned>(symbols_[length].size());
    }
    throw Wrong();
  }

 private:
  std::vector<unsigned> symbols_[16];
};

struct Codes {
  Code literals, distances;
};

Codes fixed_codes() {
  std::vector<unsigned> lengths(288, 8);
  std::fill(lengths.begin() + 144, lengths.begin() + 256, 9);
  std::fill(lengths.begin() + 256, lengths.begin() + 280, 7);
  return {Code(lengths, false), Code(std::vector<unsigned>(32, 5), false)};
}

Codes read_codes(Bits& bits) {
  static constexpr unsigned kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const size_t num_literals = bits.take(5) + 257, num_distances = bits.take(5) + 1, count = bits.take(4) + 4;
  if (num_literals > 286 || num_distances > 30) throw Wrong();
  std::vector<unsigned> of_lengths(19), lengths;
  for (size_t i = 0; i < count; i++) of_lengths[kOrder[i]] = bits.take(3);
  const Code code(of_lengths, false);
  while (lengths.size() < num_literals + num_distances) {
    const unsigned symbol = code.read(bits);
    if (symbol < 16) {
      lengths.push_back(symbol);
      continue;
    }
    if (symbol == 16 && lengths.empty()) throw Wrong();
    const unsigned repeated = symbol == 16 ? lengths.back() : 0;
    const unsigned times = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    lengths.insert(lengths.end(), times, repeated);
  }
  if (lengths.size() > num_literals + num_distances || lengths[256] == 0) throw Wrong();
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(num_literals);
  return {Code({lengths.begin(), middle}, true), Code({middle, lengths.end()}, true)};
}

// `least` plus an extra number whose bits grow by one with every `step` symbols.
unsigned read_number(Bits& bits, unsigned symbol, unsigned step, unsigned least) {
  unsigned extra = 0;
  for (unsigned i = 0; i < symbol; i++) {
    extra = i < 2 * step ? 0 : i / step - 1;
    least += 1u << extra;
  }
  extra = symbol < 2 * step ? 0 : symbol / step - 1;
  return least + bits.take(extra);
}

void run_block(Bits& bits, const Codes& codes, size_t size, std::vector<uint8_t>& out) {
  for (;;) {
    const unsigned symbol = codes.literals.read(bits);
    if (symbol == 256) return;
    if (symbol > 285) throw Wrong();
    if (symbol < 256) {
      out.push_back(static_cast<uint8_t>(symbol));
    } else {
      const unsigned length = symbol == 285 ? 258 : read_number(bits, symbol - 257, 4, 3);
      const unsigned which = codes.distances.read(bits);
      if (which > 29) throw Wrong();
      const size_t distance = read_number(bits, which, 2, 1);
      if (distance > out.size()) throw Wrong();
      for (unsigned i = 0; i < length; i++) out.push_back(out[out.size() - distance]);
    }
    if (out.size() > size) throw Wrong();
  }
}

void run_stored(Bits& bits, size_t size, std::vector<uint8_t>& out) {
  bits.align();
  const unsigned count = bits.take(16), complement = bits.take(16);
  if (count != (complement ^ 0xffff) || count > size - out.size()) throw Wrong();
  for (unsigned i = 0; i < count; i++) out.push_back(static_cast<uint8_t>(bits.take(8)));
}

void run_stream(Bits& bits, size_t size, std::vector<uint8_t>& out) {
  const unsigned method = bits.take(8), flags = bits.take(8);
  if ((method & 15) != 8 || method >> 4 > 7 || (method * 256 + flags) % 31 != 0 || (flags & 0x20) != 0) throw Wrong();
  for (bool is_last = false; !is_last;) {
    is_last = bits.next() != 0;
    const unsigned type = bits.take(2);
    if (type == 3) throw Wrong();
    if (type == 0) run_stored(bits, size, out);
    if (type == 1) run_block(bits, fixed_codes(), size, out);
    if (type == 2) run_block(bits, read_codes(bits), size, out);
  }
  bits.align();
  uint32_t checksum = 0;
  for (int i = 0; i < 4; i++) checksum = checksum << 8 | bits.take(8);
  if (out.size() != size || checksum != adler_of(Span{out.data(), out.size()})) throw Wrong();
}

}  // namespace

bool inflate_plainly(Span stream, size_t size, std::vector<uint8_t>& out) {
  Bits bits(stream);
  out.clear();
  try {
    run_stream(bits, size, out);
  } catch (const Wrong&) {
    return false;
  }
  return true;
}

uint32_t adler_of(Span bytes) {
  uint32_t first = 1, second = 0;
  for (size_t i = 0; i < bytes.size; i++) {
    first = (first + bytes.data[i]) % 65521;
    second = (second + first) % 65521;
  }
  return second << 16 | first;
}

}  // namespace penstock::fuzz
