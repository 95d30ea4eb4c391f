#include "material.h"

#include <iterator>

namespace penstock::fuzz {
namespace {

constexpr size_t kLengths[] = {16, 17, 110, 119, 120, 127, 128, 129, 300, 16370, 16383, 16384};

// Every number of bytes that a varint can have, and both signs.
int64_t take_int(Input& in) {
  const uint8_t choice = in.byte();
  const uint64_t power = uint64_t{1} << choice % 64;
  switch (choice >> 6) {
    case 0:
      return choice;
    case 1:
      return static_cast<int64_t>(power);
    case 2:
      return static_cast<int64_t>(power - 1);
    default:
      return static_cast<int64_t>(~power);
  }
}

float take_float(Input& in) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; i++) bits = bits << 8 | in.byte();
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

Material::Material(Input& in, const std::string& key, bool sequence_example, int64_t num_rows) {
  spec_.key = key;
  choose_layout(in, sequence_example);
  if (is_ragged_) row_offsets_.push_back(0);
  if (has_ragged_steps_) step_offsets_.push_back(0);
  if (!spec_.required) present_ = std::make_unique<bool[]>(static_cast<size_t>(num_rows));
  for (int64_t row = 0; row < num_rows; row++) {
    if (present_ != nullptr) present_[static_cast<size_t>(row)] = in.byte() % 4 != 0;
    const int64_t count = is_ragged_ ? in.byte() % 5 : spec_.count;
    if (spec_.layout == Layout::kSteps) {
      for (int64_t step = 0; step < count; step++) {
        add_values(in, has_ragged_steps_ ? in.byte() % 4 : spec_.count);
        if (has_ragged_steps_) step_offsets_.push_back(num_values());
      }
      row_offsets_.push_back(row_offsets_.back() + count);
    } else {
      add_values(in, count);
      if (is_ragged_) row_offsets_.push_back(row_offsets_.back() + count);
    }
    if (is_late()) {
      hashes_.push_back(in.byte());
      digests_.insert(digests_.end(), {hashes_.back(), 0});
    }
  }
  for (auto* each : {&ints_, &starts_, &stops_, &row_offsets_, &step_offsets_}) each->shrink_to_fit();
  floats_.shrink_to_fit();
  bytes_.shrink_to_fit();
}

void Material::choose_layout(Input& in, bool sequence_example) {
  const uint8_t choices = in.byte();
  spec_.required = choices & 0x80;
  const bool wants_floats = choices & 0x40;
  source_ = wants_floats ? Source::kFloats : Source::kInts;
  spec_.count = 1;
  switch (choices % 8) {
    case 0:
      spec_.layout = Layout::kScalar;
      break;
    case 1:
      spec_.layout = Layout::kFixed;
      spec_.count = choices & 0x08 ? 40 : 3;
      break;
    case 2:
      spec_.layout = Layout::kList;
      break;
    case 3:
      spec_.layout = Layout::kString;
      source_ = wants_floats && !sequence_example ? Source::kDeferred : Source::kStrings;
      break;
    case 4:
      spec_.layout = Layout::kStrings;
      source_ = Source::kStrings;
      break;
    case 5:
      spec_.layout = Layout::kRaw;
      source_ = Source::kRaw;
      spec_.count = choices & 0x08 ? 130 : 8;
      break;
    default:
      spec_.layout = sequence_example ? Layout::kSteps : Layout::kList;
      if (sequence_example && choices & 0x08) source_ = Source::kStrings;
      has_ragged_steps_ = sequence_example && choices & 0x10;
      if (sequence_example) spec_.count = choices & 0x20 ? 2 : 1;
  }
  is_ragged_ = spec_.layout == Layout::kList || spec_.layout == Layout::kStrings || spec_.layout == Layout::kSteps;
  if (spec_.layout == Layout::kList || spec_.layout == Layout::kStrings || has_ragged_steps_) spec_.count = -1;
  spec_.kind = source_ == Source::kInts ? Kind::kInt64 : source_ == Source::kFloats ? Kind::kFloat : Kind::kBytes;
}

void Material::add_values(Input& in, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (source_ == Source::kInts) ints_.push_back(take_int(in));
    else if (source_ == Source::kFloats) floats_.push_back(take_float(in));
    else if (source_ == Source::kRaw) bytes_.push_back(in.byte());
    else add_string(in);
  }
}

void Material::add_string(Input& in) {
  const size_t choice = in.byte();
  if (choice == 0xff && !starts_.empty()) {  // the same bytes again
    starts_.push_back(starts_.back());
    stops_.push_back(stops_.back());
    return;
  }
  if (choice >= 0xe0) bytes_.push_back('|');  // a gap
  const size_t size = choice >= 0xc0 ? kLengths[choice % std::size(kLengths)] : choice % 64;
  starts_.push_back(static_cast<int64_t>(bytes_.size()));
  const Span own = in.take(std::min<size_t>(size, 8));
  bytes_.insert(bytes_.end(), own.begin(), own.end());
  bytes_.resize(bytes_.size() + size - own.size, static_cast<uint8_t>(choice));
  stops_.push_back(static_cast<int64_t>(bytes_.size()));
}

EncodeColumn Material::column() const {
  EncodeColumn column;
  column.ints = ints_.data();
  column.floats = floats_.data();
  column.bytes = bytes_.data();
  column.starts = starts_.data();
  column.stops = stops_.data();
  if (is_ragged_) column.row_offsets = row_offsets_.data();
  if (has_ragged_steps_) column.step_offsets = step_offsets_.data();
  column.present = present_.get();
  column.hashes = hashes_.data();
  column.content_digests = digests_.data();
  column.count = is_ragged_ ? 1 : spec_.count;
  column.step_count = spec_.layout == Layout::kSteps && !has_ragged_steps_ ? spec_.count : 1;
  return column;
}

Span Material::string(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  return Span{bytes_.data() + starts_[at], static_cast<size_t>(stops_[at] - starts_[at])};
}

void Material::write_values(int64_t begin, int64_t end, RowBytes& out) const {
  for (int64_t i = begin; i < end; i++) {
    const auto at = static_cast<size_t>(i);
    if (source_ == Source::kInts) out.number(ints_[at]);
    else if (source_ == Source::kFloats) out.number(load32(reinterpret_cast<const uint8_t*>(&floats_[at])));
    else out.string(string(i));
  }
}

RowBytes Material::row(int64_t row) const {
  RowBytes out;
  const auto at = static_cast<size_t>(row);
  if (spec_.layout == Layout::kRaw) {
    out.string(Span{bytes_.data() + row * spec_.count, static_cast<size_t>(spec_.count)});
  } else if (!is_ragged_) {
    write_values(row * spec_.count, (row + 1) * spec_.count, out);
  } else if (spec_.layout != Layout::kSteps) {
    out.number(static_cast<size_t>(row_offsets_[at + 1] - row_offsets_[at]));
    write_values(row_offsets_[at], row_offsets_[at + 1], out);
  } else {
    for (int64_t step = row_offsets_[at]; step < row_offsets_[at + 1]; step++) {
      const auto number = static_cast<size_t>(step);
      const int64_t begin = has_ragged_steps_ ? step_offsets_[number] : step * spec_.count;
      const int64_t end = has_ragged_steps_ ? step_offsets_[number + 1] : begin + spec_.count;
      if (has_ragged_steps_) out.number(static_cast<size_t>(end - begin));
      write_values(begin, end, out);
    }
    out.number(static_cast<size_t>(row_offsets_[at + 1] - row_offsets_[at]));
  }
  return out;
}

}  // namespace penstock::fuzz
