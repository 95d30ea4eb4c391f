#include "decode/structure.h"

#include <algorithm>

#include "decode/feature.h"
#include "decode/packed_varints.h"
#include "record/wire.h"

namespace penstock {
namespace {

constexpr uint8_t kFieldOne = 0x0a;  // tag: field 1, length-delimited
constexpr uint8_t kFieldTwo = 0x12;

inline uint8_t list_tag(Kind kind) { return static_cast<uint8_t>(static_cast<uint32_t>(kind) << 3 | kLengthDelimited); }

// Reads `tag length` where the length reaches exactly to the end, which is how nested messages of one field look.
inline bool enter(Cursor& in, uint8_t tag) {
  if (in.done() || *in.p != tag) return false;
  Cursor next(in.p + 1, in.end);
  uint64_t length;
  if (read_varint_of<5>(next, length) != Status::kOk || length != next.left()) return false;
  in = next;
  return true;
}

Status check_values(const Feature& feature) {
  std::vector<int64_t> values;
  for (const Span& piece : feature.pieces()) {
    if (feature.kind() == Kind::kFloat && piece.size % 4 != 0) return Status::kPackedFloatSize;
    if (feature.kind() != Kind::kInt64) continue;
    size_t count;
    values.resize(piece.size);
    if (Status s = unpack_varints(piece, false, values.data(), count); s != Status::kOk) return s;
  }
  return Status::kOk;
}

Status check_feature(Span message, int deepest_group, Feature& feature) {
  feature.clear();
  if (Status s = feature.merge(message, deepest_group); s != Status::kOk) return s;
  return check_values(feature);
}

Status check_steps(Span list, Feature& feature) {
  for (Cursor in(list, kInFeature); !in.done();) {
    Span step;
    bool found;
    if (Status s = read_field(in, 1, step, found); s != Status::kOk) return s;
    if (!found) continue;
    if (Status s = check_feature(step, kInStep, feature); s != Status::kOk) return s;
  }
  return Status::kOk;
}

// Notes where the values of a short entry are. False if the record has had its key before. `known` is the slot of the
// key, or its entry in the order.
template <typename Known>
inline bool note_short(Cell* cells, const Known& known, const uint8_t* p, size_t size, const uint8_t* base,
                       uint32_t num_fields) {
  Cell& cell = cells[size_t{known.field} * kBlockRows];
  if (PENSTOCK_UNLIKELY(!cell.absent())) return false;
  // Cells of the unwanted column stay absent.
  cell.offset = known.field == num_fields ? 0 : static_cast<uint32_t>(p + known.prefix_size - base);
  cell.size_and_form = static_cast<uint32_t>(size - known.prefix_size);
  return true;
}

// The slot of the entry at p, if it is short and looks as its slot says; else null.
inline const KeyTable::Slot* match_short(const KeyTable::View& view, const uint8_t* p, const uint8_t* end) {
  // Field 1, an entry below 128 bytes, its field 1, a short key: 0a e 0a k.
  const uint32_t head = load32(p);
  const size_t entry_size = (head >> 8) & 0xff, key_size = head >> 24;
  if (PENSTOCK_UNLIKELY((head & 0x00ff80ff) != 0x000a000a || key_size > KeyTable::kLongestShortKey ||
                        entry_size + 2 > static_cast<size_t>(end - p))) {
    return nullptr;
  }
  return view.match(p, entry_size, key_size);
}

}  // namespace

void Structure::begin(const uint8_t* base) {
  base_ = base;
  std::fill(cells_.begin(), cells_.end(), Cell{});
}

void Structure::drop(int row) {
  for (size_t field = 0; field < plan_.fields.size(); field++) {
    cells_[field * kBlockRows + static_cast<size_t>(row)] = Cell{};
  }
}

// Whether a value that another entry of the same key replaces is sound, for protobuf refuses the record if it is not.
Status Structure::check_replaced(uint32_t field, const Cell& cell) {
  const FieldSpec& spec = plan_.fields[field];
  if (plan_.strict) return Status::kDuplicateKey;
  Feature feature;
  feature.clear();
  if (spec.layout == Layout::kSteps) {
    if (!cell.general()) return check_steps(bytes(cell), feature);
    for (Cursor in(bytes(cell), kInEntry); !in.done();) {
      Span list;
      bool found;
      if (Status s = read_field(in, 2, list, found); s != Status::kOk) return s;
      if (!found) continue;
      if (Status s = check_steps(list, feature); s != Status::kOk) return s;
    }
    return Status::kOk;
  }
  if (cell.general()) {
    if (Status s = feature.merge_entry(bytes(cell)); s != Status::kOk) return s;
  } else {
    feature.assume(spec.kind, bytes(cell));
  }
  return check_values(feature);
}

Status Structure::note(uint32_t field, int row, Span found, uint32_t form) {
  Cell& cell = cells_[size_t{field} * kBlockRows + static_cast<size_t>(row)];
  if (PENSTOCK_UNLIKELY(!cell.absent())) {
    if (Status s = check_replaced(field, cell); s != Status::kOk) return s;
  }
  cell.offset = field == unwanted() ? 0 : static_cast<uint32_t>(found.data - base_);
  cell.size_and_form = static_cast<uint32_t>(found.size) | form;
  return Status::kOk;
}

Status Structure::add_entry(KeyTable& table, int row, Span entry) {
  // An entry written by any common program: key first, then a value that holds one list of one piece.
  const uint8_t* p = entry.data;
  const KeyTable::Slot* slot = nullptr;
  Span found = entry;
  uint32_t form = Cell::kGeneral;
  if (PENSTOCK_LIKELY(entry.size >= 2 && p[0] == kFieldOne && p[1] < 0x80 && p[1] + size_t{2} <= entry.size)) {
    slot = table.find(p + 2, p[1]);
    Cursor in(p + 2 + p[1], entry.end());
    // The value must reach to the end of the entry, for a second key may follow it otherwise.
    if (slot != nullptr && !enter(in, kFieldTwo)) slot = nullptr;
    if (slot != nullptr && slot->field < plan_.fields.size()) {
      const FieldSpec& spec = plan_.fields[slot->field];
      if (spec.layout == Layout::kSteps || (enter(in, list_tag(spec.kind)) && enter(in, kFieldOne))) {
        found = Span{in.p, in.left()};
        form = 0;
      }
    }
  }
  if (slot == nullptr) {
    Span key;
    if (Status s = read_entry_key(entry, key); s != Status::kOk) {
      bad_key_ = key;
      return s;
    }
    if (key.data == nullptr) key.data = entry.data;  // no key is the key ""
    slot = table.find(key.data, key.size);
    if (slot == nullptr) {
      table.learn(key.data, key.size, unwanted());
      return Status::kOk;
    }
  }
  return note(slot->field, row, found, form);
}

Status Structure::add_map(Keys& keys, int row, Span map) {
  if (PENSTOCK_LIKELY(keys.order.is_reliable())) return add_ordered_map(keys, row, map);
  keys.order.count_ignored();
  // Copies, for the stores to cells might change the members as far as the compiler knows; and rare cases are kept out
  // of the loop, so that these stay in registers.
  KeyTable::View view = keys.table.view();
  Cell* const cells = cells_.data() + row;
  const uint8_t* const base = base_;
  const uint32_t num_fields = unwanted();
  const uint8_t* p = map.begin();
  const uint8_t* const end = map.end();
  while (p < end) {
    const KeyTable::Slot* const slot = match_short(view, p, end);
    if (PENSTOCK_LIKELY(slot != nullptr)) {
      const size_t size = size_t{p[1]} + 2;
      if (PENSTOCK_LIKELY(note_short(cells, *slot, p, size, base, num_fields))) {
        p += size;
        continue;
      }
    }
    if (Status s = add_field(keys.table, row, end, p); s != Status::kOk) return s;
    view = keys.table.view();
  }
  return Status::kOk;
}

Status Structure::add_ordered_map(Keys& keys, int row, Span map) {
  Cell* const cells = cells_.data() + row;
  const uint8_t* const base = base_;
  const uint32_t num_fields = unwanted();
  const uint8_t* p = map.begin();
  const uint8_t* const end = map.end();
  const KeyOrder::Expected* expected = keys.order.begin();
  size_t num_matched = 0, num_missed = 0;
  while (p < end) {
    const uint64_t first = load64(p);
    const size_t size = (first >> 8 & 0xff) + 2;
    if (PENSTOCK_LIKELY(expected->matches(p, first, size - 2) && size <= static_cast<size_t>(end - p))) {
      if (PENSTOCK_LIKELY(note_short(cells, *expected, p, size, base, num_fields))) {
        p += size;
        expected++;
        num_matched++;
        continue;
      }
    }
    if (Status s = add_unexpected(keys, row, end, p, expected, num_missed); s != Status::kOk) return s;
  }
  keys.order.count(num_matched, num_missed);
  return Status::kOk;
}

// The entry at p, whose key is not the expected one.
__attribute__((noinline)) Status Structure::add_unexpected(Keys& keys, int row, const uint8_t* end, const uint8_t*& p,
                                                           const KeyOrder::Expected*& expected, size_t& num_missed) {
  const KeyTable::Slot* const slot = match_short(keys.table.view(), p, end);
  if (slot == nullptr) return add_field(keys.table, row, end, p);
  const size_t size = size_t{p[1]} + 2;
  if (!note_short(cells_.data() + row, *slot, p, size, base_, unwanted())) {
    return add_field(keys.table, row, end, p);
  }
  p += size;
  expected = keys.order.move_after(keys.table, *slot, expected);
  num_missed++;
  return Status::kOk;
}

// Whatever stands at p in a map, read by the general parser.
__attribute__((noinline)) Status Structure::add_field(KeyTable& table, int row, const uint8_t* end, const uint8_t*& p) {
  Cursor in(p, end, kInMap);
  Span entry;
  bool found;
  Status status = read_field(in, 1, entry, found);
  if (status == Status::kOk && found) status = add_entry(table, row, entry);
  p = in.p;
  return status;
}

Status Structure::add(int row, Span payload) {
  if (payload.size > kLargestLength) return Status::kLengthOverrun;  // protobuf's limit, and a cell's
  uint32_t seen = 0;
  for (Cursor in(payload, kDeepestGroup); !in.done();) {
    uint32_t field, wire_type;
    if (Status s = read_tag(in, field, wire_type); s != Status::kOk) return s;
    if (field != 1 && !(field == 2 && plan_.has_lists)) {
      if (Status s = skip_value(in, field, wire_type); s != Status::kOk) return s;
      continue;
    }
    if (wire_type != kLengthDelimited) return Status::kWrongWireType;
    Span map;
    if (Status s = read_span(in, map); s != Status::kOk) return s;
    if (plan_.strict && (seen & field)) return Status::kDuplicateKey;
    seen |= field;
    if (Status s = add_map(field == 1 ? features_ : lists_, row, map); s != Status::kOk) return s;
  }
  return Status::kOk;
}

}  // namespace penstock
