// Tables that decode the Huffman codes of a deflate stream: one lookup for most symbols, a second for rare long ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// An entry of a table, in one word. From the lowest bit: 8 bits, how many bits of the stream it takes, including its
// extra number; 4 bits, how many of them are the code (of a link: how many index the second table; of
// literals: how many they are, 1 or 2); 4 flags; 16 bits, its value: the bytes of literals, the base of a length or a
// distance, where a second table begins.
using HuffmanEntry = uint32_t;

inline constexpr HuffmanEntry kLiteral = 0x8000;
inline constexpr HuffmanEntry kSpecial = 0x4000;  // a link, the end of the block, or a code that is none
inline constexpr HuffmanEntry kBlockEnd = 0x2000;
inline constexpr HuffmanEntry kLink = 0x1000;

inline unsigned bits_of(HuffmanEntry entry) { return entry & 0xff; }
inline unsigned code_bits_of(HuffmanEntry entry) { return entry >> 8 & 15; }
inline unsigned num_literals_of(HuffmanEntry entry) { return entry >> 8 & 15; }
inline unsigned value_of(HuffmanEntry entry) { return entry >> 16; }

inline constexpr unsigned kMostCodeBits = 15;
inline constexpr unsigned kLiteralIndexBits = 11, kDistanceIndexBits = 8, kLengthIndexBits = 7;

template <unsigned kIndexBits, size_t kMostEntries>
struct HuffmanTable {
  static constexpr unsigned index_bits = kIndexBits;
  static constexpr size_t most_entries = kMostEntries;
  HuffmanEntry entries[kMostEntries];
};

// No complete code needs more entries than these: 288 literals and lengths take at most 2342, 32 distances 402.
using LiteralTable = HuffmanTable<kLiteralIndexBits, 2560>;
using DistanceTable = HuffmanTable<kDistanceIndexBits, 512>;
using LengthTable = HuffmanTable<kLengthIndexBits, 128>;

// Fill a table from the code lengths of the symbols, 0 for a symbol without a code. False if they are no code: more
// codes than there is room for, or fewer. One code alone, of one bit, may leave room; and none at all is a code of
// distances, that no stream may use.
//
// With pairs, two literals whose codes fit an index together are one entry: photos are mostly literals of 3 to 6 bits,
// and take 0.65 of the time. To make the pairs takes 3 µs, which 1400 bytes of such a stream earn.
bool make_literal_table(const uint8_t* lengths, size_t count, bool with_pairs, LiteralTable& table);
bool make_distance_table(const uint8_t* lengths, size_t count, DistanceTable& table);
bool make_length_table(const uint8_t* lengths, size_t count, LengthTable& table);

}  // namespace penstock
