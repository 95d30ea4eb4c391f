#include "image/jpeg.h"

namespace penstock {
namespace {

constexpr size_t kMostStray = 16;  // bytes between two segments: more of them are more often what damage left of one

}  // namespace

bool tidy_jpeg(Span data, std::vector<uint8_t>& out) {
  JpegMarkers markers(data);
  bool is_sequential = false, in_header = true, is_changed = false;
  size_t taken = 0;  // bytes of the file that are in `out`, or left out
  size_t stray = 0;  // of those left out, the bytes before the next segment
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
    // Behind its size and the number of its components, two bytes for each, a scan has three bytes more.
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
