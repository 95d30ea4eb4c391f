#include "image/picture.h"

#include "image/chunks.h"
#include "image/exif.h"
#include "image/jpeg.h"

namespace penstock {
namespace {

// A JPEG has a few dozen segments before its pixels: EXIF and colour profiles come in pieces of 64 KB.
constexpr int kMostSegments = 4096;
constexpr size_t kMostStray = 16;  // bytes between two segments: more of them are more often what damage left of one

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

int64_t count_scans(JpegMarkers behind_frame) {
  int64_t count = 0;
  for (JpegMarker marker; behind_frame.next(marker) && marker.code != kJpegEnd;) count += marker.code == kJpegScan;
  return count;
}

Picture read_jpeg(Span data) {
  const Fields fields(data);
  Picture picture{PictureFormat::kJpeg};
  bool has_frame = false, has_exif = false;
  JpegMarkers markers(data);
  JpegMarker marker;
  for (int i = 0; i < kMostSegments && markers.next(marker); i++) {
    if (marker.code == kJpegEnd || marker.code == kJpegScan) break;
    const size_t at = marker.at;
    if (marker.is_frame() && !has_frame) {
      set_size(picture, fields.big(at + 5, 2), fields.big(at + 3, 2));
      if (marker.is_terse_frame()) picture.scans = count_scans(markers);
      has_frame = true;
    } else if (marker.code == 0xe1 && !has_exif && marker.size > 8 && fields.reads(at + 2, "Exif\0")) {
      picture.orientation = static_cast<int8_t>(read_orientation(fields.span(at + 2, marker.size - 2)));
      has_exif = true;
    }
  }
  return picture;
}

Picture read_png(Span data) {
  const Fields fields(data);
  Picture picture{PictureFormat::kPng};
  if (!fields.reads(12, "IHDR")) return picture;
  set_size(picture, fields.big(16, 4), fields.big(20, 4));
  PngChunks chunks(data);
  PngChunk chunk;
  for (size_t i = 0; i < kMostChunks && chunks.next(chunk) && chunk.name != chunk_name("IEND"); i++) {
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
  if (is_png(data)) return read_png(data);
  if (fields.reads(0, "RIFF") && fields.reads(8, "WEBP")) return read_webp(data);
  if (fields.reads(0, "GIF87a") || fields.reads(0, "GIF89a")) {
    Picture picture{PictureFormat::kGif};
    set_size(picture, fields.little(6, 2), fields.little(8, 2));
    return picture;
  }
  if (fields.reads(0, "BM")) return read_bmp(data);
  return {};
}

bool tidy_jpeg(Span data, std::vector<uint8_t>& out) {
  JpegMarkers markers(data);
  bool is_sequential = false, in_header = true, is_changed = false;
  size_t taken = 0;  // bytes of the file that are in `out`, or left out
  size_t stray = 0;  // of those left out, what lies before the next segment
  out.reserve(data.size);
  const auto take_until = [&](size_t end) {
    out.insert(out.end(), data.data + taken, data.data + end);
    taken = end;
  };
  for (JpegMarker marker; markers.next(marker) && marker.code != kJpegEnd;) {
    if (in_header) {
      take_until(marker.from);
      taken = marker.code == kJpegStuffing ? marker.at : marker.mark;
      stray += taken - marker.from;
      if (stray > kMostStray) return false;
      is_changed |= stray != 0;
      if (marker.code != kJpegStuffing) stray = 0;
    }
    if (marker.is_frame()) is_sequential = marker.is_sequential_frame();
    if (marker.code != kJpegScan) continue;
    in_header = false;
    // Behind its size and the number of its components, two bytes for each, a scan has three of its own.
    if (!is_sequential || marker.size < 6 || marker.size > data.size - marker.at) continue;
    static constexpr uint8_t kWhole[3] = {0, 63, 0};
    const size_t bounds = marker.at + marker.size - sizeof kWhole;
    if (std::memcmp(data.data + bounds, kWhole, sizeof kWhole) == 0) continue;
    take_until(bounds);
    out.insert(out.end(), kWhole, kWhole + sizeof kWhole);
    taken += sizeof kWhole;
    is_changed = true;
  }
  take_until(data.size);
  return is_changed;
}

bool has_jpeg_end(Span data) {
  JpegMarkers markers(data);
  for (JpegMarker marker; markers.next(marker);) {
    if (marker.code == kJpegEnd) return true;
  }
  return false;
}

}  // namespace penstock
