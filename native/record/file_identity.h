// What shows whether a file has changed: its size, time of modification and inode.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct FileIdentity {
  int64_t size, mtime_nanoseconds, inode;

  static FileIdentity from_status(const struct stat& status);

  bool operator==(const FileIdentity& other) const {
    return size == other.size && mtime_nanoseconds == other.mtime_nanoseconds && inode == other.inode;
  }
  // Whether an open file still has this identity.
  bool is_of(int fd) const;
};

// Size, time of modification, inode and time of the last change of files of a folder, four numbers for each. All are -1
// for a file that does not exist, is not a regular file, or whose status cannot be read.
void read_identities(const std::string& folder, const std::vector<std::string>& names, int64_t* out);

}  // namespace penstock
