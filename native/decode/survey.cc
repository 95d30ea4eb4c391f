#include "decode/survey.h"

#include <algorithm>

#include "decode/packed_varints.h"
#include "record/wire.h"
#include "text/utf8.h"
#include "write/hash.h"

namespace penstock {
namespace {

bool begins_with(Span value, std::string_view magic, size_t at = 0) {
  return value.size >= at + magic.size() && std::memcmp(value.data + at, magic.data(), magic.size()) == 0;
}

int64_t count_words(Span value) {
  int64_t words = 0;
  bool is_inside = false;
  for (size_t i = 0; i < value.size; i++) {
    const bool is_space = value.data[i] == ' ' || (value.data[i] >= '\t' && value.data[i] <= '\r');
    words += !is_space && !is_inside;
    is_inside = !is_space;
  }
  return words;
}

Status unpack(Span packed, std::vector<int64_t>& out) {
  size_t count;
  if (out.size() < packed.size) out.resize(packed.size);
  const Status status = unpack_varints(packed, false, out.data(), count);
  out.resize(count);
  return status;
}

}  // namespace

void DistinctCounter::insert(uint64_t hash) {
  const size_t last = slots_.size() - 1;
  size_t at = (hash >> 32) & last;
  for (; slots_[at] != 0; at = (at + 1) & last) {
    if (slots_[at] == hash) return;
  }
  slots_[at] = hash;
  size_++;
}

void DistinctCounter::rebuild(size_t num_slots) {
  std::vector<uint64_t> before(num_slots, 0);
  before.swap(slots_);
  size_ = 0;
  for (uint64_t each : before) {
    if (each != 0 && is_kept(each)) insert(each);
  }
}

void DistinctCounter::add(uint64_t hash) {
  if (hash == 0) hash = uint64_t{1} << 63;
  if (!is_kept(hash)) return;
  if (slots_.empty()) slots_.assign(kFirstSlots, 0);
  insert(hash);
  if (2 * size_ <= slots_.size()) return;
  // Small at first, as there may be many fields.
  if (slots_.size() < kMostSlots) {
    rebuild(2 * slots_.size());
    return;
  }
  while (2 * size_ > slots_.size()) {
    num_zeros_++;
    rebuild(slots_.size());
  }
}

void FieldCounts::add_int(int64_t value) {
  int_min = std::min(int_min, value);
  int_max = std::max(int_max, value);
  if (many_ints) {
    distinct.add(key_of(static_cast<uint64_t>(value)));
    return;
  }
  int_values.insert(value);
  if (int_values.size() > kMostDistinct) {
    many_ints = true;
    for (int64_t each : int_values) distinct.add(key_of(static_cast<uint64_t>(each)));
    int_values.clear();
  }
}

void FieldCounts::add_bytes(Span value) {
  using namespace std::string_view_literals;
  const auto size = static_cast<int64_t>(value.size);
  num_values++;
  min_bytes = std::min(min_bytes, size);
  max_bytes = std::max(max_bytes, size);
  text += is_text(value);
  jpeg += begins_with(value, "\xff\xd8\xff"sv);
  png += begins_with(value, "\x89PNG\r\n\x1a\n"sv);
  gif += begins_with(value, "GIF87a"sv) || begins_with(value, "GIF89a"sv);
  webp += begins_with(value, "RIFF"sv) && begins_with(value, "WEBP"sv, 8);
  bmp += begins_with(value, "BM"sv) && begins_with(value, "\0\0\0\0"sv, 6);  // the reserved words are always zero
  if (num_worded < kMostWorded) {
    num_worded++;
    num_words += count_words(value);
  }
  if (many_strings) {
    distinct.add(hash_bytes(value));
    return;
  }
  if (value.size <= kLongestDistinct) {
    strings.emplace(reinterpret_cast<const char*>(value.data), value.size);
  }
  if (value.size > kLongestDistinct || strings.size() > kMostDistinct) {
    many_strings = true;
    for (const std::string& each : strings) {
      distinct.add(hash_bytes(Span{reinterpret_cast<const uint8_t*>(each.data()), each.size()}));
    }
    distinct.add(hash_bytes(value));
    strings.clear();
  }
}

Status FieldCounts::add(const Feature& feature, std::vector<int64_t>& scratch) {
  by_kind[static_cast<size_t>(feature.kind())]++;
  if (feature.kind() == Kind::kUnset) return Status::kOk;
  int64_t num_ints = 0;
  for (const Span& piece : feature.pieces()) {
    if (feature.kind() == Kind::kBytes) {
      add_bytes(piece);
    } else if (feature.kind() == Kind::kInt64) {
      if (Status s = unpack(piece, scratch); s != Status::kOk) return s;
      num_ints += static_cast<int64_t>(scratch.size());
      for (int64_t value : scratch) add_int(value);
    }
  }
  const int64_t count = feature.kind() == Kind::kInt64 ? num_ints : feature.num_pieced();
  min_len = std::min(min_len, count);
  max_len = std::max(max_len, count);
  return Status::kOk;
}

FieldCounts* Survey::find_counts(Span key, Map& map, std::deque<FieldCounts>& store) {
  const std::string_view view(reinterpret_cast<const char*>(key.data), key.size);
  const size_t at = map.found.size();
  if (at < map.usual.size() && map.usual[at]->name == view) return map.usual[at];
  auto known = map.names.find(view);
  if (known == map.names.end()) {
    if (store.size() >= kMostKeys) return nullptr;
    FieldCounts& counts = store.emplace_back();
    counts.name.assign(view);
    known = map.names.emplace(std::string_view(counts.name), &counts).first;
  }
  if (at < map.usual.size()) {
    map.usual[at] = known->second;
  } else if (at == map.usual.size() && at < kMostDistinct) {
    map.usual.push_back(known->second);
  }
  return known->second;
}

// Notes the entries of a map.
Status Survey::find_entries(Span message, Map& map, std::deque<FieldCounts>& store) {
  for (Cursor in(message, kInMap); !in.done();) {
    Span entry, key;
    bool is_entry;
    if (Status s = read_field(in, 1, entry, is_entry); s != Status::kOk) return s;
    if (!is_entry) continue;
    if (Status s = read_entry_key(entry, key); s != Status::kOk) return s;
    FieldCounts* const counts = find_counts(key, map, store);
    if (counts == nullptr) {
      map.found.push_back({&discarded_, entry});
      continue;
    }
    map.has_duplicates |= counts->last_record == records;
    counts->last_record = records;
    map.found.push_back({counts, entry});
  }
  return Status::kOk;
}

// Keeps the last entry of each key, which is the one that counts.
void Survey::keep_last(Map& map) {
  if (!map.has_duplicates) return;
  auto& found = map.found;
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.counts < b.counts; });
  size_t kept = 0;
  for (size_t i = 0; i < found.size(); i++) {
    if (i + 1 < found.size() && found[i].counts == found[i + 1].counts) continue;
    found[kept++] = found[i];
  }
  found.resize(kept);
}

Status Survey::each_step(Span message, bool is_entry, FieldCounts* counts, int64_t& steps) {
  for (Cursor in(message, is_entry ? kInEntry : kInFeature); !in.done();) {
    Span inner;
    bool found;
    if (Status s = read_field(in, is_entry ? 2 : 1, inner, found); s != Status::kOk) return s;
    if (!found) continue;
    if (is_entry) {
      if (Status s = each_step(inner, false, counts, steps); s != Status::kOk) return s;
      continue;
    }
    feature_.clear();
    if (Status s = feature_.merge(inner, kInStep); s != Status::kOk) return s;
    if (Status s = counts->add(feature_, scratch_); s != Status::kOk) return s;
    steps++;
  }
  return Status::kOk;
}

// Parses the features of a record without counting them: a record is counted whole or not at all.
Status Survey::parse_features() {
  const auto& found = field_map_.found;
  if (features_.size() < found.size()) features_.resize(found.size());
  for (size_t i = 0; i < found.size(); i++) {
    Feature& feature = features_[i];
    feature.clear();
    if (Status s = feature.merge_entry(found[i].entry); s != Status::kOk) return s;
    if (feature.kind() != Kind::kInt64) continue;
    for (const Span& piece : feature.pieces()) {
      if (Status s = unpack(piece, scratch_); s != Status::kOk) return s;
    }
  }
  return Status::kOk;
}

Status Survey::check_lists() {
  for (const Found& item : list_map_.found) {
    discarded_ = FieldCounts();
    int64_t steps = 0;
    if (Status s = each_step(item.entry, true, &discarded_, steps); s != Status::kOk) return s;
  }
  return Status::kOk;
}

void Survey::count_lists() {
  for (const Found& item : list_map_.found) {
    int64_t steps = 0;
    each_step(item.entry, true, item.counts, steps);
    item.counts->records++;
    item.counts->min_steps = std::min(item.counts->min_steps, steps);
    item.counts->max_steps = std::max(item.counts->max_steps, steps);
  }
}

Survey::Result Survey::add(Span payload) {
  Result result;
  records++;
  empty += payload.size == 0;
  for (Map* map : {&field_map_, &list_map_}) {
    map->found.clear();
    map->has_duplicates = false;
  }
  bool carries_features = payload.size == 0, carries_lists = false;
  for (Cursor in(payload, kDeepestGroup); !in.done() && result.status == Status::kOk;) {
    uint32_t field, wire_type;
    result.status = read_tag(in, field, wire_type);
    if (result.status != Status::kOk) break;
    if (field > 2 || (field == 2 && wire_type != kLengthDelimited)) {
      // To an Example field 2 is unknown. To a SequenceExample it is its lists, in a wire type that they cannot have.
      if (field == 2 && result.list_status == Status::kOk) result.list_status = Status::kWrongWireType;
      result.status = skip_value(in, field, wire_type);
      continue;
    }
    Span map;
    result.status = wire_type == kLengthDelimited ? read_span(in, map) : Status::kWrongWireType;
    if (result.status != Status::kOk) break;
    if (field == 1) {
      carries_features = true;
      result.status = find_entries(map, field_map_, fields);
    } else if (result.list_status == Status::kOk) {
      carries_lists = true;
      result.list_status = find_entries(map, list_map_, lists);
    }
  }
  // Values that a later entry of the same key replaces must be sound as well: to protobuf they are part of the message.
  if (result.status == Status::kOk) result.status = parse_features();
  if (result.status != Status::kOk) {
    unparsable++;
    return result;
  }
  if (carries_lists && result.list_status == Status::kOk) result.list_status = check_lists();
  const bool lists_are_sound = carries_lists && result.list_status == Status::kOk;
  keep_last(list_map_);
  if (field_map_.has_duplicates) {
    keep_last(field_map_);
    parse_features();
  }
  for (size_t i = 0; i < field_map_.found.size(); i++) field_map_.found[i].counts->add(features_[i], scratch_);
  if (lists_are_sound) count_lists();
  with_lists += lists_are_sound && !list_map_.found.empty();
  featureless += !carries_features && !lists_are_sound;
  return result;
}

}  // namespace penstock
