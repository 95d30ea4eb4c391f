// What Python sees of texts and of values that have numbers. See src/penstock/_native.pyi.
#include <nanobind/stl/vector.h>

#include "bind/numpy.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "text/row_cutter.h"
#include "text/tokens.h"
#include "text/vocabulary.h"

using namespace nb::literals;

namespace penstock {
namespace {

// Texts in an arena, checked, and which of them are there.
struct Texts {
  const uint8_t* arena;
  const int64_t *starts, *stops;
  const uint8_t* present;
  size_t count, arena_bytes, num_bytes = 0;

  Texts(nb::handle bytes, nb::handle begins, nb::handle ends, nb::handle mask = nb::none()) {
    const ArrayView memory = vector_of(bytes, "arena", {DType::kUInt8});
    const ArrayView firsts = vector_of(begins, "starts", {DType::kInt64});
    const ArrayView lasts = vector_of(ends, "stops", {DType::kInt64});
    arena = memory.data;
    starts = firsts.as<int64_t>();
    stops = lasts.as<int64_t>();
    count = firsts.rows();
    arena_bytes = memory.rows();
    need(lasts.rows() == count, "stops", "expected as many as there are starts");
    present = mask_of(mask, count, "present");
    bool all_inside = true;
    for (size_t i = 0; i < count; i++) {
      all_inside &= 0 <= starts[i] && starts[i] <= stops[i] && stops[i] <= static_cast<int64_t>(arena_bytes);
      num_bytes += static_cast<size_t>(stops[i]) - static_cast<size_t>(starts[i]);
    }
    need(all_inside, "stops", "a text is not inside its arena");
  }
  Span operator[](size_t i) const { return Span{arena + starts[i], static_cast<size_t>(stops[i] - starts[i])}; }
  bool has(size_t i) const { return present == nullptr || present[i] != 0; }
  // Whether a table may load whole words past the end of a text.
  bool is_padded(size_t i) const { return Vocabulary::kShort <= arena_bytes - static_cast<size_t>(stops[i]); }
  // About what it takes to cut them and look the tokens up.
  size_t nanoseconds() const { return 20 * count + 3 * num_bytes; }
};

nb::bytes as_bytes(Span value) { return nb::bytes(reinterpret_cast<const char*>(value.data), value.size); }

void make_vocabulary(Vocabulary* self, nb::sequence values) {
  Vocabulary made;
  made.reserve(nb::len(values));
  for (nb::handle each : values) {
    if (!nb::isinstance<nb::bytes>(each)) throw nb::type_error("a value of a vocabulary is not bytes");
    const auto value = nb::borrow<nb::bytes>(each);
    const size_t number = made.size();
    const Span span{reinterpret_cast<const uint8_t*>(value.c_str()), value.size()};
    if (static_cast<size_t>(made.add(span)) != number) {
      throw nb::value_error(("value " + std::to_string(number) + " of a vocabulary is there twice").c_str());
    }
  }
  new (self) Vocabulary(std::move(made));
}

nb::list vocabulary_values(const Vocabulary& vocabulary) {
  nb::list out;
  for (size_t i = 0; i < vocabulary.size(); i++) out.append(as_bytes(vocabulary.value(i)));
  return out;
}

nb::object find_strings(const Vocabulary& vocabulary, nb::handle arena, nb::handle starts, nb::handle stops) {
  const Texts texts(arena, starts, stops);
  NewArray codes(DType::kInt32, {texts.count});
  {
    const Unlocked unlocked(texts.nanoseconds());
    auto* const out = codes.as<int32_t>();
    for (size_t i = 0; i < texts.count; i++) {
      out[i] = texts.is_padded(i) ? vocabulary.find_padded(texts[i]) : vocabulary.find(texts[i]);
    }
  }
  return codes.object;
}

nb::object find_ints(const IntVocabulary& vocabulary, nb::handle given) {
  const ArrayView values = vector_of(given, "values", {DType::kInt64});
  NewArray codes(DType::kInt32, {values.rows()});
  {
    const Unlocked unlocked(values.rows() * 5);
    auto* const out = codes.as<int32_t>();
    for (size_t i = 0; i < values.rows(); i++) out[i] = vocabulary.find(values.as<int64_t>()[i]);
  }
  return codes.object;
}

TokenIds ids_of(const Vocabulary& vocabulary, int32_t first, int32_t unknown) {
  need(first <= std::numeric_limits<int32_t>::max() - static_cast<int64_t>(vocabulary.size()), "first",
       "the ids of a vocabulary do not fit into 32 bits with it");
  return TokenIds{vocabulary, first, unknown};
}

nb::tuple tokenize(nb::handle arena, nb::handle starts, nb::handle stops, const Vocabulary& vocabulary, int64_t most,
                   int32_t first, int32_t unknown, bool lower, bool strip, bool split) {
  const Texts texts(arena, starts, stops);
  const TokenIds ids = ids_of(vocabulary, first, unknown);
  const size_t limit = most < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(most);
  GrowableArray<int32_t> values;
  GrowableArray<int64_t> offsets;
  {
    const Unlocked unlocked(texts.nanoseconds());
    TokenSplitter splitter(TextOptions{lower, strip, split});
    offsets.push(0);
    for (size_t i = 0; i < texts.count; i++) {
      append_ids(splitter, texts[i], ids, limit, values);
      offsets.push(static_cast<int64_t>(values.size()));
    }
  }
  return nb::make_tuple(as_array<int32_t>(values), as_array<int64_t>(offsets));
}

nb::object tokenize_padded(nb::handle arena, nb::handle starts, nb::handle stops, const Vocabulary& vocabulary,
                           size_t length, int32_t first, int32_t unknown, int32_t pad, bool lower, bool strip,
                           bool split) {
  const Texts texts(arena, starts, stops);
  const TokenIds ids = ids_of(vocabulary, first, unknown);
  NewArray values(DType::kInt32, {texts.count, length});
  {
    const Unlocked unlocked(texts.nanoseconds() + texts.count * length);
    TokenSplitter splitter(TextOptions{lower, strip, split});
    for (size_t i = 0; i < texts.count; i++) {
      int32_t* const row = values.as<int32_t>() + i * length;
      const size_t count = write_ids(splitter, texts[i], ids, length, row);
      std::fill(row + count, row + length, pad);
    }
  }
  return values.object;
}

nb::object count_each(nb::handle arena, nb::handle starts, nb::handle stops, bool strip, bool split) {
  const Texts texts(arena, starts, stops);
  NewArray counts(DType::kInt64, {texts.count});
  {
    const Unlocked unlocked(texts.nanoseconds());
    TokenSplitter splitter(TextOptions{false, strip, split});
    auto* const out = counts.as<int64_t>();
    for (size_t i = 0; i < texts.count; i++) out[i] = static_cast<int64_t>(count_tokens(splitter, texts[i]));
  }
  return counts.object;
}

// A counter that threads may share.
struct SharedCounter {
  TokenCounter counter;
  std::mutex mutex;

  explicit SharedCounter(TextOptions form) : counter(form) {}

  void add(nb::handle arena, nb::handle starts, nb::handle stops, nb::handle present) {
    const Texts texts(arena, starts, stops, present);
    nb::gil_scoped_release unlocked;
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < texts.count; i++) {
      if (texts.has(i)) counter.add(texts[i]);
    }
  }

  void merge(SharedCounter& other) {
    need(this != &other, "other", "a counter cannot be merged with itself");
    const TextOptions &a = counter.form(), &b = other.counter.form();
    const bool is_alike = a.lower == b.lower && a.strip == b.strip && a.split == b.split;
    need(is_alike, "other", "a counter that cuts texts in another way");
    nb::gil_scoped_release unlocked;
    const std::scoped_lock lock(mutex, other.mutex);
    counter.merge(other.counter);
  }

  nb::tuple most_common(size_t limit) {
    nb::list tokens, counts;
    std::vector<uint32_t> numbers;
    std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
    {
      nb::gil_scoped_release unlocked;
      lock.lock();
      numbers = counter.most_common(limit);
    }
    for (uint32_t number : numbers) {
      tokens.append(as_bytes(counter.token(number)));
      counts.append(counter.count(number));
    }
    return nb::make_tuple(tokens, counts);
  }

  size_t num_distinct() {
    nb::gil_scoped_release unlocked;
    const std::lock_guard<std::mutex> lock(mutex);
    return counter.num_distinct();
  }
};

// The offsets at which ranges of rows end in the next piece of a text.
std::vector<uint64_t> scan_piece(RowCutter& cutter, nb::handle data) {
  const BytesView piece(data);
  std::vector<uint64_t> ends;
  nb::gil_scoped_release unlocked;
  cutter.scan(piece.span(), ends);
  return ends;
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<RowCutter>(m, "RowCutter")
      .def(nb::init<uint8_t, uint64_t, uint64_t>(), "delimiter"_a, "rows_per_range"_a, "start"_a)
      .def("scan", &scan_piece, "piece"_a)
      .def_prop_ro("num_rows", &RowCutter::num_rows)
      .def_prop_ro("is_quoted", &RowCutter::is_quoted)
      .def_prop_ro("longest_row", &RowCutter::longest_row);

  nb::class_<Vocabulary>(m, "Vocabulary")
      .def("__init__", &make_vocabulary, "values"_a)
      .def("__len__", &Vocabulary::size)
      .def("find", &find_strings, "arena"_a, "starts"_a, "stops"_a)
      .def("values", &vocabulary_values)
      .def_prop_ro("longest_probe", &Vocabulary::longest_probe);

  nb::class_<IntVocabulary>(m, "IntVocabulary")
      .def(
          "__init__",
          [](IntVocabulary* self, nb::handle given) {
            const ArrayView values = vector_of(given, "values", {DType::kInt64});
            new (self) IntVocabulary(values.as<int64_t>(), values.rows());
          },
          "values"_a)
      .def("__len__", &IntVocabulary::size)
      .def("find", &find_ints, "values"_a);

  nb::class_<SharedCounter>(m, "TokenCounter")
      .def(
          "__init__",
          [](SharedCounter* self, bool lower, bool strip, bool split) {
            new (self) SharedCounter(TextOptions{lower, strip, split});
          },
          "lower"_a = true, "strip"_a = true, "split"_a = true)
      .def("add", &SharedCounter::add, "arena"_a, "starts"_a, "stops"_a, "present"_a.none())
      .def("merge", &SharedCounter::merge, "other"_a)
      .def("most_common", &SharedCounter::most_common, "limit"_a)
      .def_prop_ro("num_distinct", &SharedCounter::num_distinct);

  m.def("tokenize", &tokenize, "arena"_a, "starts"_a, "stops"_a, "vocabulary"_a, "most"_a, "first"_a, "unknown"_a,
        "lower"_a, "strip"_a, "split"_a);
  m.def("tokenize_padded", &tokenize_padded, "arena"_a, "starts"_a, "stops"_a, "vocabulary"_a, "length"_a, "first"_a,
        "unknown"_a, "pad"_a, "lower"_a, "strip"_a, "split"_a);
  m.def("count_tokens", &count_each, "arena"_a, "starts"_a, "stops"_a, "strip"_a, "split"_a);
}

}  // namespace penstock
