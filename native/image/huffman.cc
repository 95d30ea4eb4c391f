#include "image/huffman.h"

#include <cstring>

namespace penstock {
namespace {

constexpr HuffmanEntry entry_of(unsigned value, unsigned extra_bits, HuffmanEntry flags) {
  return value << 16 | flags | extra_bits;
}

// What each symbol means, but for its code: symbols 0 … 255 are bytes, 256 ends a block, the others are lengths.
struct LiteralMeanings {
  HuffmanEntry of[288];

  constexpr LiteralMeanings() : of() {
    for (unsigned i = 0; i < 256; i++) of[i] = entry_of(i, 0, kLiteral);
    of[256] = entry_of(0, 0, kSpecial | kBlockEnd);
    unsigned length = 3;
    for (unsigned i = 257; i < 285; i++) {
      const unsigned extra = i < 265 ? 0 : (i - 261) / 4;
      of[i] = entry_of(length, extra, 0);
      length += 1u << extra;
    }
    of[285] = entry_of(258, 0, 0);
    of[286] = of[287] = entry_of(0, 0, kSpecial);
  }
};

struct DistanceMeanings {
  HuffmanEntry of[32];

  constexpr DistanceMeanings() : of() {
    unsigned distance = 1;
    for (unsigned i = 0; i < 30; i++) {
      const unsigned extra = i < 4 ? 0 : (i - 2) / 2;
      of[i] = entry_of(distance, extra, 0);
      distance += 1u << extra;
    }
    of[30] = of[31] = entry_of(0, 0, kSpecial);
  }
};

struct LengthMeanings {
  HuffmanEntry of[19];

  constexpr LengthMeanings() : of() {
    for (unsigned i = 0; i < 19; i++) of[i] = entry_of(i, 0, 0);
  }
};

constexpr LiteralMeanings kLiterals;
constexpr DistanceMeanings kDistances;
constexpr LengthMeanings kLengths;

constexpr HuffmanEntry with_code(HuffmanEntry meaning, unsigned bits) {
  return meaning + ((meaning & kLiteral ? 1 : bits) << 8 | bits);
}

// The code that follows `code` among the codes of `bits` bits, both with their first bit lowest, as they are in the
// stream.
inline unsigned next_reversed(unsigned code, unsigned bits) {
  const unsigned zeros = ~code & ((1u << bits) - 1);
  if (zeros == 0) return 0;
  const unsigned highest = 1u << (31 - static_cast<unsigned>(__builtin_clz(zeros)));
  return (code & (highest - 1)) | highest;
}

// The symbols that have a code, in the order of their codes.
struct Sorted {
  unsigned counts[kMostCodeBits + 1] = {};
  uint16_t symbols[288];
  unsigned longest = 0;
  size_t num_codes = 0;
  int room = 1;  // codes of the longest size that are not taken; below 0 if too many are

  Sorted(const uint8_t* lengths, size_t count) {
    for (size_t i = 0; i < count; i++) counts[lengths[i]]++;
    counts[0] = 0;
    unsigned places[kMostCodeBits + 1] = {};
    for (unsigned bits = 1; bits <= kMostCodeBits; bits++) {
      if (counts[bits] != 0) longest = bits;
      num_codes += counts[bits];
      if (bits < kMostCodeBits) places[bits + 1] = places[bits] + counts[bits];
      if (room >= 0) room = 2 * room - static_cast<int>(counts[bits]);
    }
    for (size_t i = 0; i < count; i++) {
      if (lengths[i] != 0) symbols[places[lengths[i]]++] = static_cast<uint16_t>(i);
    }
  }
};

// How many bits index the second table that begins with a code of `bits` bits: as many as its longest code needs.
unsigned second_bits(const Sorted& sorted, unsigned index_bits, unsigned bits, unsigned left_of_size) {
  unsigned chosen = bits - index_bits;
  unsigned taken = left_of_size;
  while (bits < sorted.longest && taken < 1u << chosen) {
    bits++;
    chosen++;
    taken = 2 * taken + sorted.counts[bits];
  }
  return chosen;
}

template <typename Table>
bool fill(const Sorted& sorted, const HuffmanEntry* meanings, Table& table) {
  constexpr unsigned kIndexBits = Table::index_bits;
  HuffmanEntry* const entries = table.entries;
  const uint16_t* symbol = sorted.symbols;
  unsigned code = 0;
  // Short codes: the table of all codes up to some size, doubled for each size more.
  const unsigned most = sorted.longest < kIndexBits ? sorted.longest : kIndexBits;
  size_t size = 1;
  entries[0] = 0;
  for (unsigned bits = 1; bits <= most; bits++) {
    std::memcpy(entries + size, entries, size * sizeof *entries);
    size *= 2;
    for (unsigned i = 0; i < sorted.counts[bits]; i++) {
      entries[code] = with_code(meanings[*symbol++], bits);
      code = next_reversed(code, bits);
    }
  }
  for (; size < size_t{1} << kIndexBits; size *= 2) std::memcpy(entries + size, entries, size * sizeof *entries);
  // Long ones: those that begin alike share a second table.
  unsigned prefix = ~0u, second = 0;
  size_t start = 0;
  for (unsigned bits = kIndexBits + 1; bits <= sorted.longest; bits++) {
    for (unsigned left = sorted.counts[bits]; left > 0; left--) {
      const unsigned begins_with = code & ((1u << kIndexBits) - 1);
      if (begins_with != prefix) {
        prefix = begins_with;
        start = size;
        second = second_bits(sorted, kIndexBits, bits, left);
        if (size_t{1} << second > Table::most_entries - size) return false;  // never: see huffman.h
        size += size_t{1} << second;
        entries[prefix] = static_cast<HuffmanEntry>(start) << 16 | kSpecial | kLink | second << 8 | kIndexBits;
      }
      const HuffmanEntry entry = with_code(meanings[*symbol++], bits - kIndexBits);
      for (size_t at = code >> kIndexBits; at < size_t{1} << second; at += size_t{1} << (bits - kIndexBits)) {
        entries[start + at] = entry;
      }
      code = next_reversed(code, bits);
    }
  }
  return true;
}

// A table of no code, or of one code of one bit: its other half is no code.
template <typename Table>
void fill_sparse(const Sorted& sorted, const HuffmanEntry* meanings, Table& table) {
  for (size_t i = 0; i < size_t{1} << Table::index_bits; i++) table.entries[i] = entry_of(0, 0, kSpecial) | 1;
  if (sorted.num_codes == 0) return;
  const HuffmanEntry entry = with_code(meanings[sorted.symbols[0]], 1);
  for (size_t i = 0; i < size_t{1} << Table::index_bits; i += 2) table.entries[i] = entry;
}

template <typename Table>
bool make_table(const Sorted& sorted, const HuffmanEntry* meanings, bool may_be_sparse, Table& table) {
  if (sorted.room == 0) return fill(sorted, meanings, table);
  if (sorted.room < 0 || !may_be_sparse || sorted.longest > 1) return false;
  fill_sparse(sorted, meanings, table);
  return true;
}

// Downwards, for the successor of a code lies at a lower index, and must still be one literal.
void pair_literals(LiteralTable& table) {
  for (size_t i = size_t{1} << kLiteralIndexBits; i-- > 0;) {
    const HuffmanEntry first = table.entries[i], second = table.entries[i >> bits_of(first)];
    const unsigned bits = bits_of(first) + bits_of(second);
    if ((first & second & kLiteral) == 0 || bits > kLiteralIndexBits) continue;
    table.entries[i] = (value_of(second) << 8 | value_of(first)) << 16 | kLiteral | 2u << 8 | bits;
  }
}

}  // namespace

bool make_literal_table(const uint8_t* lengths, size_t count, bool with_pairs, LiteralTable& table) {
  if (lengths[256] == 0) return false;  // a block that could not end
  if (!make_table(Sorted(lengths, count), kLiterals.of, true, table)) return false;
  if (with_pairs) pair_literals(table);
  return true;
}

bool make_distance_table(const uint8_t* lengths, size_t count, DistanceTable& table) {
  return make_table(Sorted(lengths, count), kDistances.of, true, table);
}

bool make_length_table(const uint8_t* lengths, size_t count, LengthTable& table) {
  return make_table(Sorted(lengths, count), kLengths.of, false, table);
}

}  // namespace penstock
