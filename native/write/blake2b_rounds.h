// The rounds of BLAKE2b, for one hash or for one hash per lane of a vector.
#pragma once

#include <cstdint>

namespace penstock::blake2b {

inline constexpr uint64_t kStart[8] = {0x6a09e667f3bcc908ull, 0xbb67ae8584caa73bull, 0x3c6ef372fe94f82bull,
                                       0xa54ff53a5f1d36f1ull, 0x510e527fade682d1ull, 0x9b05688c2b3e6c1full,
                                       0x1f83d9abfb41bd6bull, 0x5be0cd19137e2179ull};

// Which word of the block each half of a mixing step takes; rounds 10 and 11 repeat the first two.
inline constexpr uint8_t kOrder[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

// A word of one hash, or the same word of several hashes in a vector.
template <typename Word>
__attribute__((always_inline)) inline void rotate(Word& x, int count) {
  x = x >> count | x << (64 - count);
}

template <typename Word>
__attribute__((always_inline)) inline void mix_words(Word& a, Word& b, Word& c, Word& d, const Word& x, const Word& y) {
  a += b + x;
  d ^= a;
  rotate(d, 32);
  c += d;
  b ^= c;
  rotate(b, 24);
  a += b + y;
  d ^= a;
  rotate(d, 16);
  c += d;
  b ^= c;
  rotate(b, 63);
}

// With the round known at compile time the order is no table: a loop over rounds takes twice as long.
template <int kRound, typename Word>
__attribute__((always_inline)) inline void mix_round(Word (&v)[16], const Word (&m)[16]) {
  constexpr const uint8_t (&order)[16] = kOrder[kRound % 10];
  mix_words(v[0], v[4], v[8], v[12], m[order[0]], m[order[1]]);
  mix_words(v[1], v[5], v[9], v[13], m[order[2]], m[order[3]]);
  mix_words(v[2], v[6], v[10], v[14], m[order[4]], m[order[5]]);
  mix_words(v[3], v[7], v[11], v[15], m[order[6]], m[order[7]]);
  mix_words(v[0], v[5], v[10], v[15], m[order[8]], m[order[9]]);
  mix_words(v[1], v[6], v[11], v[12], m[order[10]], m[order[11]]);
  mix_words(v[2], v[7], v[8], v[13], m[order[12]], m[order[13]]);
  mix_words(v[3], v[4], v[9], v[14], m[order[14]], m[order[15]]);
}

template <typename Word>
__attribute__((always_inline)) inline void mix_rounds(Word (&v)[16], const Word (&m)[16]) {
  mix_round<0>(v, m);
  mix_round<1>(v, m);
  mix_round<2>(v, m);
  mix_round<3>(v, m);
  mix_round<4>(v, m);
  mix_round<5>(v, m);
  mix_round<6>(v, m);
  mix_round<7>(v, m);
  mix_round<8>(v, m);
  mix_round<9>(v, m);
  mix_round<10>(v, m);
  mix_round<11>(v, m);
}

}  // namespace penstock::blake2b
