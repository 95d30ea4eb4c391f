// Inflating a zlib stream (RFC 1950, 1951) whose inflated size is known beforehand, in one call.
#pragma once

#include "foundation/bytes.h"

namespace penstock {

enum class InflateFault : uint8_t {
  kNone,
  kHeader,    // no zlib stream, or one with a dictionary
  kBlock,     // a block of an unknown type
  kStored,    // the size of a stored block and its complement disagree
  kLengths,   // the code lengths of a block make no code
  kCode,      // a code without a symbol
  kDistance,  // a copy from before the beginning
  kCut,       // the stream ends before its end
  kTooLong,   // more bytes than expected
  kTooShort,  // fewer bytes than expected
  kChecksum,  // the Adler-32 of what came out is another
};

// The fault of a stream, as the end of a sentence about it.
const char* words_of(InflateFault fault);

// Bytes after the expected ones that may be overwritten, so that the last of them are made as fast as the others.
inline constexpr size_t kInflateSlack = 320;

// No stream grows more than this when it is inflated: 258 bytes for two bits.
inline constexpr uint64_t kMostInflation = 1032;

// Inflates `stream` into `out`, which must give exactly `size` bytes; the `room` that may be written there is `size` or
// more. Bytes after the end of the stream are ignored. Nothing of `out` is of use after a fault.
InflateFault inflate_zlib(Span stream, uint8_t* out, size_t size, size_t room);

}  // namespace penstock
