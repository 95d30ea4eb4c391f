#include "record/file_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace penstock {
namespace {

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1000000000 + int64_t{time.tv_nsec}; }

#ifdef __APPLE__
const timespec& modified(const struct stat& status) { return status.st_mtimespec; }
const timespec& changed(const struct stat& status) { return status.st_ctimespec; }
#else
const timespec& modified(const struct stat& status) { return status.st_mtim; }
const timespec& changed(const struct stat& status) { return status.st_ctim; }
#endif

}  // namespace

FileIdentity FileIdentity::from_status(const struct stat& status) {
  return {static_cast<int64_t>(status.st_size), nanoseconds(modified(status)), static_cast<int64_t>(status.st_ino)};
}

bool FileIdentity::is_of(int fd) const {
  struct stat now;
  return fstat(fd, &now) == 0 && from_status(now) == *this;
}

void read_identities(const std::string& folder, const std::vector<std::string>& names, int64_t* out) {
  // Relative to the open folder: its path is not resolved once per file.
  const int at = open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  for (const std::string& name : names) {
    struct stat status;
    if (at >= 0 && fstatat(at, name.c_str(), &status, 0) == 0 && S_ISREG(status.st_mode)) {
      const FileIdentity identity = FileIdentity::from_status(status);
      out[0] = identity.size;
      out[1] = identity.mtime_nanoseconds;
      out[2] = identity.inode;
      out[3] = nanoseconds(changed(status));
    } else {
      std::fill_n(out, 4, int64_t{-1});
    }
    out += 4;
  }
  if (at >= 0) close(at);
}

}  // namespace penstock
