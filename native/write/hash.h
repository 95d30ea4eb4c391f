// Hashes that decide which split a row goes to and in which order rows are written. They are part of the format: data
// sets are re-made from them, so what a function returns must never change (tests/golden holds them to it).
#pragma once

#include <cstdint>

#include "foundation/bytes.h"

namespace penstock {

// A bijection of 64-bit words in which every output bit depends on every input bit (Stafford's mix 13, as in
// SplitMix64).
inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A word that stands for `seed` in keyed hashes.
inline uint64_t key_of(uint64_t seed) { return mix(seed + 0x9e3779b97f4a7c15ull); }

// The keyed form of mix: another bijection for each key.
inline uint64_t mix_keyed(uint64_t key, uint64_t x) { return mix(mix(x ^ key) + key); }

// Hash of a byte string; nothing is read past its end.
uint64_t hash_bytes(Span bytes);

// The hash of each of several byte strings, which takes less time than one after the other.
void hash_values(const Span* values, size_t count, uint64_t* out);

// A word for a number, the same for an integer and for the float that equals it, so that a column which turns from
// whole numbers to fractions keeps its rows where they are. It is not mixed yet.
uint64_t word_of(double value);
uint64_t word_of(int64_t value);

}  // namespace penstock
