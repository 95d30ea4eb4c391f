// Steps with one number, or one tensor, per row: scale, keep, and places of dates on a circle.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "batch/cast.h"
#include "batch/program_run.h"

namespace penstock {
namespace {

// Numbers at once: what a block gathers, widens and scales stays in the first-level cache.
constexpr size_t kBlockNumbers = 2048;

// Copies rows [from, from + count) of a choice, which lie `stride` bytes apart, to contiguous memory.
template <size_t kBytes>
void gather_rows(const uint8_t* values, size_t stride, const RowChoice& rows, size_t from, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; i++) std::memcpy(out + i * kBytes, values + rows[from + i] * stride, kBytes);
}

void gather_rows(const uint8_t* values, size_t stride, size_t row_bytes, const RowChoice& rows, size_t from,
                 size_t count, uint8_t* out) {
  if (row_bytes == 8) return gather_rows<8>(values, stride, rows, from, count, out);
  if (row_bytes == 4) return gather_rows<4>(values, stride, rows, from, count, out);
  for (size_t i = 0; i < count; i++) std::memcpy(out + i * row_bytes, values + rows[from + i] * stride, row_bytes);
}

// The type that scale_numbers takes for numbers of a type.
DType scaled_as(DType stored) {
  switch (stored) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kUInt16:
      return DType::kInt32;
    case DType::kUInt32:
      return DType::kInt64;
    case DType::kUInt64:
      return DType::kFloat64;
    default:
      return stored;
  }
}

template <typename T>
void copy_items(const uint8_t* from, uint8_t* to, size_t stride, size_t count) {
  for (size_t i = 0; i < count; i++) std::memcpy(to + i * stride, from + i * sizeof(T), sizeof(T));
}

template <typename T>
bool has_nan(const T* values, size_t count) {
  bool found = false;
  for (size_t i = 0; i < count; i++) found |= values[i] != values[i];
  return found;
}

}  // namespace

void copy_rows(const uint8_t* from, size_t row_bytes, uint8_t* to, size_t stride, size_t count) {
  if (row_bytes == 4) return copy_items<uint32_t>(from, to, stride, count);
  if (row_bytes == 8) return copy_items<uint64_t>(from, to, stride, count);
  for (size_t i = 0; i < count; i++) std::memcpy(to + i * stride, from + i * row_bytes, row_bytes);
}

const uint8_t* ProgramRun::mask_of(const FieldColumn& column, size_t from, size_t count) {
  if (column.present == nullptr) return nullptr;
  if (rows_.index == nullptr && column.present_stride == 1) return column.present + from;
  auto* const mask = room<uint8_t>(kMask, count);
  gather_rows<1>(column.present, column.present_stride, rows_, from, count, mask);
  return mask;
}

bool ProgramRun::has_numbers(const Step& step, const FieldColumn& column) const {
  if (column.form != FieldColumn::Form::kNumbers) return false;
  if (column.is_raw) return column.width == step.width * item_bytes(step.stored);
  return column.width == step.width && (column.dtype == step.stored || column.is_wide);
}

// Numbers of a column in the type in which they are declared; null if there is no such conversion.
const uint8_t* ProgramRun::stored_numbers(const Step& step, const FieldColumn& column, const uint8_t* values,
                                          size_t count) {
  if (column.is_raw || column.dtype == step.stored) return values;
  auto* const narrowed = room<uint8_t>(kNarrowed, count * item_bytes(step.stored));
  const bool is_possible = narrow_array(reinterpret_cast<const int64_t*>(values), count, step.stored, narrowed);
  return is_possible ? narrowed : nullptr;
}

bool ProgramRun::scale_items(const Step& step, const uint8_t* values, const uint8_t* present, size_t count,
                             float* out) {
  const size_t width = step.width;
  const DType type = scaled_as(step.stored);
  if (type != step.stored) {
    auto* const widened = room<uint8_t>(kWidened, count * width * item_bytes(type));
    if (!cast_array(values, step.stored, count * width, type, widened)) return false;
    values = widened;
  }
  const ScaleTerms terms{step.shift.data(), step.factor.data(), step.shift.size() > 1};
  const bool has_fills = step.fill.size() > 1;
  ScaleOptions options = step.scale;
  options.nan_is_missing &= !has_fills;  // the kernel fills with one number: several are put in below
  const auto run = [&](const auto* numbers) {
    scale_numbers(numbers, present, count, width, terms, options, out);
    return true;
  };
  bool is_done = false;
  if (type == DType::kFloat32) is_done = run(reinterpret_cast<const float*>(values));
  else if (type == DType::kFloat64) is_done = run(reinterpret_cast<const double*>(values));
  else if (type == DType::kInt64) is_done = run(reinterpret_cast<const int64_t*>(values));
  else if (type == DType::kInt32) is_done = run(reinterpret_cast<const int32_t*>(values));
  else if (type == DType::kUInt8 || type == DType::kBool) is_done = run(values);
  if (!is_done || !has_fills) return is_done;
  for (size_t row = 0; row < count; row++, out += width) {
    if (present != nullptr && present[row] == 0) {
      std::copy(step.fill.begin(), step.fill.end(), out);
    } else if (step.scale.nan_is_missing) {
      for (size_t i = 0; i < width; i++) out[i] = std::isnan(out[i]) ? step.fill[i] : out[i];
    }
  }
  return true;
}

void ProgramRun::place_dates(const Step& step, const uint8_t* values, const uint8_t* present, size_t count,
                             float* out) const {
  const auto* const numbers = reinterpret_cast<const int64_t*>(values);
  for (size_t row = 0; row < count; row++) {
    const bool is_missing = present != nullptr && present[row] == 0;
    if (is_missing && !step.missing_date) {
      out[row] = 0;
      continue;
    }
    const int64_t number = is_missing ? *step.missing_date : numbers[row];
    out[row] = step.points[calendar_position(step.part, step.is_micros, number)];
  }
}

bool ProgramRun::keep_rows(const Step& step, const uint8_t* values, const uint8_t* present, size_t count,
                           uint8_t* out) {
  const size_t bytes = item_bytes(step.stored), row_bytes = step.width * bytes;
  const bool is_whole = present == nullptr || std::memchr(present, 0, count) == nullptr;
  if (!is_whole && step.missing == Step::Missing::kRefused) return false;
  if (!is_whole && step.missing == Step::Missing::kFilled) {
    auto* const filled = room<uint8_t>(kWidened, count * row_bytes);
    std::memcpy(filled, values, count * row_bytes);
    for (size_t row = 0; row < count; row++) {
      if (present[row] != 0) continue;
      for (size_t i = 0; i < step.width; i++) std::memcpy(filled + row * row_bytes + i * bytes, &step.fill_bits, bytes);
    }
    values = filled;
  }
  return cast_array(values, step.stored, count * step.width, step.out, out);
}

void ProgramRun::indicate(const Step& step, const uint8_t* values, const uint8_t* present, size_t count,
                          const Rows& out) const {
  for (size_t row = 0; row < count; row++) {
    bool is_missing = present != nullptr && present[row] == 0;
    if (step.scale.nan_is_missing && step.stored == DType::kFloat32) {
      is_missing |= has_nan(reinterpret_cast<const float*>(values) + row * step.width, step.width);
    } else if (step.scale.nan_is_missing && step.stored == DType::kFloat64) {
      is_missing |= has_nan(reinterpret_cast<const double*>(values) + row * step.width, step.width);
    }
    const float value = is_missing ? 1.0f : 0.0f;
    std::memcpy(out[row], &value, sizeof value);
  }
}

bool ProgramRun::run_numbers(const Step& step, const FieldColumn& column) {
  if (column.is_list || !has_numbers(step, column)) return false;
  const size_t row_bytes = column.width * item_bytes(column.dtype), out_bytes = step.width * item_bytes(step.out);
  const size_t at_once = std::max<size_t>(1, kBlockNumbers / step.width);
  const Rows out = rows_of(step.target);
  for (size_t from = 0; from < rows_.count; from += at_once) {
    const size_t count = std::min(at_once, rows_.count - from);
    const uint8_t* values = column.values + from * row_bytes;
    if (rows_.index != nullptr || column.stride != row_bytes) {
      auto* const gathered = room<uint8_t>(kGathered, count * row_bytes);
      gather_rows(column.values, column.stride, row_bytes, rows_, from, count, gathered);
      values = gathered;
    }
    const uint8_t* const present = mask_of(column, from, count);
    values = stored_numbers(step, column, values, count * step.width);
    if (values == nullptr) return false;
    const bool is_direct = out.stride == out_bytes;
    uint8_t* const result = is_direct ? out[from] : room<uint8_t>(kResult, count * out_bytes);
    if (step.kind == Step::Kind::kScale) {
      const uint8_t* const mask = step.uses_mask ? present : nullptr;
      if (!scale_items(step, values, mask, count, reinterpret_cast<float*>(result))) return false;
      if (step.has_extra) {
        const Rows extra = rows_of(step.extra);
        indicate(step, values, present, count, {extra[from], extra.stride});
      }
    } else if (step.kind == Step::Kind::kCircle) {
      place_dates(step, values, step.uses_mask ? present : nullptr, count, reinterpret_cast<float*>(result));
    } else if (!keep_rows(step, values, present, count, result)) {
      return false;
    }
    if (!is_direct) copy_rows(result, out_bytes, out[from], out.stride, count);
  }
  return true;
}

}  // namespace penstock
