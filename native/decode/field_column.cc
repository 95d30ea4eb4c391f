#include "decode/field_column.h"

namespace penstock {

FieldColumn view_column(const FieldSpec& spec, const Column& column, size_t num_rows, const Buffer& kept) {
  FieldColumn view;
  view.num_rows = view.num_items = num_rows;
  view.present = column.present;
  const auto count = static_cast<size_t>(spec.count < 0 ? 0 : spec.count);
  const bool is_int = spec.kind == Kind::kInt64;
  const auto show_numbers = [&](const void* values, size_t width) {
    view.form = FieldColumn::Form::kNumbers;
    view.values = static_cast<const uint8_t*>(values);
    view.dtype = is_int ? DType::kInt64 : DType::kFloat32;
    view.width = width;
    view.stride = width * item_bytes(view.dtype);
  };
  const auto show_strings = [&](const int64_t* begins, const int64_t* ends) {
    view.form = FieldColumn::Form::kStrings;
    view.arena = column.bytes.data();
    view.arena_bytes = column.bytes.size();
    view.begins = begins;
    view.ends = ends;
  };
  const auto show_list = [&](size_t num_items) {
    view.is_list = true;
    view.starts = column.row_offsets;
    view.stops = column.row_offsets + 1;
    view.num_items = num_items;
  };
  const void* const list = is_int ? static_cast<const void*>(column.ints.data()) : column.floats.data();
  switch (spec.layout) {
    case Layout::kScalar:
      show_numbers(column.fixed, 1);
      break;
    case Layout::kFixed:
      show_numbers(list, count);
      view.is_wide = is_int;
      break;
    case Layout::kRaw:
      show_numbers(column.bytes.data(), count);
      view.dtype = DType::kUInt8;
      view.stride = count;
      view.is_raw = true;
      break;
    case Layout::kList:
      show_numbers(list, 1);
      show_list(is_int ? column.ints.size() : column.floats.size());
      break;
    case Layout::kString:
      if (column.is_view()) {
        show_strings(column.row_offsets, column.view_stops.data());
        view.arena = kept.data();
        view.arena_bytes = kept.capacity();
      } else {
        show_strings(column.row_offsets, column.row_offsets + 1);
      }
      break;
    case Layout::kCoded:
      view.form = FieldColumn::Form::kCodes;
      view.values = reinterpret_cast<const uint8_t*>(column.codes.data());
      view.dtype = DType::kInt32;
      view.stride = sizeof(int32_t);
      break;
    case Layout::kStrings:
      show_strings(column.value_offsets.data(), column.value_offsets.data() + 1);
      show_list(column.value_offsets.size() - 1);
      break;
    case Layout::kSteps: {
      // Steps of one string, or of one number of values, are items; others are lists of lists.
      const size_t num_steps = column.step_offsets.size() - 1;
      if (spec.kind == Kind::kBytes && spec.count == 1) {
        show_strings(column.value_offsets.data(), column.value_offsets.data() + 1);
        show_list(num_steps);
      } else if (spec.kind != Kind::kBytes && spec.count > 0) {
        show_numbers(list, count);
        show_list(num_steps);
      }
      break;
    }
  }
  return view;
}

}  // namespace penstock
