// The symbols of one block of a deflate stream: literals, and copies of what came out before.
#pragma once

#include "image/huffman.h"
#include "image/inflate.h"

namespace penstock {

// A deflate stream as bits, the first one lowest. `buffer` may hold more bits of the stream than `count`: they are
// or-ed in again when they are due.
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

struct BlockCodes {
  LiteralTable literals;
  DistanceTable distances;
};

struct Inflated {
  uint8_t* begin;
  uint8_t* at;
  uint8_t* end;       // of the bytes expected
  uint8_t* room_end;  // of the writable bytes
};

// Runs the symbols of a block up to its end. The output may end after `output.end`: the caller checks that.
InflateFault run_symbols(BitReader& in, const BlockCodes& codes, Inflated& output);

}  // namespace penstock
