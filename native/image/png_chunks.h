// The chunks of a PNG: its header, and where the data of its pixels are.
#pragma once

#include <string>
#include <vector>

#include "image/png_samples.h"

namespace penstock {

inline constexpr size_t kMostChunks = 100000;  // libpng writes one for 8 KB of pixels; a hostile file, one for 12 bytes
inline constexpr size_t kChunkBytes = 12;      // of a chunk without its data: size, name and CRC
inline constexpr uint8_t kPngSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

constexpr uint32_t chunk_name(const char (&name)[5]) {
  return static_cast<uint32_t>(static_cast<uint8_t>(name[0])) << 24 |
         static_cast<uint32_t>(static_cast<uint8_t>(name[1])) << 16 |
         static_cast<uint32_t>(static_cast<uint8_t>(name[2])) << 8 | static_cast<uint8_t>(name[3]);
}

bool is_png(Span file);

// The name as letters, with ? for other bytes.
std::string name_of_chunk(uint32_t name);

struct PngChunk {
  uint32_t name = 0;
  Span data;

  // Whether the CRC after the data fits; reads all of it.
  bool is_sound() const;
};

// Goes through the chunks of a file after its signature.
class PngChunks {
 public:
  explicit PngChunks(Span file) : at_(file.data + sizeof kPngSignature), end_(file.end()) {}
  // False at the end of the file, or where it ends inside a chunk; `name` is then the name of the chunk, if it was
  // read.
  bool next(PngChunk& chunk);

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

struct PngLayout {
  uint32_t width = 0;
  uint32_t height = 0;
  bool interlaced = false;
  PixelForm form;
  std::vector<Span> streams;  // of deflate, the data of all chunks IDAT
  size_t stream_bytes = 0;
  std::vector<PngChunk> to_check;  // chunks whose CRC must fit, before anything of them is used
};

// Reads the layout of a file without its CRCs. Returns the fault, or nothing.
std::string read_layout(Span file, uint64_t max_pixels, PngLayout& layout);

}  // namespace penstock
