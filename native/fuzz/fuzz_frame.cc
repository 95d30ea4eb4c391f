// The scanner of frames, on any bytes in pieces of any size: records and damage tile the file, and the result does
// not depend on how the bytes came. A record that was cut short takes no other with it.
#include <vector>

#include "input.h"
#include "record/frame.h"
#include "record/frame_scanner.h"
#include "require.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

void append(Bytes& out, Span bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

template <typename T>
void append_number(Bytes& out, T value) {
  append(out, Span{reinterpret_cast<const uint8_t*>(&value), sizeof value});
}

void append_header(Bytes& out, uint64_t length) {
  append_number(out, length);
  append_number(out, masked_crc32c(out.data() + out.size() - 8, 8));
}

// Builds a file out of sound records and of each sort of damage: bytes of chance alone would never fit a CRC.
Bytes build_file(Input& in) {
  constexpr size_t kMostBytes = 16 << 10;
  Bytes file;
  while (!in.empty() && file.size() < kMostBytes) {
    const uint8_t command = in.byte();
    const size_t begin = file.size();
    if (command % 8 <= 3) {
      const Span payload = in.take(in.number() % 600);
      append_header(file, payload.size);
      append(file, payload);
      append_number(file, masked_crc32c(file.data() + begin + kHeaderBytes, payload.size));
    }
    switch (command % 8) {
      case 1:
        file[begin + in.byte() % 8] ^= static_cast<uint8_t>(1 << in.byte() % 8);
        break;
      case 2:
        file[file.size() - 1 - in.byte() % 4] ^= 0x10;
        break;
      case 3:
        file[begin + 8 + in.byte() % 4] ^= 0x01;
        break;
      case 4:
        append(file, in.take(in.byte()));
        break;
      case 5:
        file.resize(file.size() + in.byte() % 40);
        break;
      case 6:
        append_header(file, uint64_t{in.byte()} << in.byte() % 64);
        break;
      case 7:
        file.resize(file.size() - in.byte() % (file.size() + 1));
        break;
      default:
        break;
    }
  }
  return file;
}

struct Tile {
  uint64_t offset, size;
  bool is_damage;
  DamageKind kind;

  bool operator==(const Tile& other) const {
    return offset == other.offset && size == other.size && is_damage == other.is_damage && kind == other.kind;
  }
};

// Keeps what the scanner finds, and checks it against the file.
class Tiles : public FrameVisitor {
 public:
  explicit Tiles(Span file) : file_(file) {}

  void record(int64_t number, uint64_t offset, const uint8_t* frame, uint64_t length) override {
    REQUIRE(number == static_cast<int64_t>(tiles.size()));
    add(offset, length + kFrameBytes, false, DamageKind{});
    REQUIRE(header_fits(file_.data + offset) && frame_length(file_.data + offset) == length);
    if (frame == nullptr) return;
    REQUIRE(std::memcmp(frame, file_.data + offset, length + kFrameBytes) == 0);
    REQUIRE(stored_payload_crc(frame, length) == computed_payload_crc(frame, length));
    for (size_t i = 0; i < kReadablePadding; i++) touched ^= frame[length + kFrameBytes - kFooterBytes + i];
  }
  void damaged_bytes(Span bytes) override { append(damaged, bytes); }
  void damage(const Damage& found) override {
    REQUIRE(found.record == static_cast<int64_t>(tiles.size()));
    add(found.offset, found.size, true, found.kind);
  }

  std::vector<Tile> tiles;
  Bytes damaged;
  uint64_t end = 0;
  volatile uint8_t touched = 0;

 private:
  void add(uint64_t offset, uint64_t size, bool is_damage, DamageKind kind) {
    REQUIRE(offset == end && size != 0 && size <= file_.size - offset);
    tiles.push_back({offset, size, is_damage, kind});
    end = offset + size;
  }

  const Span file_;
};

struct Feeding {
  size_t largest_piece;  // 0: all at once
  bool jumps;
};

Tiles scanner(Span file, ScanOptions options, Feeding feeding) {
  Tiles found(file);
  options.can_rewind = feeding.jumps;
  FrameScanner scanner(options, found);
  uint64_t state = feeding.largest_piece * 2654435761u + file.size;
  for (uint64_t at = 0; at < file.size;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t size = file.size - at;
    if (feeding.largest_piece != 0) size = std::min<size_t>(size, 1 + (state >> 40) % feeding.largest_piece);
    const Bytes piece(file.data + at, file.data + at + size);  // of exactly this size, so that no byte behind is read
    scanner.feed(Span{piece.data(), piece.size()});
    at = feeding.jumps ? scanner.jump() : at + size;
  }
  scanner.finish();
  REQUIRE(scanner.num_records() == static_cast<int64_t>(found.tiles.size()));
  REQUIRE(found.end == scanner.end());
  for (uint64_t at = scanner.end(); at < file.size; at++) {
    REQUIRE(options.allow_trailing_zeros && file.data[at] == 0);
  }
  return found;
}

// The bytes of all damage, and of trailing zeros, in the order of the file.
Bytes bytes_lost(Span file, const Tiles& found) {
  Bytes lost;
  for (const Tile& tile : found.tiles) {
    if (tile.is_damage) append(lost, Span{file.data + tile.offset, static_cast<size_t>(tile.size)});
  }
  append(lost, Span{file.data + found.end, static_cast<size_t>(file.size - found.end)});
  return lost;
}

// Headers alone find the same tiles; a payload whose CRC does not fit is to them a record.
void require_same_tiles(const Tiles& headers, const Tiles& full) {
  REQUIRE(headers.tiles.size() == full.tiles.size());
  for (size_t i = 0; i < full.tiles.size(); i++) {
    Tile tile = full.tiles[i];
    if (tile.is_damage && tile.kind == DamageKind::kPayloadCrc) tile = {tile.offset, tile.size, false, DamageKind{}};
    REQUIRE(headers.tiles[i] == tile);
  }
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  using namespace penstock::fuzz;
  Input in(data, size);
  const uint8_t choices = in.byte();
  const size_t largest_piece = 1 + in.byte();
  const bool is_raw = choices & 8;
  Bytes built;
  if (!is_raw) built = build_file(in);
  const Span rest = in.rest();
  if (is_raw) built.assign(rest.begin(), rest.end());
  const Span file{built.data(), built.size()};

  ScanOptions options;
  if (choices & 1) options.file_bytes = file.size;
  options.allow_trailing_zeros = choices & 2;
  if (choices & 4) options.max_record_bytes = 64;
  const Tiles headers = scanner(file, options, {0, false});
  REQUIRE(scanner(file, options, {largest_piece, false}).tiles == headers.tiles);
  if (choices & 1) REQUIRE(scanner(file, options, {largest_piece, true}).tiles == headers.tiles);

  options.with_payloads = true;
  const Tiles full = scanner(file, options, {0, false});
  require_same_tiles(headers, full);
  REQUIRE(full.damaged == bytes_lost(file, full));
  const Tiles pieces = scanner(file, options, {largest_piece, false});
  REQUIRE(pieces.tiles == full.tiles && pieces.damaged == full.damaged);
  return 0;
}
