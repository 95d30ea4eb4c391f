#include "structure.h"

#include <algorithm>

#include "feature.h"
#include "wire.h"

namespace penstock {
namespace {

constexpr uint8_t kFieldOne = 0x0a;  // tag: field 1, length-delimited
constexpr uint8_t kFieldTwo = 0x12;

inline uint8_t list_tag(Kind kind) { return static_cast<uint8_t>(static_cast<uint8_t>(kind) << 3 | kLengthDelimited); }

// Reads `tag length` where the length reaches exactly to the end, which is how nested messages of one field look.
inline bool enter(Cursor& in, uint8_t tag) {
  if (in.done() || *in.p != tag) return false;
  Cursor next(in.p + 1, in.end);
  uint64_t length;
  if (read_varint_of<5>(next, length) != Status::kOk || length != next.left()) return false;
  in = next;
  return true;
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

inline void Structure::note(uint32_t field, int row, Span bytes, uint32_t form) {
  // The last of several entries with one key wins.
  Cell& cell = cells_[size_t{field} * kBlockRows + static_cast<size_t>(row)];
  cell.offset = static_cast<uint32_t>(bytes.data - base_);
  cell.size_and_form = static_cast<uint32_t>(bytes.size) | form;
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
    if (Status s = read_entry_key(entry, key); s != Status::kOk) return s;
    if (key.data == nullptr) key.data = entry.data;  // no key is the key ""
    slot = table.find(key.data, key.size);
    if (slot == nullptr) {
      table.learn(key.data, key.size, unwanted());
      return Status::kOk;
    }
  }
  if (plan_.strict && slot->field != unwanted() &&
      !cells_[size_t{slot->field} * kBlockRows + static_cast<size_t>(row)].absent()) {
    return Status::kDuplicateKey;
  }
  note(slot->field, row, found, form);
  return Status::kOk;
}

Status Structure::add_map(KeyTable& table, int row, Span map) {
  Cursor in(map, kInMap);
  while (!in.done()) {
    const uint8_t* const p = in.p;
    // Field 1, an entry below 128 bytes, its field 1, a short key: 0a e 0a k.
    const uint32_t head = load32(p);
    const size_t entry_size = (head >> 8) & 0xff, key_size = head >> 24;
    if (PENSTOCK_LIKELY((head & 0x00ff80ff) == 0x000a000a && key_size <= KeyTable::kLongestShortKey &&
                        entry_size + 2 <= in.left() && !plan_.strict)) {
      const KeyTable::Slot& slot = table.guess(p + 4, key_size);
      if (PENSTOCK_LIKELY(slot.fits(p, entry_size, key_size))) {
        note(slot.field, row, Span{p + slot.prefix_size, entry_size + 2 - slot.prefix_size}, 0);
        in.p += entry_size + 2;
        continue;
      }
    }
    Span entry;
    bool found;
    if (Status s = read_field(in, 1, entry, found); s != Status::kOk) return s;
    if (!found) continue;
    if (Status s = add_entry(table, row, entry); s != Status::kOk) return s;
  }
  return Status::kOk;
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
