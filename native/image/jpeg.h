// The markers of a JPEG and the segments after them, read as decoders read them.
#pragma once

#include <vector>

#include "foundation/bytes.h"

namespace penstock {

inline constexpr unsigned kJpegEnd = 0xd9, kJpegScan = 0xda, kJpegStuffing = 0x00;

struct JpegMarker {
  unsigned code = 0;
  size_t from = 0;    // where the marker or segment before it ended: the bytes between are stray bytes, or pixels
  size_t mark = 0;    // the first 0xff of the marker
  size_t at = 0;      // after the marker
  uint32_t size = 0;  // of the segment there, its own two bytes among them; 0 for a marker without one

  // Whether a frame of pixels follows: its size, and how they are coded.
  bool is_frame() const { return code >= 0xc0 && code <= 0xcf && code != 0xc4 && code != 0xc8 && code != 0xcc; }
  // Frames whose scans give all coefficients of their components, in order.
  bool is_sequential_frame() const { return code == 0xc0 || code == 0xc1 || code == 0xc9; }
  // Frames whose scans may go over all pixels in a few bytes: progressive frames, and frames with arithmetic coding.
  bool is_terse_frame() const { return code == 0xc2 || code == 0xc9 || code == 0xca; }
};

class JpegMarkers {
 public:
  explicit JpegMarkers(Span file) : file_(file) {}

  // False at the end of the file. Among pixels, the stuffing after each 0xff is a marker, too.
  bool next(JpegMarker& marker) {
    if (at_ >= file_.size) return false;
    marker.from = at_;
    // Decoders pass over stray bytes between segments, and over any number of 0xff before a marker.
    const void* const found = std::memchr(file_.data + at_, 0xff, file_.size - at_);
    if (found == nullptr) return false;
    at_ = marker.mark = static_cast<size_t>(static_cast<const uint8_t*>(found) - file_.data);
    while (at_ < file_.size && file_.data[at_] == 0xff) at_++;
    if (at_ == file_.size) return false;
    marker.code = file_.data[at_++];
    marker.at = at_;
    marker.size = 0;
    if (marker.code <= 0x01 || (marker.code >= 0xd0 && marker.code <= kJpegEnd)) return true;  // these stand alone
    if (file_.size - at_ >= 2) marker.size = load_big16(file_.data + at_);
    at_ += marker.size < 2 ? 2 : marker.size;
    return true;
  }

 private:
  Span file_;
  size_t at_ = 2;  // after the marker that all files begin with
};

// Copies a JPEG into `out` without what decoders warn of though it costs no pixel: a few stray bytes between the
// segments of its header, and spectral bounds of sequential scans, which have none. False where there is no such thing.
bool tidy_jpeg(Span data, std::vector<uint8_t>& out);

// Whether the marker of the end of a JPEG follows its header and its pixels.
bool has_jpeg_end(Span data);

}  // namespace penstock
