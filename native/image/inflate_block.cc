#include "image/inflate_block.h"

#include "foundation/cpu.h"

namespace penstock {
namespace {

constexpr size_t kFastInput = 24;  // bytes that a round of the fast loop may read ahead

inline void store64(uint8_t* p, uint64_t value) { std::memcpy(p, &value, sizeof value); }

// The base of an entry and its extra number, which follows the code in `bits`.
inline unsigned number_of(HuffmanEntry entry, uint64_t bits) {
  const auto taken = static_cast<uint32_t>(bits & ((uint64_t{1} << bits_of(entry)) - 1));
  return value_of(entry) + (taken >> code_bits_of(entry));
}

inline HuffmanEntry follow(const HuffmanEntry* table, HuffmanEntry link, uint64_t bits) {
  return table[value_of(link) + (static_cast<unsigned>(bits) & ((1u << code_bits_of(link)) - 1))];
}

// Copies `length` bytes from `distance` before; up to 32 bytes after them are overwritten.
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

// The distance of a copy, and the copy.
__attribute__((always_inline)) inline InflateFault run_copy(BitReader& bits, const HuffmanEntry* distances,
                                                            size_t length, const uint8_t* begin, uint8_t*& out) {
  bits.refill_fast();
  HuffmanEntry entry = distances[bits.peek(kDistanceIndexBits)];
  if (PENSTOCK_UNLIKELY(entry & kSpecial)) {
    if (entry & kLink) {
      bits.drop(kDistanceIndexBits);
      entry = follow(distances, entry, bits.buffer);
    }
    if (entry & kSpecial) return InflateFault::kCode;
  }
  const size_t distance = number_of(entry, bits.buffer);
  bits.drop(bits_of(entry));
  if (PENSTOCK_UNLIKELY(distance > static_cast<size_t>(out - begin))) return InflateFault::kDistance;
  copy_fast(out, distance, length);
  out += length;
  return InflateFault::kNone;
}

// Symbols as long as neither the stream nor the room for the output is near its end; `ended` says whether the block
// did.
__attribute__((always_inline)) inline InflateFault run_fast(BitReader& in, const BlockCodes& codes, Inflated& output,
                                                            bool& ended) {
  const HuffmanEntry* const literals = codes.literals.entries;
  constexpr unsigned kLiteralMask = (1u << kLiteralIndexBits) - 1;
  BitReader bits = in;
  uint8_t* out = output.at;
  InflateFault fault = InflateFault::kNone;
  while (bits.left() >= kFastInput && output.room_end - out >= static_cast<ptrdiff_t>(kInflateSlack) &&
         out <= output.end) {
    bits.refill_fast();
    HuffmanEntry entry = literals[bits.buffer & kLiteralMask];
    // Five entries of literals take at most 55 bits; three, and a length after them, 53.
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
    fault = run_copy(bits, codes.distances.entries, length, output.begin, out);
    if (PENSTOCK_UNLIKELY(fault != InflateFault::kNone)) break;
  }
  in = bits;
  output.at = out;
  return fault;
}

using RunFast = InflateFault (*)(BitReader&, const BlockCodes&, Inflated&, bool&);

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"), flatten)) InflateFault run_by_bmi2(BitReader& in, const BlockCodes& codes,
                                                                      Inflated& output, bool& ended) {
  return run_fast(in, codes, output, ended);
}

const RunFast run_fast_bmi2 = has_bmi2() ? run_by_bmi2 : nullptr;
#else
const RunFast run_fast_bmi2 = nullptr;
#endif

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

// The same, one symbol at a time with every limit checked, up to the end of the block.
InflateFault run_careful(BitReader& in, const BlockCodes& codes, Inflated& output) {
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

}  // namespace

InflateFault run_symbols(BitReader& in, const BlockCodes& codes, Inflated& output) {
  bool ended = false;
  const InflateFault fault =
      run_fast_bmi2 != nullptr ? run_fast_bmi2(in, codes, output, ended) : run_fast(in, codes, output, ended);
  if (fault != InflateFault::kNone || ended) return fault;
  return run_careful(in, codes, output);
}

}  // namespace penstock
