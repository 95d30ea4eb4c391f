// What Python sees of the kernels that make batches: checks of arguments, arrays from the pool for results.
// See src/penstock/_native.pyi.
#include "bind/numpy.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "batch/codes.h"
#include "batch/gather.h"
#include "batch/pad.h"
#include "batch/scale.h"
#include "order/bitmap.h"
#include "order/permutation.h"
#include "order/random.h"

using namespace nb::literals;

namespace penstock {
namespace {

nb::object empty(nb::handle shape, nb::handle dtype) {
  if (!PyTuple_Check(shape.ptr())) throw nb::type_error("shape: expected a tuple of integers");
  const auto rank = static_cast<size_t>(PyTuple_Size(shape.ptr()));
  need(rank <= kMostRank, "shape", "expected at most 32 dimensions");
  size_t sizes[kMostRank];
  for (size_t i = 0; i < rank; i++) {
    const Py_ssize_t size = PyNumber_AsSsize_t(PyTuple_GetItem(shape.ptr(), static_cast<Py_ssize_t>(i)), nullptr);
    if (size == -1 && PyErr_Occurred()) throw nb::python_error();
    need(size >= 0, "shape", "a dimension is negative");
    sizes[i] = static_cast<size_t>(size);
  }
  return NewArray(dtype_named(dtype), sizes, rank).object;
}

// Offsets that divide `num_items` items into lists: one more than rows, never going back, inside the items.
struct Offsets {
  const int64_t* data;
  size_t rows;

  Offsets(nb::handle given, size_t num_items) {
    const ArrayView view = vector_of(given, "offsets", {DType::kInt64});
    need(view.rows() != 0, "offsets", "expected one more than there are rows, got none");
    data = view.as<int64_t>();
    rows = view.rows() - 1;
    need(data[0] >= 0, "offsets", "the first is negative");
    bool goes_back = false;
    for (size_t i = 0; i < rows; i++) goes_back |= data[i] > data[i + 1];
    need(!goes_back, "offsets", "one is less than the one before it");
    need(static_cast<uint64_t>(data[rows]) <= num_items, "offsets", "they are not inside the values");
  }
};

// Byte strings as they come; their content is checked when it is read.
struct Strings {
  ArrayView arena, starts, stops;

  Strings(nb::handle bytes, nb::handle begins, nb::handle ends)
      : arena(vector_of(bytes, "arena", {DType::kUInt8})),
        starts(vector_of(begins, "starts", {DType::kInt64})),
        stops(vector_of(ends, "stops", {DType::kInt64})) {
    need(starts.rows() == stops.rows(), "stops", "expected as many as starts");
  }
  Pieces pieces() const {
    return {starts.as<int64_t>(), stops.as<int64_t>(), starts.rows(), static_cast<int64_t>(arena.rows())};
  }
};

// One number, or one for each of `width`.
const double* terms_of(nb::handle given, const char* what, size_t width, bool& is_one) {
  const ArrayView view = view_of(given, what, {DType::kFloat64});
  const size_t size = view.rows() * view.width();
  if (size != 1 && size != width) {
    need(false, what,
         "expected one number, or one for each of " + std::to_string(width) + " elements of a row, got " +
             std::to_string(size));
  }
  is_one = size == 1;
  return view.as<double>();
}

nb::object scale(nb::handle given, nb::handle mask, nb::handle shifts, nb::handle factors, double low, double high,
                 double fill, bool log, bool nan_is_missing) {
  const ArrayView values = view_of(
      given, "values", {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32, DType::kUInt8, DType::kBool});
  const size_t rows = values.rows(), width = values.width();
  const uint8_t* const present = mask_of(mask, rows, "present");
  bool one_shift, one_factor;
  ScaleTerms terms{terms_of(shifts, "shift", width, one_shift), terms_of(factors, "factor", width, one_factor), false};
  std::vector<double> repeated;
  terms.per_element = !one_shift || !one_factor;
  if (one_shift != one_factor) {
    repeated.assign(width, one_shift ? *terms.shift : *terms.factor);
    (one_shift ? terms.shift : terms.factor) = repeated.data();
  }
  need(low <= high, "low", "expected at most high");
  const ScaleOptions options{low, high, fill, log, nan_is_missing};
  std::vector<size_t> shape(values.dimensions, values.dimensions + values.rank);
  NewArray out(DType::kFloat32, shape.data(), shape.size());
  Unlocked unlocked(rows * width * (log ? 20 : 1));
  const auto run = [&](const auto* numbers) {
    scale_numbers(numbers, present, rows, width, terms, options, out.as<float>());
  };
  if (values.dtype == DType::kFloat32) run(values.as<float>());
  else if (values.dtype == DType::kFloat64) run(values.as<double>());
  else if (values.dtype == DType::kInt64) run(values.as<int64_t>());
  else if (values.dtype == DType::kInt32) run(values.as<int32_t>());
  else run(values.as<uint8_t>());
  unlocked.relock();
  return out.object;
}

nb::object place(nb::handle given, nb::handle mask, int32_t first, int32_t unknown, int32_t missing) {
  const ArrayView codes = vector_of(given, "codes", {DType::kInt32});
  const size_t rows = codes.rows();
  const uint8_t* const present = mask_of(mask, rows, "present");
  NewArray out(DType::kInt32, {rows});
  bool all_fit;
  {
    const Unlocked unlocked(rows);
    all_fit = place_codes(codes.as<int32_t>(), present, rows, {first, unknown, missing}, out.as<int32_t>());
  }
  need(all_fit, "codes", "one does not fit int32 with `first` added");
  return out.object;
}

void check_bins(int64_t num_bins, int64_t first) {
  need(num_bins >= 1 && num_bins <= INT32_MAX, "num_bins", "expected from 1 to 2147483647");
  need(first >= INT32_MIN && first + num_bins - 1 <= INT32_MAX, "first", "bins do not fit int32 with it added");
}

template <typename Bin>
void fill_bins(const uint8_t* present, size_t rows, int32_t first, int32_t missing, int32_t* out, const Bin& bin) {
  for (size_t i = 0; i < rows; i++) out[i] = present == nullptr || present[i] != 0 ? first + bin(i) : missing;
}

nb::object hash_strings(nb::handle bytes, nb::handle begins, nb::handle ends, nb::handle mask, int64_t num_bins,
                        int32_t first, int32_t missing, uint64_t salt) {
  const Strings strings(bytes, begins, ends);
  const Pieces at = strings.pieces();
  const size_t rows = at.num_rows;
  check_bins(num_bins, first);
  const uint8_t* const present = mask_of(mask, rows, "present");
  bool all_inside = true;
  for (size_t i = 0; i < rows; i++) {
    all_inside &= at.starts[i] >= 0 && at.starts[i] <= at.stops[i] && at.stops[i] <= at.num_items;
  }
  need(all_inside, "stops", "a string is not inside the arena");
  NewArray out(DType::kInt32, {rows});
  const Bins bins(static_cast<uint32_t>(num_bins), salt);
  Unlocked unlocked(rows * 20);
  fill_bins(present, rows, first, missing, out.as<int32_t>(), [&](size_t i) {
    return bins.bin(Span{strings.arena.data + at.starts[i], static_cast<size_t>(at.stops[i] - at.starts[i])});
  });
  unlocked.relock();
  return out.object;
}

nb::object hash_ints(nb::handle given, nb::handle mask, int64_t num_bins, int32_t first, int32_t missing,
                     uint64_t salt) {
  const ArrayView values = vector_of(given, "values", {DType::kInt64});
  const size_t rows = values.rows();
  check_bins(num_bins, first);
  const uint8_t* const present = mask_of(mask, rows, "present");
  NewArray out(DType::kInt32, {rows});
  const Bins bins(static_cast<uint32_t>(num_bins), salt);
  Unlocked unlocked(rows * 8);
  const auto* const ints = values.as<int64_t>();
  fill_bins(present, rows, first, missing, out.as<int32_t>(), [&](size_t i) { return bins.bin(ints[i]); });
  unlocked.relock();
  return out.object;
}

nb::object multi_hot_rows(nb::handle given, nb::handle divided, size_t width, bool counts) {
  const ArrayView codes = vector_of(given, "codes", {DType::kInt32});
  const Offsets offsets(divided, codes.rows());
  NewArray out(DType::kFloat32, {offsets.rows, width});
  Unlocked unlocked(offsets.rows * width / 4 + codes.rows());
  multi_hot(codes.as<int32_t>(), offsets.data, offsets.rows, width, counts, out.as<float>());
  unlocked.relock();
  return out.object;
}

template <typename T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// A number of Python as one of an array. Whole numbers only where the array has no others.
PadValue pad_value(nb::handle given, DType dtype) {
  const size_t bytes = item_bytes(dtype);
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
    const double value = PyFloat_AsDouble(given.ptr());
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    return {dtype == DType::kFloat64 ? bits_of(value) : bits_of(static_cast<float>(value)), bytes};
  }
  nb::object whole = nb::borrow(given);
  if (PyFloat_Check(given.ptr())) {
    const double value = PyFloat_AsDouble(given.ptr());
    need(std::isfinite(value) && value == std::floor(value), "value", "expected a whole number for an array of them");
    whole = nb::steal(PyNumber_Long(given.ptr()));
  }
  int is_out = 0;
  const nb::object index = nb::steal(PyNumber_Index(whole.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &is_out);
  if (value == -1 && is_out == 0 && PyErr_Occurred()) throw nb::python_error();
  const bool is_unsigned = dtype == DType::kUInt8 || dtype == DType::kBool;
  const long long low = is_unsigned ? 0 : bytes == 8 ? INT64_MIN : INT32_MIN;
  const long long high = dtype == DType::kBool ? 1 : is_unsigned ? UINT8_MAX : bytes == 8 ? INT64_MAX : INT32_MAX;
  need(is_out == 0 && value >= low && value <= high, "value", std::string("it does not fit ") + name_of(dtype));
  return {static_cast<uint64_t>(value), bytes};
}

nb::object pad(nb::handle given, nb::handle divided, size_t length, nb::handle value, bool from_end) {
  const ArrayView values = view_of(
      given, "values", {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool});
  const Offsets offsets(divided, values.rows());
  const PadValue filler = pad_value(value, values.dtype);
  need(values.rank < kMostRank, "values", "expected at most 31 dimensions");
  std::vector<size_t> shape{offsets.rows, length};
  for (size_t i = 1; i < values.rank; i++) shape.push_back(values.shape(i));
  NewArray out(values.dtype, shape.data(), shape.size());
  const size_t width = values.width();
  if (width == 0) return out.object;
  Unlocked unlocked(offsets.rows * (length * width / 4 + 10));
  pad_lists(values.data, offsets.data, offsets.rows, length, width, filler, from_end, out.data);
  unlocked.relock();
  return out.object;
}

nb::object pad_mask(nb::handle divided, size_t length) {
  const Offsets offsets(divided, SIZE_MAX);
  NewArray out(DType::kBool, {offsets.rows, length});
  Unlocked unlocked(offsets.rows * (length / 16 + 10));
  mask_lists(offsets.data, offsets.rows, length, out.data);
  unlocked.relock();
  return out.object;
}

// Items of some rows and where each begins: (items, offsets). `items` may have rows of numbers, copied as bytes.
nb::tuple take_pieces(const ArrayView& items, const Pieces& pieces, nb::handle wanted) {
  const ArrayView rows = vector_of(wanted, "rows", {DType::kInt64});
  const size_t count = rows.rows();
  NewArray offsets(DType::kInt64, {count + 1});
  const GatherFault fault = place_pieces(pieces, rows.as<int64_t>(), count, offsets.as<int64_t>());
  need(fault != GatherFault::kNoSuchRow, "rows", "there is no such row");
  need(fault != GatherFault::kOutOfItems, "rows", "one is not inside its values");
  need(fault != GatherFault::kTooMany, "rows", "more values than any memory has");
  std::vector<size_t> shape(items.dimensions, items.dimensions + items.rank);
  shape[0] = static_cast<size_t>(offsets.as<int64_t>()[count]);
  NewArray out(items.dtype, shape.data(), shape.size());
  const size_t bytes = items.width() * item_bytes(items.dtype);
  {
    const Unlocked unlocked(count * 10 + shape[0] * bytes / 8);
    if (bytes != 0) gather_pieces(items.data, bytes, pieces, rows.as<int64_t>(), count, out.data);
  }
  return nb::make_tuple(out.object, offsets.object);
}

nb::tuple take_strings(nb::handle bytes, nb::handle begins, nb::handle ends, nb::handle rows) {
  const Strings strings(bytes, begins, ends);
  return take_pieces(strings.arena, strings.pieces(), rows);
}

// The strings of several columns, each given as (arena, starts, stops), one after the other: (arena, offsets).
nb::tuple join_strings(const nb::list& given) {
  std::vector<nb::object> held;
  std::vector<Strings> columns;
  size_t count = 0;
  for (nb::handle each : given) {
    need(nb::isinstance<nb::tuple>(each) && nb::len(each) == 3, "columns", "expected tuples of three arrays");
    const auto parts = nb::borrow<nb::tuple>(each);
    held.push_back(parts);
    columns.emplace_back(parts[0], parts[1], parts[2]);
    count += columns.back().starts.rows();
  }
  NewArray offsets(DType::kInt64, {count + 1});
  int64_t* end = offsets.as<int64_t>();
  *end = 0;
  for (const Strings& strings : columns) {
    const Pieces pieces = strings.pieces();
    for (size_t i = 0; i < pieces.num_rows; i++, end++) {
      const int64_t start = pieces.starts[i], stop = pieces.stops[i];
      need(0 <= start && start <= stop && stop <= pieces.num_items, "stops", "one is not inside the arena");
      need(!__builtin_add_overflow(*end, stop - start, end + 1), "stops", "more bytes than any memory has");
    }
  }
  NewArray out(DType::kUInt8, {static_cast<size_t>(*end)});
  {
    const Unlocked unlocked(count * 10 + static_cast<size_t>(*end) / 8);
    uint8_t* to = out.data;
    for (const Strings& strings : columns) {
      const Pieces pieces = strings.pieces();
      for (size_t i = 0; i < pieces.num_rows;) {
        const size_t first = i++;
        while (i < pieces.num_rows && pieces.starts[i] == pieces.stops[i - 1]) i++;  // contiguous: one copy
        const auto size = static_cast<size_t>(pieces.stops[i - 1] - pieces.starts[first]);
        if (size != 0) std::memcpy(to, strings.arena.data + pieces.starts[first], size);
        to += size;
      }
    }
  }
  return nb::make_tuple(out.object, offsets.object);
}

nb::tuple take_lists(nb::handle given, nb::handle divided, nb::handle rows) {
  const ArrayView values = view_of(given, "values", {});
  const ArrayView offsets = vector_of(divided, "offsets", {DType::kInt64});
  need(offsets.rows() != 0, "offsets", "expected one more than there are rows, got none");
  const auto size = static_cast<int64_t>(values.rows());
  return take_pieces(values, {offsets.as<int64_t>(), offsets.as<int64_t>() + 1, offsets.rows() - 1, size}, rows);
}

nb::object random_words(uint64_t seed, int64_t epoch, int64_t purpose, nb::handle given, size_t count) {
  const ArrayView records = vector_of(given, "records", {DType::kInt64});
  need(epoch >= 0 && epoch <= UINT32_MAX, "epoch", "expected from 0 to 4294967295");
  need(purpose >= 0 && purpose <= UINT16_MAX, "purpose", "expected from 0 to 65535");
  need(count <= kMostWords, "count", "a record has at most 262144 words for one purpose");
  NewArray out(DType::kUInt32, {records.rows(), count});
  Unlocked unlocked(records.rows() * (count + 3) / 4 * 12);
  draw_words(seed, static_cast<uint32_t>(epoch), static_cast<uint16_t>(purpose), records.as<int64_t>(), records.rows(),
             count, out.as<uint32_t>());
  unlocked.relock();
  return out.object;
}

template <bool kInverse>
nb::object permute(uint64_t seed, uint64_t epoch, uint64_t purpose, int64_t size, nb::handle given) {
  const ArrayView positions = vector_of(given, "positions", {DType::kInt64});
  need(size >= 0 && static_cast<uint64_t>(size) <= Permutation::kMostSize, "size", "expected from 0 to 2^62");
  const size_t count = positions.rows();
  const auto* const from = positions.as<int64_t>();
  bool all_inside = true;
  for (size_t i = 0; i < count; i++) all_inside &= from[i] >= 0 && from[i] < size;
  need(all_inside, "positions", "one is not from 0 to below size");
  NewArray out(DType::kInt64, {count});
  Unlocked unlocked(count * 40);
  const Permutation permutation(seed, epoch, purpose, static_cast<uint64_t>(size));
  kInverse ? permutation.invert(from, count, out.as<int64_t>()) : permutation.apply(from, count, out.as<int64_t>());
  unlocked.relock();
  return out.object;
}

nb::object select(nb::handle packed, nb::handle counted, nb::handle wanted) {
  const ArrayView bitmap = vector_of(packed, "bitmap", {DType::kUInt8});
  const ArrayView ranks = vector_of(counted, "ranks", {DType::kInt64}), k = vector_of(wanted, "k", {DType::kInt64});
  const size_t blocks = bitmap.rows() / kRankBytes + (bitmap.rows() % kRankBytes != 0);
  need(ranks.rows() == blocks || ranks.rows() == blocks + 1, "ranks", "expected one for each 64 bytes of the bitmap");
  const size_t count = k.rows();
  NewArray out(DType::kInt64, {count});
  bool all_found;
  {
    const Unlocked unlocked(count * 40);
    all_found = select_bits(Span{bitmap.data, bitmap.rows()}, ranks.as<int64_t>(), ranks.rows(), k.as<int64_t>(), count,
                            out.as<int64_t>());
  }
  need(all_found, "k", "there is no such one in the bitmap, or ranks do not fit it");
  return out.object;
}

}  // namespace

void bind_batching(nb::module_& m) {
  import_numpy();
  m.def("empty", &empty, "shape"_a, "dtype"_a);
  m.def("scale", &scale, "values"_a, "present"_a.none(), "shift"_a, "factor"_a, "low"_a, "high"_a, "fill"_a, "log"_a,
        "nan_is_missing"_a);
  m.def("place_codes", &place, "codes"_a, "present"_a.none(), "first"_a, "unknown"_a, "missing"_a);
  m.def("hash_strings", &hash_strings, "arena"_a, "starts"_a, "stops"_a, "present"_a.none(), "num_bins"_a, "first"_a,
        "missing"_a, "salt"_a);
  m.def("hash_ints", &hash_ints, "values"_a, "present"_a.none(), "num_bins"_a, "first"_a, "missing"_a, "salt"_a);
  m.def("multi_hot", &multi_hot_rows, "codes"_a, "offsets"_a, "width"_a, "counts"_a);
  m.def("pad", &pad, "values"_a, "offsets"_a, "length"_a, "value"_a, "from_end"_a);
  m.def("pad_mask", &pad_mask, "offsets"_a, "length"_a);
  m.def("take_strings", &take_strings, "arena"_a, "starts"_a, "stops"_a, "rows"_a);
  m.def("join_strings", &join_strings, "columns"_a);
  m.def("take_lists", &take_lists, "values"_a, "offsets"_a, "rows"_a);
  m.def("random_words", &random_words, "seed"_a, "epoch"_a, "purpose"_a, "records"_a, "count"_a);
  m.def("permute", &permute<false>, "seed"_a, "epoch"_a, "purpose"_a, "size"_a, "positions"_a);
  m.def("unpermute", &permute<true>, "seed"_a, "epoch"_a, "purpose"_a, "size"_a, "positions"_a);
  m.def("select_bits", &select, "bitmap"_a, "ranks"_a, "k"_a);
}

}  // namespace penstock
