#include "decode/decode.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kLongestDetail = 64;

bool has_row_offsets(Layout layout) {
  return layout == Layout::kList || layout == Layout::kString || layout == Layout::kStrings || layout == Layout::kSteps;
}

size_t aligned(size_t count, size_t item_bytes) {
  const size_t step = kAlignment / item_bytes;
  return (count + step - 1) / step * step;
}

}  // namespace

Decoder::Decoder(std::vector<FieldSpec> fields, bool strict) : plan_(std::move(fields), strict) {
  for (const FieldSpec& field : plan_.fields) {
    num_ints_ += field.layout == Layout::kScalar && field.kind == Kind::kInt64;
    num_floats_ += field.layout == Layout::kScalar && field.kind == Kind::kFloat;
    num_offsets_ += has_row_offsets(field.layout);
    num_present_ += !field.required;
    has_strings_ |= field.layout == Layout::kString;
  }
}

std::unique_ptr<Decoder::Workspace> Decoder::borrow() const {
  {
    const std::lock_guard<std::mutex> lock(process_mutex());
    if (!idle_.empty()) {
      std::unique_ptr<Workspace> workspace = std::move(idle_.back());
      idle_.pop_back();
      return workspace;
    }
  }
  return std::make_unique<Workspace>(plan_);
}

void Decoder::give_back(std::unique_ptr<Workspace> workspace) const {
  workspace->fetcher.trim();
  const std::lock_guard<std::mutex> lock(process_mutex());
  idle_.push_back(std::move(workspace));
}

Decoded Decoder::allocate(int64_t num_rows) const {
  Decoded out;
  const auto rows = static_cast<size_t>(num_rows);
  out.num_rows = num_rows;
  out.stride = aligned(rows, 1);  // a multiple of 64 elements keeps rows of every item size aligned
  out.offset_stride = aligned(rows + 1, 8);
  out.ints = Buffer(num_ints_ * out.stride * sizeof(int64_t));
  out.floats = Buffer(num_floats_ * out.stride * sizeof(float));
  out.offsets = Buffer(num_offsets_ * out.offset_stride * sizeof(int64_t));
  out.present = Buffer(num_present_ * out.stride);
  size_t next_int = 0, next_float = 0, next_offset = 0, next_present = 0;
  out.columns.reserve(plan_.fields.size());
  for (size_t i = 0; i < plan_.fields.size(); i++) {
    const FieldSpec& field = plan_.fields[i];
    Column& column = out.columns.emplace_back(field, static_cast<int32_t>(i), plan_.strict, num_rows);
    if (field.layout == Layout::kScalar && field.kind == Kind::kInt64) {
      column.fixed = out.ints.as<int64_t>() + out.stride * next_int++;
    } else if (field.layout == Layout::kScalar) {
      column.fixed = out.floats.as<float>() + out.stride * next_float++;
    }
    if (has_row_offsets(field.layout)) {
      column.row_offsets = out.offsets.as<int64_t>() + out.offset_stride * next_offset++;
      column.row_offsets[0] = 0;
    }
    if (!field.required) column.present = out.present.data() + out.stride * next_present++;
  }
  return out;
}

// Large records are read to where they stay, so that their byte strings need not be copied once more.
bool Decoder::pays_to_keep(int64_t num_rows, size_t num_bytes) const {
  constexpr size_t kLargeRecord = 4096;
  return has_strings_ && num_rows > 0 && num_bytes / static_cast<size_t>(num_rows) >= kLargeRecord;
}

void Decoder::decode_chunk(Workspace& work, bool keeps, int64_t start, Decoded& out) const {
  const auto total = static_cast<int64_t>(work.records.size());
  for (int64_t first = 0; first < total; first += kBlockRows) {
    const int count = static_cast<int>(std::min<int64_t>(kBlockRows, total - first));
    bool bad[kBlockRows] = {};
    work.structure.begin(work.fetcher.base());
    for (int row = 0; row < count; row++) {
      const Fetched& record = work.records[static_cast<size_t>(first + row)];
      Fault fault = record.fault;
      if (!fault) {
        fault.status = work.structure.add(row, record.payload);
        if (PENSTOCK_LIKELY(!fault)) continue;
        work.structure.drop(row);
      }
      bad[row] = true;
      std::string detail;
      if (fault.status == Status::kKeyNotUtf8) {
        const Span key = work.structure.bad_key();
        detail.assign(reinterpret_cast<const char*>(key.data), std::min(key.size, kLongestDetail));
      }
      out.faults.push_back({start + first + row, fault, std::move(detail)});
    }
    if (keeps && start + first == 0) {
      for (Column& column : out.columns) column.choose_views(work.structure, count, work.fetcher.arena());
    }
    for (Column& column : out.columns) column.read(work.structure, count, start + first, bad, out.faults);
  }
}

Decoded Decoder::decode(const std::vector<Segment>& segments) const {
  int64_t num_rows = 0;
  size_t num_bytes = 0;
  for (const Segment& segment : segments) {
    num_rows += segment.num_records;
    for (int64_t i = 0; i < segment.num_records; i++) num_bytes += static_cast<size_t>(segment.sizes[i]);
  }
  Decoded out = allocate(num_rows);
  std::unique_ptr<Workspace> work = borrow();
  const bool keeps = pays_to_keep(num_rows, num_bytes);
  if (keeps) work->fetcher.keep(num_bytes);
  int64_t start = 0;
  std::chrono::nanoseconds reading{0};
  for (const Segment& segment : segments) {
    for (int64_t first = 0; first < segment.num_records;) {
      const auto begin = std::chrono::steady_clock::now();
      const int64_t count = work->fetcher.fetch(segment, first, segment.num_records - first, work->records);
      reading += std::chrono::steady_clock::now() - begin;
      decode_chunk(*work, keeps, start, out);
      first += count;
      start += count;
    }
  }
  bytes_read_ += num_bytes;
  read_nanoseconds_ += static_cast<uint64_t>(reading.count());
  if (keeps) out.kept = work->fetcher.release();
  give_back(std::move(work));
  std::stable_sort(out.faults.begin(), out.faults.end(),
                   [](const RowFault& a, const RowFault& b) { return a.row < b.row; });
  return out;
}

}  // namespace penstock
