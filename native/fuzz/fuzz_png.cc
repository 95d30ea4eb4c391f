// Encoded images, on any bytes: headers are read within bounds, inflating agrees with the plain way, and a PNG gives
// all of its pixels or none.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "foundation/bytes.h"
#include "image/adler32.h"
#include "image/crc32.h"
#include "image/huffman.h"
#include "image/image_header.h"
#include "image/inflate.h"
#include "image/jpeg.h"
#include "image/png.h"
#include "image/png_filters.h"
#include "input.h"
#include "plain_inflate.h"
#include "require.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kMostPixels = 1 << 14;

void append(Bytes& out, Span bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

void append_big(Bytes& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

void append_chunk(Bytes& file, const char* name, Span data) {
  append_big(file, static_cast<uint32_t>(data.size));
  append(file, Span{reinterpret_cast<const uint8_t*>(name), 4});
  append(file, data);
  append_big(file, crc32_by_table(file.data() + file.size() - data.size - 4, data.size + 4));
}

// A stream of stored blocks, so that any row can be in it.
Bytes store(Span bytes) {
  Bytes stream{0x78, 0x01};
  for (size_t at = 0; at < bytes.size || at == 0;) {
    const size_t size = bytes.size - at < 60000 ? bytes.size - at : 60000;
    stream.push_back(at + size == bytes.size);
    for (const size_t value : {size, size ^ 0xffff}) {
      stream.push_back(static_cast<uint8_t>(value));
      stream.push_back(static_cast<uint8_t>(value >> 8));
    }
    append(stream, Span{bytes.data + at, size});
    at += size == 0 ? 1 : size;
  }
  append_big(stream, adler_of(bytes));
  return stream;
}

// Decodes twice, over different rubbish: each pixel is written, or there is a fault, the same both times.
void decode(Span file, unsigned channels) {
  PngLayout layout;
  std::string fault = read_layout(file, kMostPixels, layout);
  if (fault.empty()) fault = check_stream(layout);
  if (!fault.empty()) return;
  REQUIRE(static_cast<uint64_t>(layout.width) * layout.height <= kMostPixels);
  REQUIRE(inflated_bytes(layout) / kMostInflation <= layout.stream_bytes);
  const size_t row = static_cast<size_t>(layout.width) * channels, gap = 5;
  Bytes tight(row * layout.height, 0x11), apart((row + gap) * layout.height, 0xee);
  fault = read_pixels(layout, channels, tight.data(), static_cast<ptrdiff_t>(row));
  REQUIRE(read_pixels(layout, channels, apart.data(), static_cast<ptrdiff_t>(row + gap)) == fault);
  for (size_t y = 0; y < layout.height; y++) {
    const uint8_t* const wide = apart.data() + y * (row + gap);
    if (fault.empty()) REQUIRE(std::memcmp(wide, tight.data() + y * row, row) == 0);
    for (size_t i = 0; i < gap; i++) REQUIRE(wide[row + i] == 0xee);
  }
}

// A sound frame around rows of the input: faults can only be in the rows.
void decode_built(Input& in) {
  static constexpr uint8_t kForms[][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3},
                                          {2, 3}, {4, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}};
  const uint8_t* const form = kForms[in.byte() % 15];
  const uint8_t choices = in.byte();
  Bytes head, file(kPngSignature, kPngSignature + 8);
  append_big(head, 1 + in.byte() % 40);
  append_big(head, 1 + in.byte() % 40);
  for (const uint8_t value : {form[0], form[1], uint8_t{0}, uint8_t{0}, static_cast<uint8_t>(choices & 1)}) {
    head.push_back(value);
  }
  append_chunk(file, "IHDR", Span{head.data(), head.size()});
  if (form[1] == 3) append_chunk(file, "PLTE", in.take(3 * (1 + in.byte() % 16)));
  if (choices & 2) append_chunk(file, "tRNS", in.take(form[1] == 3 ? in.byte() % 16 : form[1] == 2 ? 6 : 2));
  PngLayout layout;
  Bytes probe(file);
  append_chunk(probe, "IDAT", {});
  append_chunk(probe, "IEND", {});
  if (!read_layout(Span{probe.data(), probe.size()}, kMostPixels, layout).empty()) return;
  const auto size = static_cast<size_t>(inflated_bytes(layout));
  const Span given = in.rest();
  Bytes rows(size);
  const uint8_t below = choices & 4 ? kNumFilters : 255;  // rows of filters alone, or of anything
  for (size_t i = 0; i < size && given.size != 0; i++) rows[i] = given.data[i % given.size] % below;
  const Bytes stream = store(Span{rows.data(), rows.size()});
  const size_t middle = choices & 8 ? stream.size() / 2 : stream.size();
  append_chunk(file, "IDAT", Span{stream.data(), middle});
  if (middle != stream.size()) append_chunk(file, "IDAT", Span{stream.data() + middle, stream.size() - middle});
  append_chunk(file, "IEND", {});
  for (const unsigned channels : {1u, 3u, 4u}) decode(Span{file.data(), file.size()}, channels);
}

// A stream with its right checksum or its own, into exactly the room it needs and into more.
void inflate_both(Input& in) {
  const uint8_t choices = in.byte();
  const size_t size = in.number() % 4096;
  const Span given = in.rest();
  Bytes stream(given.begin(), given.end()), expected;
  bool is_sound = inflate_plainly(Span{stream.data(), stream.size()}, size, expected);
  if (!is_sound && choices & 1 && expected.size() == size && stream.size() >= 4) {
    const uint32_t checksum = __builtin_bswap32(adler_of(Span{expected.data(), expected.size()}));
    std::memcpy(stream.data() + stream.size() - 4, &checksum, 4);
    is_sound = inflate_plainly(Span{stream.data(), stream.size()}, size, expected);
  }
  for (const size_t room : {size, size + 1, size + kInflateSlack, size + 2 * kInflateSlack}) {
    Bytes out(room, 0xa5);
    const InflateFault fault = inflate_zlib(Span{stream.data(), stream.size()}, out.data(), size, room);
    REQUIRE((fault == InflateFault::kNone) == is_sound);
    if (is_sound && size != 0) REQUIRE(std::memcmp(out.data(), expected.data(), size) == 0);
  }
}

// No complete codes need larger tables than these two, of 2342 and 402 entries.
bool has_room_for_largest_tables() {
  constexpr uint8_t kLiteralLengths[] = {1, 2, 3, 4, 9}, kDistanceLengths[] = {1, 2, 3, 4, 5, 8};
  Bytes literals(std::begin(kLiteralLengths), std::end(kLiteralLengths));
  literals.insert(literals.end(), 215, 12);
  literals.insert(literals.end(), 65, 13);
  for (const int bits : {14, 15, 15}) literals.push_back(static_cast<uint8_t>(bits));
  Bytes distances(std::begin(kDistanceLengths), std::end(kDistanceLengths));
  distances.insert(distances.end(), 7, 9);
  distances.insert(distances.end(), 13, 10);
  for (const int bits : {11, 12, 13, 14, 15, 15}) distances.push_back(static_cast<uint8_t>(bits));
  LiteralTable literal_table;
  DistanceTable distance_table;
  return literals.size() == 288 && make_literal_table(literals.data(), literals.size(), true, literal_table) &&
         distances.size() == 32 && make_distance_table(distances.data(), distances.size(), distance_table);
}

void unfilter_both(Input& in) {
  const uint8_t filter = in.byte() % kNumFilters;
  const size_t pixel_bytes = 1 + in.byte() % 8;
  const size_t pixels = in.byte();
  const Span raw = in.take(pixels * pixel_bytes);
  const size_t size = raw.size / pixel_bytes * pixel_bytes;
  if (size == 0) return;
  const Span rest = in.rest();
  const Bytes row(raw.begin(), raw.begin() + size);
  Bytes above(size), fast(size), plain(size);
  if (rest.size != 0) std::memcpy(above.data(), rest.data, std::min(rest.size, size));
  unfilter(filter, row.data(), above.data(), fast.data(), size, pixel_bytes);
  unfilter_by_byte(filter, row.data(), above.data(), plain.data(), size, pixel_bytes);
  REQUIRE(fast == plain);
  // The row again below itself, both by Paeth's filter.
  Bytes below(size), plain_below(size);
  if (!unfilter_two({row.data(), row.data(), fast.data(), below.data()}, above.data(), size, pixel_bytes)) return;
  unfilter_by_byte(kPaethFilter, row.data(), above.data(), plain.data(), size, pixel_bytes);
  unfilter_by_byte(kPaethFilter, row.data(), plain.data(), plain_below.data(), size, pixel_bytes);
  REQUIRE(fast == plain && below == plain_below);
}

void read_header(Span data) {
  const ImageHeader header = read_image_header(data);
  REQUIRE((header.width > 0) == (header.height > 0) && header.width >= 0 && header.height >= 0);
  REQUIRE(header.orientation >= 1 && header.orientation <= 8);
  REQUIRE(header.scans >= 0 && static_cast<size_t>(header.scans) <= data.size / 2);
}

// A tidied file has nothing left to tidy, and ends as before.
void tidy_twice(Span data) {
  Bytes once, twice;
  if (data.size < 2 || !tidy_jpeg(data, once)) return;
  REQUIRE(once.size() <= data.size);
  const Span tidied{once.data(), once.size()};
  REQUIRE(!tidy_jpeg(tidied, twice) && twice == once);
  REQUIRE(has_jpeg_end(tidied) == has_jpeg_end(data));
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  using namespace penstock::fuzz;
  static const bool has_room = has_room_for_largest_tables();
  REQUIRE(has_room);
  Input in(data, size);
  switch (in.byte() % 5) {
    case 0: {
      const unsigned channels = (const unsigned[]){1, 3, 4}[in.byte() % 3];
      decode(in.rest(), channels);
      break;
    }
    case 1:
      decode_built(in);
      break;
    case 2:
      inflate_both(in);
      break;
    case 3:
      unfilter_both(in);
      break;
    default: {
      const Span rest = in.rest();
      read_header(rest);
      tidy_twice(rest);
      REQUIRE(crc32(rest.data, rest.size) == crc32_by_table(rest.data, rest.size));
      REQUIRE(adler32(rest.data, rest.size) == adler_of(rest));
    }
  }
  return 0;
}
