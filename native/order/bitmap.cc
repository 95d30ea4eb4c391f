#include "order/bitmap.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr size_t kLanes = 8;

// Ones of each byte, added up from the lowest: byte i of the result is the number of ones in bytes 0…i. The plain
// instruction set has no popcount, and calling for it is no faster.
uint64_t count_by_bytes(uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555ull;
  word = (word & 0x3333333333333333ull) + ((word >> 2) & 0x3333333333333333ull);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
  return word * 0x0101010101010101ull;
}

// The position of the k-th one, which exists.
int select_in_word(uint64_t word, uint64_t counts, int64_t k) {
  int place = 0;
  int64_t before = 0;
  for (;; place += 8) {
    const auto upto = static_cast<int64_t>(counts >> place & 0xff);
    if (upto > k) break;
    before = upto;
  }
  uint64_t byte = word >> place & 0xff;
  for (int64_t skipped = before; skipped < k; skipped++) byte &= byte - 1;
  return place + __builtin_ctzll(byte);
}

uint64_t load_word(Span bitmap, size_t at) {
  if (bitmap.size - at >= 8) return load64(bitmap.data + at);
  uint64_t word = 0;
  std::memcpy(&word, bitmap.data + at, bitmap.size - at);
  return word;
}

// Ranks that are not in order may lead to any block; missing ranks are not found.
int64_t select_in_block(Span bitmap, size_t block, int64_t rank, int64_t k) {
  if (rank < 0 || rank > k) return -1;
  int64_t left = k - rank;
  size_t at = block * kRankBytes;
  const size_t end = std::min(at + kRankBytes, bitmap.size);
  for (; at < end; at += 8) {
    const uint64_t word = load_word(bitmap, at), counts = count_by_bytes(word);
    const auto ones = static_cast<int64_t>(counts >> 56);
    if (left < ones) return static_cast<int64_t>(at * 8) + select_in_word(word, counts, left);
    left -= ones;
  }
  return -1;
}

// The last block with a rank of at most k, for some k at once: each step waits for memory, so they wait together.
template <size_t kCount>
void find_blocks(const int64_t* ranks, size_t num_ranks, const int64_t* wanted, size_t* blocks) {
  for (size_t lane = 0; lane < kCount; lane++) blocks[lane] = 0;
  for (size_t left = num_ranks; left > 1;) {
    const size_t half = left / 2;
    for (size_t lane = 0; lane < kCount; lane++) {
      blocks[lane] += ranks[blocks[lane] + half] <= wanted[lane] ? half : 0;
    }
    left -= half;
  }
}

}  // namespace

bool select_bits(Span bitmap, const int64_t* ranks, size_t num_ranks, const int64_t* wanted, size_t count,
                 int64_t* out) {
  if (num_ranks == 0) return count == 0;
  int64_t signs = 0;  // negative as soon as one is not found
  size_t i = 0;
  const auto select_from = [&](const size_t* blocks, size_t lanes) {
    for (size_t lane = 0; lane < lanes; lane++, i++) {
      out[i] = select_in_block(bitmap, blocks[lane], ranks[blocks[lane]], wanted[i]);
      signs |= out[i];
    }
  };
  size_t blocks[kLanes];
  while (count - i >= kLanes) {
    find_blocks<kLanes>(ranks, num_ranks, wanted + i, blocks);
    select_from(blocks, kLanes);
  }
  while (i < count) {
    find_blocks<1>(ranks, num_ranks, wanted + i, blocks);
    select_from(blocks, 1);
  }
  return signs >= 0;
}

}  // namespace penstock
