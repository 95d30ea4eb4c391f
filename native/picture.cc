#include "picture.h"

#include "bigendian.h"
#include "chunks.h"
#include "exif.h"

namespace penstock {
namespace {

// A JPEG has a few dozen segments before its pixels: EXIF and colour profiles come in pieces of 64 KB.
constexpr int kMostSegments = 4096;

// Numbers at places that need not be there: 0 where the bytes end before them.
class Fields {
 public:
  explicit Fields(Span data) : data_(data) {}

  bool has(size_t at, size_t size) const { return at <= data_.size && size <= data_.size - at; }
  int64_t big(size_t at, size_t size) const {
    int64_t value = 0;
    for (size_t i = 0; has(at, size) && i < size; i++) value = value << 8 | data_.data[at + i];
    return value;
  }
  int64_t little(size_t at, size_t size) const {
    int64_t value = 0;
    for (size_t i = size; has(at, size) && i > 0; i--) value = value << 8 | data_.data[at + i - 1];
    return value;
  }
  template <size_t kSize>
  bool reads(size_t at, const char (&text)[kSize]) const {
    return has(at, kSize - 1) && std::memcmp(data_.data + at, text, kSize - 1) == 0;
  }
  // From `at` on, `size` bytes or as many as there are.
  Span span(size_t at, size_t size) const {
    if (at > data_.size) return {};
    return Span{data_.data + at, size < data_.size - at ? size : data_.size - at};
  }

 private:
  Span data_;
};

// A size is known as a whole or not at all.
void set_size(Picture& picture, int64_t width, int64_t height) {
  if (width <= 0 || height <= 0) return;
  picture.width = width;
  picture.height = height;
}

void read_frame(const Fields& fields, size_t at, Picture& picture) {
  set_size(picture, fields.big(at + 5, 2), fields.big(at + 3, 2));
  const int64_t components = fields.big(at + 7, 1);
  if (components == 1 || components == 3 || components == 4) picture.components = static_cast<int8_t>(components);
}

Picture read_jpeg(Span data) {
  const Fields fields(data);
  Picture picture{PictureFormat::kJpeg};
  bool has_frame = false, has_exif = false;
  size_t at = 2;
  for (int i = 0; i < kMostSegments && at < data.size; i++) {
    // Decoders pass over stray bytes between segments, and over any number of 0xFF before a marker.
    const void* const mark = std::memchr(data.data + at, 0xff, data.size - at);
    if (mark == nullptr) break;
    at = static_cast<size_t>(static_cast<const uint8_t*>(mark) - data.data);
    while (at < data.size && data.data[at] == 0xff) at++;
    const unsigned marker = at < data.size ? data.data[at] : 0xd9;
    at++;
    if (marker == 0xd9 || marker == 0xda) break;                                    // the end, or the pixels
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) continue;  // these stand alone
    const auto size = static_cast<size_t>(fields.big(at, 2));
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc && !has_frame) {
      read_frame(fields, at, picture);
      has_frame = true;
    } else if (marker == 0xe1 && !has_exif && size > 8 && fields.reads(at + 2, "Exif\0")) {
      picture.orientation = static_cast<int8_t>(read_orientation(fields.span(at + 2, size - 2)));
      has_exif = true;
    }
    at += size < 2 ? 2 : size;
  }
  return picture;
}

int8_t components_of(int64_t colour_type) {
  constexpr int8_t kComponents[] = {1, 0, 3, 3, 2, 0, 4};
  return colour_type <= 6 ? kComponents[colour_type] : int8_t{0};
}

Picture read_png(Span data) {
  const Fields fields(data);
  Picture picture{PictureFormat::kPng};
  if (!fields.reads(12, "IHDR")) return picture;
  set_size(picture, fields.big(16, 4), fields.big(20, 4));
  if (!fields.has(25, 1)) return picture;
  picture.components = components_of(data.data[25]);
  const bool has_palette = data.data[25] == 3;
  PngChunks chunks(data);
  PngChunk chunk;
  for (size_t i = 0; i < kMostChunks && chunks.next(chunk) && chunk.name != chunk_name("IEND"); i++) {
    if (chunk.name == chunk_name("tRNS") && has_palette && chunk.data.size != 0) picture.components = 4;
    if (chunk.name != chunk_name("eXIf")) continue;
    picture.orientation = static_cast<int8_t>(read_orientation(chunk.data));
    break;
  }
  return picture;
}

int8_t read_webp_orientation(const Fields& fields, Span data) {
  constexpr size_t kFirst = 12, kHeader = 8;
  for (size_t at = kFirst; fields.has(at, kHeader);) {
    const auto size = static_cast<size_t>(fields.little(at + 4, 4));
    if (fields.reads(at, "EXIF")) return static_cast<int8_t>(read_orientation(fields.span(at + kHeader, size)));
    if (size > data.size - at - kHeader) break;
    at += kHeader + size + size % 2;
  }
  return 1;
}

Picture read_webp(Span data) {
  const Fields fields(data);
  Picture picture{PictureFormat::kWebp};
  if (fields.reads(12, "VP8 ") && fields.reads(23, "\x9d\x01\x2a")) {
    set_size(picture, fields.little(26, 2) & 0x3fff, fields.little(28, 2) & 0x3fff);
  } else if (fields.reads(12, "VP8L") && fields.reads(20, "\x2f") && fields.has(21, 4)) {
    const int64_t bits = fields.little(21, 4);
    set_size(picture, (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1);
  } else if (fields.reads(12, "VP8X") && fields.has(24, 6)) {
    set_size(picture, fields.little(24, 3) + 1, fields.little(27, 3) + 1);
    picture.orientation = read_webp_orientation(fields, data);
  }
  return picture;
}

Picture read_bmp(Span data) {
  const Fields fields(data);
  Picture picture{PictureFormat::kBmp};
  switch (fields.little(14, 4)) {
    case 12:
      set_size(picture, fields.little(18, 2), fields.little(20, 2));
      return picture;
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124: {
      // The height is signed: a negative one says that the rows run from top to bottom.
      const int64_t width = fields.has(18, 8) ? static_cast<int32_t>(fields.little(18, 4)) : 0;
      const int64_t height = static_cast<int32_t>(fields.little(22, 4));
      set_size(picture, width, height < 0 ? -height : height);
      return picture;
    }
    default:
      return {};  // a text may begin with BM, too
  }
}

}  // namespace

Picture read_picture(Span data) {
  const Fields fields(data);
  if (fields.reads(0, "\xff\xd8\xff")) return read_jpeg(data);
  if (fields.reads(0, "\x89PNG\r\n\x1a\n")) return read_png(data);
  if (fields.reads(0, "RIFF") && fields.reads(8, "WEBP")) return read_webp(data);
  if (fields.reads(0, "GIF87a") || fields.reads(0, "GIF89a")) {
    Picture picture{PictureFormat::kGif};
    set_size(picture, fields.little(6, 2), fields.little(8, 2));
    return picture;
  }
  if (fields.reads(0, "BM")) return read_bmp(data);
  return {};
}

}  // namespace penstock
