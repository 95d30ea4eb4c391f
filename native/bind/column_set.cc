#include "bind/column_set.h"

#include <utility>

#include "bind/arguments.h"

using namespace nb::literals;

namespace penstock {
namespace {

std::shared_ptr<Buffer> share(Buffer buffer) { return std::make_shared<Buffer>(std::move(buffer)); }

// Takes the memory of an array the first time, so that it can be shared.
template <typename T>
const std::shared_ptr<Buffer>& share(GrowableArray<T>& array, std::shared_ptr<Buffer>& shared) {
  if (shared == nullptr) {
    Buffer buffer = array.release();
    if (buffer.data() == nullptr) buffer = Buffer(1);
    shared = share(std::move(buffer));
  }
  return shared;
}

template <typename T>
nb::object as_vector(DType dtype, GrowableArray<T>& array, std::shared_ptr<Buffer>& shared) {
  const size_t size = array.size();
  const std::shared_ptr<Buffer>& owner = share(array, shared);
  return array_over(dtype, {size}, owner->data(), owner);
}

}  // namespace

ColumnSet::ColumnSet(Decoded decoded, const Decoder& decoder, nb::object owner)
    : num_rows_(static_cast<size_t>(decoded.num_rows)),
      held_{std::move(owner)},
      decoded_(std::make_unique<Decoded>(std::move(decoded))),
      decoder_(&decoder),
      shared_(decoded_->columns.size()) {
  fields_.reserve(decoded_->columns.size());
  for (size_t i = 0; i < decoded_->columns.size(); i++) {
    fields_.push_back(view_column(decoder.plan().fields[i], decoded_->columns[i], num_rows_, decoded_->kept));
  }
  ints_ = share(std::move(decoded_->ints));
  floats_ = share(std::move(decoded_->floats));
  offsets_ = share(std::move(decoded_->offsets));
  present_ = share(std::move(decoded_->present));
  kept_ = share(std::move(decoded_->kept));
}

ColumnSet::ColumnSet(size_t num_rows, nb::sequence given) : num_rows_(num_rows) {
  for (nb::handle each : given) fields_.push_back(plain(each));
}

FieldColumn ColumnSet::plain(nb::handle given) {
  const nb::tuple parts = tuple_of(given, 6, "a column");
  const auto rows = [&](size_t number, const char* what, std::initializer_list<DType> dtypes, size_t& stride) {
    held_.push_back(nb::borrow(parts[number]));
    return rows_of(parts[number], what, dtypes, stride);
  };
  const auto vector = [&](size_t number, const char* what, std::initializer_list<DType> dtypes) {
    held_.push_back(nb::borrow(parts[number]));
    return vector_of(parts[number], what, dtypes);
  };
  FieldColumn column;
  const int form = nb::cast<int>(parts[0]);
  need(form >= 0 && form <= 3, "form", "expected from 0 to 3");
  column.form = static_cast<FieldColumn::Form>(form);
  column.num_rows = num_rows_;
  if (column.form == FieldColumn::Form::kNone) return column;
  if (column.form == FieldColumn::Form::kStrings) {
    const ArrayView arena = vector(1, "arena", {DType::kUInt8});
    size_t begin_stride, end_stride;
    const ArrayView begins = rows(2, "starts", {DType::kInt64}, begin_stride);
    const ArrayView ends = rows(3, "stops", {DType::kInt64}, end_stride);
    need(begins.rank == 1 && ends.rank == 1, "starts", "expected one dimension");
    need(begins.rows() == ends.rows(), "stops", "expected as many as starts");
    need(begin_stride == end_stride, "stops", "expected them as far apart as starts");
    column.span_stride = begin_stride / sizeof(int64_t);
    column.arena = arena.data;
    column.arena_bytes = arena.rows();
    column.begins = begins.as<int64_t>();
    column.ends = ends.as<int64_t>();
    column.num_items = begins.rows();
  } else {
    const bool is_code = column.form == FieldColumn::Form::kCodes;
    const ArrayView values = is_code ? rows(1, "codes", {DType::kInt32}, column.stride)  //
                                     : rows(1, "values", {}, column.stride);
    need(!is_code || values.rank == 1, "codes", "expected one dimension");
    column.values = values.data;
    column.dtype = values.dtype;
    column.width = values.width();
    column.num_items = values.rows();
  }
  if (parts[4].is_none()) {
    need(column.num_items == num_rows_, "values", "expected one for each row");
  } else {
    const ArrayView offsets = vector(4, "offsets", {DType::kInt64});
    need(offsets.rows() == num_rows_ + 1, "offsets", "expected one more than there are rows");
    const bool is_packed = column.form == FieldColumn::Form::kStrings || column.num_items <= 1 ||
                           column.stride == column.width * item_bytes(column.dtype);
    need(is_packed, "values", "expected contiguous items of lists");
    column.is_list = true;
    column.starts = offsets.as<int64_t>();
    column.stops = column.starts + 1;
  }
  if (!parts[5].is_none()) {
    const ArrayView mask = rows(5, "present", {DType::kBool}, column.present_stride);
    need(mask.rank == 1 && mask.rows() == num_rows_, "present", "expected one for each row");
    column.present = mask.data;
  }
  return column;
}

nb::object ColumnSet::values(size_t field, Column& column) {
  const FieldSpec& spec = decoder_->plan().fields[field];
  Shared& shared = shared_[field];
  const auto count = static_cast<size_t>(spec.count < 0 ? 0 : spec.count);
  const bool is_int = spec.kind == Kind::kInt64;
  const DType dtype = is_int ? DType::kInt64 : DType::kFloat32;
  const auto numbers = [&]() -> nb::object {
    return is_int ? as_vector(dtype, column.ints, shared.values) : as_vector(dtype, column.floats, shared.values);
  };
  switch (spec.layout) {
    case Layout::kScalar:
      return array_over(dtype, {num_rows_}, column.fixed, is_int ? ints_ : floats_);
    case Layout::kFixed: {
      const auto& owner = is_int ? share(column.ints, shared.values) : share(column.floats, shared.values);
      return array_over(dtype, {num_rows_, count}, owner->data(), owner);
    }
    case Layout::kRaw: {
      const auto& owner = share(column.bytes, shared.values);
      return array_over(DType::kUInt8, {num_rows_, count}, owner->data(), owner);
    }
    case Layout::kList:
      return numbers();
    case Layout::kString:
      if (column.is_view()) {
        return nb::make_tuple(array_over(DType::kUInt8, {kept_->capacity()}, kept_->data(), kept_),
                              as_vector(DType::kInt64, column.view_stops, shared.ends));
      }
      return as_vector(DType::kUInt8, column.bytes, shared.values);
    case Layout::kCoded: {
      const auto& owner = share(column.codes, shared.values);
      return array_over(DType::kInt32, {num_rows_}, owner->data(), owner);
    }
    case Layout::kStrings:
      return nb::make_tuple(as_vector(DType::kUInt8, column.bytes, shared.values),
                            as_vector(DType::kInt64, column.value_offsets, shared.ends));
    case Layout::kSteps: {
      nb::object steps = as_vector(DType::kInt64, column.step_offsets, shared.steps);
      if (spec.kind != Kind::kBytes) return nb::make_tuple(numbers(), nb::none(), steps);
      return nb::make_tuple(as_vector(DType::kUInt8, column.bytes, shared.values),
                            as_vector(DType::kInt64, column.value_offsets, shared.ends), steps);
    }
  }
  return nb::none();
}

nb::tuple ColumnSet::arrays(size_t field) {
  need(decoded_ != nullptr, "column", "it was made of arrays");
  if (field >= fields_.size()) throw nb::index_error("there is no such column");
  Column& column = decoded_->columns[field];
  nb::object offsets = nb::none(), mask = nb::none();
  if (column.row_offsets != nullptr) {
    offsets = array_over(DType::kInt64, {num_rows_ + 1}, column.row_offsets, offsets_);
  }
  if (column.present != nullptr) mask = array_over(DType::kBool, {num_rows_}, column.present, present_);
  return nb::make_tuple(values(field, column), offsets, mask);
}

nb::list ColumnSet::all_arrays() {
  nb::list all;
  for (size_t field = 0; field < fields_.size(); field++) all.append(arrays(field));
  return all;
}

void bind_columns(nb::module_& m) {
  nb::class_<ColumnSet>(m, "ColumnSet")
      .def(nb::init<size_t, nb::sequence>(), "num_rows"_a, "columns"_a)
      .def("__len__", [](const ColumnSet& self) { return self.fields().size(); })
      .def_prop_ro("num_rows", &ColumnSet::num_rows)
      .def("arrays", &ColumnSet::arrays, "number"_a)
      .def("all_arrays", &ColumnSet::all_arrays);
}

}  // namespace penstock
