// What Python sees of statistics: moments, counts, samples of lists. See src/penstock/_native.pyi.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "bind/arguments.h"
#include "write/elements.h"
#include "write/lists.h"
#include "write/moments.h"
#include "write/value_counter.h"

using namespace nb::literals;

namespace penstock {
namespace {

void count_strings(ValueCounter& counter, nb::handle arena, nb::handle starts, nb::handle stops, nb::handle keep) {
  const Strings strings(arena, starts, stops);
  std::vector<nb::object> kept;
  const bool* const wanted = data_or_null<bool>(keep, strings.size(), kept, "keep");
  need(counter.ints.empty(), "a counter counts strings or integers, not both");
  nb::gil_scoped_release unlocked;
  for (size_t i = 0; i < strings.size(); i++) {
    if (wanted == nullptr || wanted[i]) counter.add(strings[i]);
  }
}

void count_ints(ValueCounter& counter, nb::handle given, nb::handle keep) {
  const auto values = array_of<int64_t>(given, "values");
  std::vector<nb::object> kept;
  const bool* const wanted = data_or_null<bool>(keep, values.shape(0), kept, "keep");
  need(counter.ints.size() == counter.size(), "a counter counts strings or integers, not both");
  nb::gil_scoped_release unlocked;
  for (size_t i = 0; i < values.shape(0); i++) {
    if (wanted == nullptr || wanted[i]) counter.add(values.data()[i]);
  }
}

void merge_counters(ValueCounter& counter, const ValueCounter& other) {
  need(&counter != &other, "a counter cannot be merged with itself");
  need(counter.size() == 0 || other.size() == 0 || counter.ints.empty() == other.ints.empty(),
       "a counter counts strings or integers, not both");
  nb::gil_scoped_release unlocked;
  counter.merge(other);
}

// (values, NaN, infinite, zero, least, greatest, mean, squares); the extremes mean nothing where none is finite
template <typename T>
nb::tuple measure(nb::handle given, nb::handle keep) {
  const auto values = array_of<T>(given, "values");
  std::vector<nb::object> kept;
  const bool* const wanted = data_or_null<bool>(keep, values.shape(0), kept, "keep");
  Moments<T> moments;
  {
    nb::gil_scoped_release unlocked;
    moments = measure_numbers(values.data(), wanted, values.shape(0));
  }
  return nb::make_tuple(moments.num_values, moments.num_nan, moments.num_inf, moments.num_zero, moments.least,
                        moments.greatest, moments.mean, moments.squares);
}

template <typename T>
nb::object copy_of(const std::vector<T>& values) {
  GrowableArray<T> out;
  if (!values.empty()) std::memcpy(out.room(values.size()), values.data(), values.size() * sizeof(T));
  out.advance(values.size());
  return as_array<T>(out);
}

nb::tuple counter_result(const ValueCounter& counter) {
  nb::object values;
  if (counter.ints.empty()) {
    nb::list strings;
    for (size_t i = 0; i < counter.size(); i++) {
      const Span value = counter.string(i);
      strings.append(nb::bytes(reinterpret_cast<const char*>(value.data), value.size));
    }
    values = strings;
  } else {
    values = copy_of(counter.ints);
  }
  return nb::make_tuple(values, copy_of(counter.counts), counter.num_overflowed);
}

// (rows, NaN, infinite, zero, least, greatest, counts, means, squares); the last three have one item per element
template <typename T>
nb::tuple measure_rows(nb::handle given, size_t width, nb::handle keep) {
  const auto values = array_of<T>(given, "values");
  need(width != 0 && values.shape(0) % width == 0, "there are not `width` values for each row");
  const size_t num_rows = values.shape(0) / width;
  std::vector<nb::object> kept;
  const bool* const wanted = data_or_null<bool>(keep, num_rows, kept, "keep");
  ElementMoments<T> moments;
  {
    nb::gil_scoped_release unlocked;
    moments = measure_elements(values.data(), num_rows, width, wanted);
  }
  return nb::make_tuple(moments.num_rows, moments.num_nan, moments.num_inf, moments.num_zero, moments.least,
                        moments.greatest, copy_of(moments.counts), copy_of(moments.means), copy_of(moments.squares));
}

// (how many integers, the least that is counted, counts), without counts where the integers lie too wide apart
nb::tuple count_lists(nb::handle given, nb::handle given_offsets, nb::handle keep, int64_t max_range) {
  const auto values = array_of<int64_t>(given, "values");
  need(max_range > 0, "a range is empty");
  const auto bounds = array_of<int64_t>(given_offsets, "offsets");
  need(bounds.shape(0) != 0, "offsets are empty");
  const size_t num_lists = bounds.shape(0) - 1;
  std::vector<nb::object> kept;
  const int64_t* const offsets = offsets_of(given_offsets, num_lists, static_cast<int64_t>(values.shape(0)), kept);
  const bool* const wanted = data_or_null<bool>(keep, num_lists, kept, "keep");
  IntCounts found;
  {
    nb::gil_scoped_release unlocked;
    found = count_list_ints(values.data(), offsets, num_lists, wanted, max_range);
  }
  return nb::make_tuple(found.num_values, found.low, copy_of(found.counts));
}

// kListValues numbers of each list, in turn
template <typename T>
nb::object sample_lists(nb::handle given, nb::handle given_starts, nb::handle given_lengths) {
  const auto values = array_of<T>(given, "values");
  const auto starts = array_of<int64_t>(given_starts, "starts");
  const auto lengths = array_of<int64_t>(given_lengths, "lengths");
  need(starts.shape(0) == lengths.shape(0), "starts and lengths differ in length");
  const auto size = static_cast<int64_t>(values.shape(0));
  for (size_t i = 0; i < starts.shape(0); i++) {
    const int64_t start = starts.data()[i], length = lengths.data()[i];
    need(length >= 0 && (length == 0 || (0 <= start && start <= size && length <= size - start)),
         "a list is not inside the values");
  }
  GrowableArray<double> out;
  double* const room = out.room(starts.shape(0) * kListValues);
  {
    nb::gil_scoped_release unlocked;
    take_evenly(values.data(), starts.data(), lengths.data(), starts.shape(0), room);
  }
  out.advance(starts.shape(0) * kListValues);
  return as_array<double>(out);
}

}  // namespace

void bind_statistics(nb::module_& m) {
  m.def("measure_ints", &measure<int64_t>, "values"_a, "keep"_a.none());
  m.def("measure_floats", &measure<float>, "values"_a, "keep"_a.none());
  m.def("measure_doubles", &measure<double>, "values"_a, "keep"_a.none());
  m.def("measure_rows_of_ints", &measure_rows<int64_t>, "values"_a, "width"_a, "keep"_a.none());
  m.def("measure_rows_of_floats", &measure_rows<float>, "values"_a, "width"_a, "keep"_a.none());
  m.def("measure_rows_of_doubles", &measure_rows<double>, "values"_a, "width"_a, "keep"_a.none());
  m.def("count_list_ints", &count_lists, "values"_a, "offsets"_a, "keep"_a.none(), "max_range"_a);
  m.def("sample_lists_of_ints", &sample_lists<int64_t>, "values"_a, "starts"_a, "lengths"_a);
  m.def("sample_lists_of_floats", &sample_lists<float>, "values"_a, "starts"_a, "lengths"_a);
  m.def("sample_lists_of_doubles", &sample_lists<double>, "values"_a, "starts"_a, "lengths"_a);

  nb::class_<ValueCounter>(m, "ValueCounter")
      .def(nb::init<size_t>(), "max_values"_a)
      .def("add_strings", &count_strings, "arena"_a, "starts"_a, "stops"_a, "keep"_a.none())
      .def("add_ints", &count_ints, "values"_a, "keep"_a.none())
      .def("merge", &merge_counters, "other"_a)
      .def("__len__", &ValueCounter::size)
      .def_ro("num_overflowed", &ValueCounter::num_overflowed)
      .def("take", &counter_result);
}

}  // namespace penstock
