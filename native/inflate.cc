#include "inflate.h"

#include <algorithm>

#include "adler32.h"
#include "bigendian.h"
#include "huffman.h"

namespace penstock {
namespace {

constexpr size_t kPairsPay = 1500;  // bytes of the stream that must be left for pairs of literals to be made
constexpr size_t kFastInput = 24;  // bytes that a round of the fast loop may read ahead

inline void store64(uint8_t* p, uint64_t value) { std::memcpy(p, &value, sizeof value); }

// The stream as bits, the first one lowest. `buffer` may hold more bits of the stream than `count` says: they are or-ed
// in again when they are due.
struct BitReader {
  const uint8_t* at;
  const uint8_t* end;
  uint64_t buffer = 0;
  unsigned count = 0;

  explicit BitReader(Span bytes) : at(bytes.begin()), end(bytes.end()) {}

  size_t left() const { return static_cast<size_t>(end - at); }
  // At least 56 bits; only where eight bytes can be read.
  void refill_fast() {
    buffer |= load64(at) << count;
    at += (63 - count) >> 3;
    count |= 56;
  }
  void refill() {
    for (; count < 56 && at < end; count += 8) buffer |= static_cast<uint64_t>(*at++) << count;
  }
  void drop(unsigned bits) {
    buffer >>= bits;
    count -= bits;
  }
  unsigned peek(unsigned bits) const { return static_cast<unsigned>(buffer) & ((1u << bits) - 1); }
  unsigned take(unsigned bits) {
    const unsigned value = peek(bits);
    drop(bits);
    return value;
  }
  // Back to the first whole byte that was not taken.
  void align() {
    at -= count >> 3;
    buffer = 0;
    count = 0;
  }
};

// The base of an entry and its extra number, which follows the code in `bits`.
inline unsigned number_of(HuffmanEntry entry, uint64_t bits) {
  const auto taken = static_cast<uint32_t>(bits & ((uint64_t{1} << bits_of(entry)) - 1));
  return value_of(entry) + (taken >> code_bits_of(entry));
}

inline HuffmanEntry follow(const HuffmanEntry* table, HuffmanEntry link, uint64_t bits) {
  return table[value_of(link) + (static_cast<unsigned>(bits) & ((1u << code_bits_of(link)) - 1))];
}

// Copies `length` bytes from `distance` before; up to 32 bytes behind them are written over.
inline void copy_fast(uint8_t* out, size_t distance, size_t length) {
  const uint8_t* from = out - distance;
  uint8_t* const stop = out + length;
  if (PENSTOCK_LIKELY(distance >= 8)) {
    do {
      store64(out, load64(from));
      store64(out + 8, load64(from + 8));
      out += 16;
      from += 16;
    } while (out < stop);
    return;
  }
  // Fewer bytes than a word come again and again: a word is made of them once.
  const unsigned shift = static_cast<unsigned>(distance) * 8;
  uint64_t word = load64(from) & ((uint64_t{1} << shift) - 1);
  word |= word << shift;
  if (shift < 32) word |= word << 2 * shift;
  if (shift < 16) word |= word << 4 * shift;
  const size_t step = 8 - 8 % distance;
  do {
    store64(out, word);
    out += step;
  } while (out < stop);
}

// One byte or two; two are written in any case.
inline void put_literals(BitReader& bits, HuffmanEntry entry, uint8_t*& out) {
  const auto both = static_cast<uint16_t>(value_of(entry));
  std::memcpy(out, &both, sizeof both);
  out += num_literals_of(entry);
  bits.drop(bits_of(entry));
}

struct Codes {
  LiteralTable literals;
  DistanceTable distances;
};

struct Output {
  uint8_t* begin;
  uint8_t* at;
  uint8_t* end;       // of the bytes expected
  uint8_t* room_end;  // of what may be written
};

// Symbols as long as neither the stream nor the room for what comes out is near its end. `ended` says that the block is.
__attribute__((always_inline)) inline InflateFault run_fast(BitReader& in, const Codes& codes, Output& output,
                                                            bool& ended) {
  const HuffmanEntry* const literals = codes.literals.entries;
  const HuffmanEntry* const distances = codes.distances.entries;
  constexpr unsigned kLiteralMask = (1u << kLiteralIndexBits) - 1, kDistanceMask = (1u << kDistanceIndexBits) - 1;
  BitReader bits = in;
  uint8_t* out = output.at;
  InflateFault fault = InflateFault::kNone;
  while (bits.left() >= kFastInput && output.room_end - out >= static_cast<ptrdiff_t>(kInflateSlack) &&
         out <= output.end) {
    bits.refill_fast();
    HuffmanEntry entry = literals[bits.buffer & kLiteralMask];
    // Five entries of literals take at most 55 bits; three, and a length behind them, 53.
    if (entry & kLiteral) {
      put_literals(bits, entry, out);
      entry = literals[bits.buffer & kLiteralMask];
      if (entry & kLiteral) {
        put_literals(bits, entry, out);
        entry = literals[bits.buffer & kLiteralMask];
        if (entry & kLiteral) {
          put_literals(bits, entry, out);
          entry = literals[bits.buffer & kLiteralMask];
          if (entry & kLiteral) {
            put_literals(bits, entry, out);
            entry = literals[bits.buffer & kLiteralMask];
            if (entry & kLiteral) put_literals(bits, entry, out);
            continue;
          }
        }
      }
    }
    if (PENSTOCK_UNLIKELY(entry & kSpecial)) {
      if (entry & kLink) {
        bits.drop(kLiteralIndexBits);
        entry = follow(literals, entry, bits.buffer);
      }
      if (entry & kLiteral) {
        put_literals(bits, entry, out);
        continue;
      }
      if (entry & kSpecial) {
        bits.drop(bits_of(entry));
        ended = entry & kBlockEnd;
        if (!ended) fault = InflateFault::kCode;
        break;
      }
    }
    const size_t length = number_of(entry, bits.buffer);
    bits.drop(bits_of(entry));
    bits.refill_fast();
    entry = distances[bits.buffer & kDistanceMask];
    if (PENSTOCK_UNLIKELY(entry & kSpecial)) {
      if (entry & kLink) {
        bits.drop(kDistanceIndexBits);
        entry = follow(distances, entry, bits.buffer);
      }
      if (entry & kSpecial) {
        fault = InflateFault::kCode;
        break;
      }
    }
    const size_t distance = number_of(entry, bits.buffer);
    bits.drop(bits_of(entry));
    if (PENSTOCK_UNLIKELY(distance > static_cast<size_t>(out - output.begin))) {
      fault = InflateFault::kDistance;
      break;
    }
    copy_fast(out, distance, length);
    out += length;
  }
  in = bits;
  output.at = out;
  return fault;
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"), flatten)) InflateFault run_fast_bmi2(BitReader& in, const Codes& codes,
                                                                        Output& output, bool& ended) {
  return run_fast(in, codes, output, ended);
}
#endif

InflateFault run_fast_plain(BitReader& in, const Codes& codes, Output& output, bool& ended) {
  return run_fast(in, codes, output, ended);
}

using RunFast = InflateFault (*)(BitReader&, const Codes&, Output&, bool&);

RunFast choose_run() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("bmi2")) return run_fast_bmi2;
#endif
  return run_fast_plain;
}

const RunFast run_fast_here = choose_run();

// The next symbol, its bits taken and checked to be there; `bits` are those that it began with, after a link if any.
template <typename Table>
inline bool read_symbol(BitReader& in, const Table& table, HuffmanEntry& entry, uint64_t& bits) {
  in.refill();
  entry = table.entries[in.peek(Table::index_bits)];
  if (entry & kLink) {
    if (in.count < Table::index_bits) return false;
    in.drop(Table::index_bits);
    entry = follow(table.entries, entry, in.buffer);
  }
  if (bits_of(entry) > in.count) return false;
  bits = in.buffer;
  in.drop(bits_of(entry));
  return true;
}

// The same, one symbol at a time with every limit looked at, up to the end of the block.
InflateFault run_careful(BitReader& in, const Codes& codes, Output& output) {
  HuffmanEntry entry = 0;
  uint64_t bits = 0;
  for (;;) {
    if (!read_symbol(in, codes.literals, entry, bits)) return InflateFault::kCut;
    if (entry & kSpecial) return entry & kBlockEnd ? InflateFault::kNone : InflateFault::kCode;
    if (entry & kLiteral) {
      const size_t count = num_literals_of(entry);
      if (output.at > output.end || count > static_cast<size_t>(output.end - output.at)) return InflateFault::kTooLong;
      const auto both = static_cast<uint16_t>(value_of(entry));
      std::memcpy(output.at, &both, count);
      output.at += count;
      continue;
    }
    const size_t length = number_of(entry, bits);
    if (!read_symbol(in, codes.distances, entry, bits)) return InflateFault::kCut;
    if (entry & kSpecial) return InflateFault::kCode;
    const size_t distance = number_of(entry, bits);
    if (distance > static_cast<size_t>(output.at - output.begin)) return InflateFault::kDistance;
    if (output.at > output.end || length > static_cast<size_t>(output.end - output.at)) return InflateFault::kTooLong;
    for (size_t i = 0; i < length; i++, output.at++) *output.at = *(output.at - distance);
  }
}

InflateFault run_block(BitReader& in, const Codes& codes, Output& output) {
  bool ended = false;
  const InflateFault fault = run_fast_here(in, codes, output, ended);
  if (fault != InflateFault::kNone || ended) return fault;
  return run_careful(in, codes, output);
}

InflateFault run_stored(BitReader& in, Output& output) {
  in.drop(in.count & 7);
  in.align();
  if (in.left() < 4) return InflateFault::kCut;
  const uint32_t sizes = load32(in.at);
  const size_t size = sizes & 0xffff;
  if ((sizes >> 16 ^ 0xffff) != size) return InflateFault::kStored;
  in.at += 4;
  if (size > in.left()) return InflateFault::kCut;
  if (output.at > output.end || size > static_cast<size_t>(output.end - output.at)) return InflateFault::kTooLong;
  if (size != 0) std::memcpy(output.at, in.at, size);
  output.at += size;
  in.at += size;
  return InflateFault::kNone;
}

struct FixedCodes {
  Codes codes;

  FixedCodes() {
    uint8_t lengths[288];
    std::fill(lengths, lengths + 144, uint8_t{8});
    std::fill(lengths + 144, lengths + 256, uint8_t{9});
    std::fill(lengths + 256, lengths + 280, uint8_t{7});
    std::fill(lengths + 280, lengths + 288, uint8_t{8});
    make_literal_table(lengths, 288, false, codes.literals);
    std::fill(lengths, lengths + 32, uint8_t{5});
    make_distance_table(lengths, 32, codes.distances);
  }
};

const Codes& fixed_codes() {
  static const FixedCodes instance;
  return instance.codes;
}

// Code lengths, in which runs are written short: 16 repeats the last one, 17 and 18 are zeros.
InflateFault read_lengths(BitReader& in, const LengthTable& table, uint8_t* lengths, size_t count) {
  for (size_t at = 0; at < count;) {
    in.refill();
    const HuffmanEntry entry = table.entries[in.peek(kLengthIndexBits)];
    const unsigned symbol = value_of(entry);
    const unsigned extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    if (bits_of(entry) + extra > in.count) return InflateFault::kCut;
    in.drop(bits_of(entry));
    if (symbol < 16) {
      lengths[at++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && at == 0) return InflateFault::kLengths;
    const size_t times = in.take(extra) + (symbol == 18 ? 11 : 3);
    if (times > count - at) return InflateFault::kLengths;
    std::memset(lengths + at, symbol == 16 ? lengths[at - 1] : 0, times);
    at += times;
  }
  return InflateFault::kNone;
}

InflateFault read_codes(BitReader& in, bool with_pairs, Codes& codes) {
  static constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  in.refill();
  if (in.count < 14) return InflateFault::kCut;
  const size_t num_literals = in.take(5) + 257, num_distances = in.take(5) + 1, num_lengths = in.take(4) + 4;
  if (num_literals > 286 || num_distances > 30) return InflateFault::kLengths;
  uint8_t lengths[286 + 30] = {};
  for (size_t i = 0; i < num_lengths; i++) {
    in.refill();
    if (in.count < 3) return InflateFault::kCut;
    lengths[kOrder[i]] = static_cast<uint8_t>(in.take(3));
  }
  LengthTable table;
  if (!make_length_table(lengths, 19, table)) return InflateFault::kLengths;
  const InflateFault fault = read_lengths(in, table, lengths, num_literals + num_distances);
  if (fault != InflateFault::kNone) return fault;
  const bool fits = make_literal_table(lengths, num_literals, with_pairs, codes.literals) &&
                    make_distance_table(lengths + num_literals, num_distances, codes.distances);
  return fits ? InflateFault::kNone : InflateFault::kLengths;
}

InflateFault run_blocks(BitReader& in, Output& output) {
  Codes own;
  for (bool is_last = false; !is_last;) {
    in.refill();
    if (in.count < 3) return InflateFault::kCut;
    is_last = in.take(1) != 0;
    const unsigned type = in.take(2);
    InflateFault fault = InflateFault::kBlock;
    if (type == 0) fault = run_stored(in, output);
    if (type == 1) fault = run_block(in, fixed_codes(), output);
    if (type == 2) fault = read_codes(in, in.left() >= kPairsPay, own);
    if (type == 2 && fault == InflateFault::kNone) fault = run_block(in, own, output);
    if (fault != InflateFault::kNone) return fault;
    if (output.at > output.end) return InflateFault::kTooLong;
  }
  return output.at == output.end ? InflateFault::kNone : InflateFault::kTooShort;
}

}  // namespace

const char* words_of(InflateFault fault) {
  static constexpr const char* kWords[] = {
      "is sound",
      "is no zlib stream",
      "has a block of a type that there is not",
      "has a stored block whose size is damaged",
      "has a block whose code lengths make no code",
      "has a code that stands for nothing",
      "copies from before its beginning",
      "is cut short",
      "gives more bytes than expected",
      "gives fewer bytes than expected",
      "gives bytes that its checksum does not fit",
  };
  return kWords[static_cast<size_t>(fault)];
}

InflateFault inflate_zlib(Span stream, uint8_t* out, size_t size, size_t room) {
  if (stream.size < 2) return InflateFault::kCut;
  const unsigned header = big16(stream.data);
  if ((header >> 8 & 15) != 8 || header >> 12 > 7 || header % 31 != 0 || (header & 0x20) != 0) {
    return InflateFault::kHeader;
  }
  BitReader in(Span{stream.data + 2, stream.size - 2});
  Output output{out, out, out + size, out + room};
  const InflateFault fault = run_blocks(in, output);
  if (fault != InflateFault::kNone) return fault;
  in.drop(in.count & 7);
  in.align();
  if (in.left() < 4) return InflateFault::kCut;
  return big32(in.at) == adler32(out, size) ? InflateFault::kNone : InflateFault::kChecksum;
}

}  // namespace penstock
