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

inline Status Structure::note(const KeyTable::Slot& slot, int row, Span bytes, uint32_t form) {
  if (slot.field < 0) return Status::kOk;
  Cell& cell = cells_[static_cast<size_t>(slot.field) * kBlockRows + static_cast<size_t>(row)];
  if (PENSTOCK_UNLIKELY(plan_.strict && !cell.absent())) return Status::kDuplicateKey;
  cell.offset = static_cast<uint32_t>(bytes.data - base_);  // the last of several entries with one key wins
  cell.size_and_form = static_cast<uint32_t>(bytes.size) | form;
  return Status::kOk;
}

Status Structure::add_entry(KeyTable& table, int row, Span entry) {
  // An entry written by any common program: key first, then a value that holds one list of one piece.
  const uint8_t* p = entry.data;
  if (PENSTOCK_LIKELY(entry.size >= 2 && p[0] == kFieldOne && p[1] < 0x80 && p[1] + size_t{2} <= entry.size)) {
    const size_t key_size = p[1];
    if (const KeyTable::Slot* slot = table.find(p + 2, key_size)) {
      Cursor in(p + 2 + key_size, entry.end());
      if (enter(in, kFieldTwo)) {
        // The value reaches to the end of the entry, so no second key follows it.
        if (slot->field < 0) return Status::kOk;
        const FieldSpec& spec = plan_.fields[static_cast<size_t>(slot->field)];
        if (spec.layout == Layout::kSteps || (enter(in, list_tag(spec.kind)) && enter(in, kFieldOne))) {
          return note(*slot, row, Span{in.p, in.left()}, 0);
        }
        return note(*slot, row, entry, Cell::kGeneral);
      }
    }
  }
  Span key;
  if (Status s = read_entry_key(entry, key); s != Status::kOk) return s;
  if (key.data == nullptr) key.data = entry.data;  // no key is the key ""
  if (const KeyTable::Slot* slot = table.find(key.data, key.size)) return note(*slot, row, entry, Cell::kGeneral);
  table.learn(key.data, key.size);
  return Status::kOk;
}

Status Structure::add_map(KeyTable& table, int row, Span map) {
  Cursor in(map, kInMap);
  while (!in.done()) {
    const uint8_t* const p = in.p;
    if (PENSTOCK_LIKELY(in.left() >= 4 && p[0] == kFieldOne && p[1] < 0x80 && p[3] <= KeyTable::kLongestPrefixKey)) {
      const size_t entry_size = p[1];
      if (PENSTOCK_UNLIKELY(entry_size > in.left() - 2)) return Status::kLengthOverrun;
      const KeyTable::Slot* slot = table.guess(p + 4, p[3]);
      if (PENSTOCK_LIKELY(slot != nullptr && slot->prefix_size != 0 && slot->prefix_size <= entry_size + 2 &&
                          slot->prefix.matches(p, static_cast<uint8_t>(entry_size)))) {
        const Span payload{p + slot->prefix_size, entry_size + 2 - slot->prefix_size};
        if (Status s = note(*slot, row, payload, 0); s != Status::kOk) return s;
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
