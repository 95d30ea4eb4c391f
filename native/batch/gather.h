// Strings and lists of some rows, in any order, concatenated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Where the pieces of a column begin and end, in items; of lists `stops` is `starts` + 1.
struct Pieces {
  const int64_t* starts;
  const int64_t* stops;
  size_t num_rows;
  int64_t num_items;
};

enum class GatherFault : uint8_t { kNone, kNoSuchRow, kOutOfItems, kTooMany };

// Writes where each taken piece will begin, and where the last ends: count + 1 offsets. Everything that
// gather_pieces reads is checked here.
GatherFault place_pieces(const Pieces& pieces, const int64_t* rows, size_t count, int64_t* offsets);

// Copies the pieces to where place_pieces put them.
void gather_pieces(const uint8_t* items, size_t item_bytes, const Pieces& pieces, const int64_t* rows, size_t count,
                   uint8_t* out);

}  // namespace penstock
