// The symbols of one block of a deflate stream: literals, and copies of what came out before.
#pragma once

#include "image/bitreader.h"
#include "image/huffman.h"
#include "image/inflate.h"

namespace penstock {

struct BlockCodes {
  LiteralTable literals;
  DistanceTable distances;
};

struct Inflated {
  uint8_t* begin;
  uint8_t* at;
  uint8_t* end;       // of the bytes expected
  uint8_t* room_end;  // of what may be written
};

// Runs the symbols of a block up to its end. What comes out may end behind `output.end`: the caller looks at that.
InflateFault run_symbols(BitReader& in, const BlockCodes& codes, Inflated& output);

}  // namespace penstock
