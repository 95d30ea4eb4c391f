#include "image/png_chunks.h"

#include "foundation/bytes.h"
#include "image/crc32.h"

namespace penstock {
namespace {

constexpr uint32_t kHeader = chunk_name("IHDR"), kPalette = chunk_name("PLTE"), kPixels = chunk_name("IDAT");
constexpr uint32_t kEnd = chunk_name("IEND"), kTransparency = chunk_name("tRNS");
constexpr size_t kHeaderBytes = 13;

bool is_critical(uint32_t name) { return (name & 0x20000000) == 0; }  // its first letter is a capital

constexpr bool is_letter(uint32_t code) { return (code | 0x20) >= 'a' && (code | 0x20) <= 'z'; }

bool has_letters(uint32_t name) {
  return is_letter(name >> 24) && is_letter(name >> 16 & 255) && is_letter(name >> 8 & 255) && is_letter(name & 255);
}

bool is_depth_of(ColourType colour, unsigned depth) {
  switch (colour) {
    case ColourType::kGrey:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case ColourType::kPalette:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case ColourType::kRgb:
    case ColourType::kGreyAlpha:
    case ColourType::kRgba:
      return depth == 8 || depth == 16;
  }
  return false;
}

std::string read_header(const uint8_t* header, uint64_t max_pixels, PngLayout& layout) {
  layout.width = load_big32(header);
  layout.height = load_big32(header + 4);
  const std::string sides = std::to_string(layout.width) + " x " + std::to_string(layout.height) + " pixels";
  if (layout.width == 0 || layout.height == 0 || layout.width >> 31 != 0 || layout.height >> 31 != 0) {
    return "the header is damaged: it says " + sides;
  }
  if (static_cast<uint64_t>(layout.width) * layout.height > max_pixels) {
    return "it is of " + sides + ", more than the " + std::to_string(max_pixels) + " allowed";
  }
  layout.form.depth = header[8];
  layout.form.colour = static_cast<ColourType>(header[9]);
  if (!is_depth_of(layout.form.colour, layout.form.depth)) {
    return "there is no colour type " + std::to_string(header[9]) + " with " + std::to_string(header[8]) + " bits";
  }
  if (header[10] != 0 || header[11] != 0 || header[12] > 1) {
    return "the header is damaged: it names an unknown compression, filter or interlace method";
  }
  layout.interlaced = header[12] == 1;
  return {};
}

std::string read_palette(const PngChunk& chunk, PngLayout& layout) {
  if (!layout.streams.empty()) return "chunk PLTE comes after the pixels";
  if (layout.form.palette.data != nullptr) return "it has two chunks PLTE";
  if (chunk.data.size == 0 || chunk.data.size % 3 != 0 || chunk.data.size > 768) {
    return "chunk PLTE has " + std::to_string(chunk.data.size) + " bytes, which are no palette";
  }
  layout.form.palette = chunk.data;
  layout.to_check.push_back(chunk);
  return {};
}

// Of the data on transparency, only what libpng or Pillow would use is read.
std::string read_transparency(const PngChunk& chunk, PngLayout& layout) {
  const ColourType colour = layout.form.colour;
  if (!layout.streams.empty() || colour == ColourType::kGreyAlpha || colour == ColourType::kRgba) return {};
  if (layout.form.transparency.data != nullptr) return "it has two chunks tRNS";
  const size_t expected = 2 * samples_of(colour);
  if (colour == ColourType::kPalette ? chunk.data.size > 256 : chunk.data.size != expected) {
    return "chunk tRNS has " + std::to_string(chunk.data.size) + " bytes, which do not fit its colours";
  }
  layout.form.transparency = chunk.data;
  layout.to_check.push_back(chunk);
  return {};
}

std::string read_chunk(const PngChunk& chunk, bool after_pixels, PngLayout& layout) {
  switch (chunk.name) {
    case kPalette:
      return read_palette(chunk, layout);
    case kTransparency:
      return read_transparency(chunk, layout);
    case kPixels:
      if (layout.form.colour == ColourType::kPalette && layout.form.palette.data == nullptr) {
        return "it has no palette before its pixels";
      }
      if (after_pixels) return "its chunks IDAT do not follow each other";
      layout.streams.push_back(chunk.data);
      layout.stream_bytes += chunk.data.size;
      layout.to_check.push_back(chunk);
      return {};
    case kHeader:
      return "it has two headers";
    case kEnd:
      layout.to_check.push_back(chunk);
      return layout.streams.empty() ? "it has no pixels: there is no chunk IDAT" : "";
    default:
      return is_critical(chunk.name) ? "chunk " + name_of_chunk(chunk.name) + " is needed, and not known" : "";
  }
}

}  // namespace

bool is_png(Span file) {
  return file.size >= sizeof kPngSignature && std::memcmp(file.data, kPngSignature, sizeof kPngSignature) == 0;
}

std::string name_of_chunk(uint32_t name) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const uint32_t code = name >> shift & 255;
    text += is_letter(code) ? static_cast<char>(code) : '?';
  }
  return text;
}

bool PngChunk::is_sound() const { return crc32(data.data - 4, data.size + 4) == load_big32(data.end()); }

bool PngChunks::next(PngChunk& chunk) {
  const auto left = static_cast<size_t>(end_ - at_);
  chunk.name = left < 8 ? 0 : load_big32(at_ + 4);
  if (left < kChunkBytes || load_big32(at_) > left - kChunkBytes) return false;
  chunk.data = Span{at_ + 8, load_big32(at_)};
  at_ += kChunkBytes + chunk.data.size;
  return true;
}

std::string read_layout(Span file, uint64_t max_pixels, PngLayout& layout) {
  if (!is_png(file)) return "it does not begin as a PNG does";
  PngChunks chunks(file);
  PngChunk chunk;
  if (!chunks.next(chunk)) return "it is cut short inside its header";
  if (chunk.name != kHeader || chunk.data.size != kHeaderBytes) return "it does not begin with a header";
  layout.to_check.push_back(chunk);
  std::string fault = read_header(chunk.data.data, max_pixels, layout);
  bool after_pixels = false;
  for (size_t count = 2; fault.empty(); count++) {
    if (!chunks.next(chunk)) {
      return chunk.name == 0 ? "it is cut short" : "it is cut short inside chunk " + name_of_chunk(chunk.name);
    }
    if (count > kMostChunks) return "it has more than " + std::to_string(kMostChunks) + " chunks";
    if (!has_letters(chunk.name)) return "a chunk has a damaged name";
    fault = read_chunk(chunk, after_pixels, layout);
    if (chunk.name == kEnd) break;
    after_pixels = chunk.name != kPixels && !layout.streams.empty();
  }
  return fault;
}

}  // namespace penstock
