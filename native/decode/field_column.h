// The values of one field in memory, wherever they came from: what decoding and caches hand to a program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/column.h"
#include "foundation/dtype.h"
#include "foundation/pool.h"

namespace penstock {

// A view. Row i has the items starts[i] to stops[i] of a list, or item i. Items are checked when they are
// read: offsets may come from arrays that Python can change.
struct FieldColumn {
  enum class Form : uint8_t {
    kNone,     // something that has no view, such as lists of lists
    kNumbers,  // `width` numbers per item
    kStrings,  // one byte string per item
    kCodes,    // one number of a vocabulary per item, or -1
  };

  Form form = Form::kNone;
  bool is_list = false;
  bool is_raw = false;   // numbers: bytes of numbers whose type the view does not know
  bool is_wide = false;  // numbers: stored as int64, and possibly declared as a smaller type
  size_t num_rows = 0, num_items = 0;
  const int64_t *starts = nullptr, *stops = nullptr;
  const uint8_t* present = nullptr;  // one byte per row, or null if all are present
  size_t present_stride = 1;         // bytes from one row to the next

  const uint8_t* values = nullptr;  // numbers, or codes (int32)
  size_t stride = 0;                // bytes from one item to the next: items of lists are contiguous
  DType dtype = DType::kOther;
  size_t width = 1;

  const uint8_t* arena = nullptr;  // string i is arena[begins[i]] to arena[ends[i]]
  size_t arena_bytes = 0;
  const int64_t *begins = nullptr, *ends = nullptr;
  size_t span_stride = 1;  // entries of these from one string to the next
};

// The view of a decoded column; `kept` holds the records, if it shows byte strings where they lie.
FieldColumn view_column(const FieldSpec& spec, const Column& column, size_t num_rows, const Buffer& kept);

}  // namespace penstock
