#include "record/index.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace penstock {
namespace {

// One read serves many small records; of large ones it takes little more than the header.
constexpr size_t kLargeRead = 256 << 10;
constexpr size_t kSmallRead = 4 << 10;

}  // namespace

int scan_headers(int fd, const ScanOptions& options, FrameScanner& scanner) {
  Buffer buffer(kLargeRead);
  uint64_t at = 0;
  size_t size = kLargeRead;
  while (at < options.file_bytes) {
    // Not past the size that was given, though the file may have grown since.
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, options.file_bytes - at));
    const ssize_t got = pread(fd, buffer.data(), wanted, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;  // the file has shrunk; finish() finds out
    scanner.feed(Span{buffer.data(), static_cast<size_t>(got)});
    const uint64_t next = scanner.jump();
    // A jump far past the bytes read means that records are large here.
    size = next > at && next - at > 2 * kLargeRead ? kSmallRead : kLargeRead;
    at = next;
  }
  scanner.finish();
  return 0;
}

}  // namespace penstock
