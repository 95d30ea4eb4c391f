#include "record/row_locations.h"

#include <sys/stat.h>

#include <algorithm>

namespace penstock {

bool RowLocations::find_files(const int64_t* rows, size_t count, uint32_t* which, std::vector<uint32_t>& files) const {
  constexpr uint32_t kUnmet = UINT32_MAX;
  std::vector<uint32_t> numbers(num_files(), kUnmet);
  for (size_t i = 0; i < count; i++) {
    if (rows[i] < 0 || rows[i] >= num_rows()) return false;
    const auto above = std::upper_bound(starts_.begin(), starts_.end(), rows[i]);
    const auto file = static_cast<uint32_t>(above - starts_.begin() - 1);
    if (numbers[file] == kUnmet) {
      numbers[file] = static_cast<uint32_t>(files.size());
      files.push_back(file);
    }
    which[i] = numbers[file];
  }
  return true;
}

bool RowLocations::FileIdentity::is_unchanged() const {
  struct stat now;
  if (fstat(static_cast<int>(fd), &now) != 0) return false;
#ifdef __APPLE__
  const timespec& changed = now.st_mtimespec;
#else
  const timespec& changed = now.st_mtim;
#endif
  return static_cast<int64_t>(now.st_size) == size && static_cast<int64_t>(now.st_ino) == inode &&
         int64_t{changed.tv_sec} * 1000000000 + int64_t{changed.tv_nsec} == mtime_nanoseconds;
}

bool RowLocations::find_frames(const int64_t* rows, size_t count, const uint32_t* which,
                               const std::vector<uint32_t>& files, uint64_t* begins, uint64_t* sizes) const {
  for (const uint32_t file : files) {
    if (file >= num_files() || offsets_[file] == nullptr) return false;
  }
  for (size_t i = 0; i < count; i++) {
    if (which[i] >= files.size()) return false;
    const uint32_t file = files[which[i]];
    const int64_t record = rows[i] - starts_[file];
    if (record < 0 || record >= num_rows(file)) return false;
    const uint64_t* const at = offsets_[file] + record;
    if (at[1] < at[0]) return false;
    begins[i] = at[0];
    sizes[i] = at[1] - at[0];
  }
  return true;
}

}  // namespace penstock
