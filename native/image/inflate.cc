#include "image/inflate.h"

#include <algorithm>

#include "foundation/bytes.h"
#include "image/adler32.h"
#include "image/inflate_block.h"

namespace penstock {
namespace {

constexpr size_t kPairsPay = 1500;  // bytes that must be left of a stream for pairs of literals to pay

InflateFault run_stored(BitReader& in, Inflated& output) {
  in.drop(in.count & 7);
  in.align();
  if (in.left() < 4) return InflateFault::kCut;
  const uint32_t sizes = load32(in.at);
  const size_t size = sizes & 0xffff;
  if ((sizes >> 16 ^ 0xffff) != size) return InflateFault::kStored;
  in.at += 4;
  if (size > in.left()) return InflateFault::kCut;
  if (output.at > output.end || size > static_cast<size_t>(output.end - output.at)) return InflateFault::kTooLong;
  if (size != 0) std::memcpy(output.at, in.at, size);
  output.at += size;
  in.at += size;
  return InflateFault::kNone;
}

struct FixedCodes {
  BlockCodes codes;

  FixedCodes() {
    uint8_t lengths[288];
    std::fill(lengths, lengths + 144, uint8_t{8});
    std::fill(lengths + 144, lengths + 256, uint8_t{9});
    std::fill(lengths + 256, lengths + 280, uint8_t{7});
    std::fill(lengths + 280, lengths + 288, uint8_t{8});
    make_literal_table(lengths, 288, false, codes.literals);
    std::fill(lengths, lengths + 32, uint8_t{5});
    make_distance_table(lengths, 32, codes.distances);
  }
};

const BlockCodes& fixed_codes() {
  static const FixedCodes instance;
  return instance.codes;
}

// Code lengths, in which runs are written short: 16 repeats the last one, 17 and 18 are zeros.
InflateFault read_lengths(BitReader& in, const LengthTable& table, uint8_t* lengths, size_t count) {
  for (size_t at = 0; at < count;) {
    in.refill();
    const HuffmanEntry entry = table.entries[in.peek(kLengthIndexBits)];
    const unsigned symbol = value_of(entry);
    const unsigned extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    if (bits_of(entry) + extra > in.count) return InflateFault::kCut;
    in.drop(bits_of(entry));
    if (symbol < 16) {
      lengths[at++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && at == 0) return InflateFault::kLengths;
    const size_t times = in.take(extra) + (symbol == 18 ? 11 : 3);
    if (times > count - at) return InflateFault::kLengths;
    std::memset(lengths + at, symbol == 16 ? lengths[at - 1] : 0, times);
    at += times;
  }
  return InflateFault::kNone;
}

InflateFault read_codes(BitReader& in, bool with_pairs, BlockCodes& codes) {
  static constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  in.refill();
  if (in.count < 14) return InflateFault::kCut;
  const size_t num_literals = in.take(5) + 257, num_distances = in.take(5) + 1, num_lengths = in.take(4) + 4;
  if (num_literals > 286 || num_distances > 30) return InflateFault::kLengths;
  uint8_t lengths[286 + 30] = {};
  for (size_t i = 0; i < num_lengths; i++) {
    in.refill();
    if (in.count < 3) return InflateFault::kCut;
    lengths[kOrder[i]] = static_cast<uint8_t>(in.take(3));
  }
  LengthTable table;
  if (!make_length_table(lengths, 19, table)) return InflateFault::kLengths;
  const InflateFault fault = read_lengths(in, table, lengths, num_literals + num_distances);
  if (fault != InflateFault::kNone) return fault;
  const bool fits = make_literal_table(lengths, num_literals, with_pairs, codes.literals) &&
                    make_distance_table(lengths + num_literals, num_distances, codes.distances);
  return fits ? InflateFault::kNone : InflateFault::kLengths;
}

InflateFault run_blocks(BitReader& in, Inflated& output) {
  BlockCodes own;
  for (bool is_last = false; !is_last;) {
    in.refill();
    if (in.count < 3) return InflateFault::kCut;
    is_last = in.take(1) != 0;
    const unsigned type = in.take(2);
    InflateFault fault = InflateFault::kBlock;
    if (type == 0) fault = run_stored(in, output);
    if (type == 1) fault = run_symbols(in, fixed_codes(), output);
    if (type == 2) fault = read_codes(in, in.left() >= kPairsPay, own);
    if (type == 2 && fault == InflateFault::kNone) fault = run_symbols(in, own, output);
    if (fault != InflateFault::kNone) return fault;
    if (output.at > output.end) return InflateFault::kTooLong;
  }
  return output.at == output.end ? InflateFault::kNone : InflateFault::kTooShort;
}

}  // namespace

const char* words_of(InflateFault fault) {
  static constexpr const char* kWords[] = {
      "is sound",
      "is not a zlib stream",
      "has a block of an unknown type",
      "has a stored block whose size is damaged",
      "has a block whose code lengths are not a valid code",
      "has a code without a symbol",
      "copies from before its beginning",
      "is cut short",
      "gives more bytes than expected",
      "gives fewer bytes than expected",
      "gives bytes that its checksum does not fit",
  };
  return kWords[static_cast<size_t>(fault)];
}

InflateFault inflate_zlib(Span stream, uint8_t* out, size_t size, size_t room) {
  if (stream.size < 2) return InflateFault::kCut;
  const unsigned header = load_big16(stream.data);
  if ((header >> 8 & 15) != 8 || header >> 12 > 7 || header % 31 != 0 || (header & 0x20) != 0) {
    return InflateFault::kHeader;
  }
  BitReader in(Span{stream.data + 2, stream.size - 2});
  Inflated output{out, out, out + size, out + room};
  const InflateFault fault = run_blocks(in, output);
  if (fault != InflateFault::kNone) return fault;
  in.drop(in.count & 7);
  in.align();
  if (in.left() < 4) return InflateFault::kCut;
  return load_big32(in.at) == adler32(out, size) ? InflateFault::kNone : InflateFault::kChecksum;
}

}  // namespace penstock
