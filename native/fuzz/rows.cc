#include "rows.h"

#include "require.h"

namespace penstock::fuzz {

RowBytes row_of(const FieldSpec& spec, Column& column, const Buffer& kept, int64_t row) {
  RowBytes out;
  const auto numbers = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      if (spec.kind == Kind::kInt64) out.number(column.ints.data()[i]);
      else out.number(load32(reinterpret_cast<const uint8_t*>(column.floats.data() + i)));
    }
  };
  const auto bytes = [&](int64_t begin, int64_t end) {
    REQUIRE(0 <= begin && begin <= end && static_cast<size_t>(end) <= column.bytes.size());
    out.string(Span{column.bytes.data() + begin, static_cast<size_t>(end - begin)});
  };
  const auto values = [&](int64_t begin, int64_t end) {
    REQUIRE(0 <= begin && begin <= end);
    if (spec.kind != Kind::kBytes) return numbers(begin, end);
    for (int64_t i = begin; i < end; i++) bytes(column.value_offsets.data()[i], column.value_offsets.data()[i + 1]);
  };
  const int64_t* const bounds = column.row_offsets == nullptr ? nullptr : column.row_offsets + row;
  switch (spec.layout) {
    case Layout::kScalar:
      if (spec.kind == Kind::kInt64) out.number(static_cast<int64_t*>(column.fixed)[row]);
      else out.number(load32(static_cast<uint8_t*>(column.fixed) + 4 * row));
      break;
    case Layout::kCoded:
      out.number(static_cast<size_t>(column.codes.data()[row]));
      break;
    case Layout::kFixed:
      numbers(row * spec.count, (row + 1) * spec.count);
      break;
    case Layout::kRaw:
      bytes(row * spec.count, (row + 1) * spec.count);
      break;
    case Layout::kString:
      if (column.is_view()) {
        REQUIRE(static_cast<size_t>(column.view_stops.data()[row]) <= kept.capacity());
        out.string(Span{kept.data() + bounds[0], static_cast<size_t>(column.view_stops.data()[row] - bounds[0])});
      } else {
        bytes(bounds[0], bounds[1]);
      }
      break;
    case Layout::kList:
    case Layout::kStrings:
      out.number(static_cast<size_t>(bounds[1] - bounds[0]));
      values(bounds[0], bounds[1]);
      break;
    case Layout::kSteps:
      for (int64_t step = bounds[0]; step < bounds[1]; step++) {
        const int64_t* const ends = column.step_offsets.data() + step;
        if (spec.count < 0) out.number(static_cast<size_t>(ends[1] - ends[0]));
        values(ends[0], ends[1]);
      }
      out.number(static_cast<size_t>(bounds[1] - bounds[0]));
      break;
  }
  return out;
}

}  // namespace penstock::fuzz
