#include "record/row_locations.h"

#include <algorithm>

#include "foundation/pool.h"

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

bool RowLocations::find_unknown(const int64_t* rows, size_t count, std::vector<uint32_t>& files) const {
  Buffer which(count * sizeof(uint32_t));
  if (!find_files(rows, count, which.as<uint32_t>(), files)) return false;
  const auto is_known = [this](uint32_t file) { return offsets_[file].load(std::memory_order_acquire) != nullptr; };
  files.erase(std::remove_if(files.begin(), files.end(), is_known), files.end());
  return true;
}

bool RowLocations::find_frames(const int64_t* rows, size_t count, const uint32_t* which,
                               const std::vector<uint32_t>& files, uint64_t* begins, uint64_t* sizes) const {
  std::vector<const uint64_t*> offsets;
  for (const uint32_t file : files) {
    if (file >= num_files()) return false;
    offsets.push_back(offsets_[file].load(std::memory_order_acquire));
    if (offsets.back() == nullptr) return false;
  }
  for (size_t i = 0; i < count; i++) {
    if (which[i] >= files.size()) return false;
    const uint32_t file = files[which[i]];
    const int64_t record = rows[i] - starts_[file];
    if (record < 0 || record >= num_rows(file)) return false;
    const uint64_t* const at = offsets[which[i]] + record;
    if (at[1] < at[0]) return false;
    begins[i] = at[0];
    sizes[i] = at[1] - at[0];
  }
  return true;
}

}  // namespace penstock
