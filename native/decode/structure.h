// Phase one of decoding: where each wanted field's values are, for a block of records. No value is read here.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/key_order.h"
#include "decode/plan.h"
#include "foundation/bytes.h"
#include "record/status.h"

namespace penstock {

inline constexpr int kBlockRows = 64;  // a block's cells stay in the first-level cache

// Where one field of one record is, as an offset from the block's base. Zero: the record lacks the field.
struct Cell {
  uint32_t offset = 0;
  uint32_t size_and_form = 0;

  static constexpr uint32_t kGeneral = 0x80000000u;  // lengths are below 2^31

  bool absent() const { return offset == 0; }
  // Whether this is a whole map entry for the general parser, rather than the bare bytes of a list of one piece (of a
  // FeatureList message, for a field of steps).
  bool general() const { return (size_and_form & kGeneral) != 0; }
  uint32_t size() const { return size_and_form & ~kGeneral; }
};

class Structure {
 public:
  explicit Structure(const Plan& plan)
      : plan_(plan),
        features_{plan.features, {}},
        lists_{plan.feature_lists, {}},
        cells_((plan.fields.size() + 1) * kBlockRows) {}

  // Forgets the block before. Offsets count from `base`, which lies below every payload of the block.
  void begin(const uint8_t* base);

  // Finds the fields of the record at `row` of the block.
  Status add(int row, Span payload);

  // Takes back what add() noted for a record that turned out to be bad.
  void drop(int row);

  // The key that add() refused because it is not UTF-8.
  Span bad_key() const { return bad_key_; }

  const Cell* column(size_t field) const { return &cells_[field * kBlockRows]; }
  Span bytes(const Cell& cell) const { return Span{base_ + cell.offset, cell.size()}; }

 private:
  // The keys of one kind of map. Copies of those in the plan: they learn.
  struct Keys {
    KeyTable table;
    KeyOrder order;
  };

  Status add_map(Keys& keys, int row, Span map);
  Status add_ordered_map(Keys& keys, int row, Span map);
  Status add_unexpected(Keys& keys, int row, const uint8_t* end, const uint8_t*& p, const KeyOrder::Expected*& expected,
                        size_t& num_missed);
  Status add_field(KeyTable& table, int row, const uint8_t* end, const uint8_t*& p);
  Status add_entry(KeyTable& table, int row, Span entry);
  Status note(uint32_t field, int row, Span found, uint32_t form);
  Status check_replaced(uint32_t field, const Cell& cell);
  // Unwanted fields have a separate column that is not read, and in which all cells stay absent.
  uint32_t unwanted() const { return static_cast<uint32_t>(plan_.fields.size()); }

  const Plan& plan_;
  Keys features_;
  Keys lists_;
  std::vector<Cell> cells_;
  const uint8_t* base_ = nullptr;
  Span bad_key_;
};

}  // namespace penstock
