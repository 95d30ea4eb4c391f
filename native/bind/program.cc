// What Python sees of programs: a fitted pipeline as one call for all fields of some rows. See
// src/penstock/_native.pyi.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "batch/program.h"
#include "bind/arguments.h"
#include "bind/batch_slices.h"
#include "bind/column_set.h"

using namespace nb::literals;

namespace penstock {
namespace {

// A dict of options; missing options have their defaults.
class Options {
 public:
  explicit Options(nb::handle given) : dict_(value_of<nb::dict>(given, "a step")) {}

  bool has(const char* name) const { return dict_.contains(name) && !dict_[name].is_none(); }
  nb::object operator[](const char* name) const { return nb::borrow(dict_[name]); }
  template <typename T>
  T get(const char* name, T otherwise) const {
    return has(name) ? nb::cast<T>(dict_[name]) : otherwise;
  }
  size_t choice(const char* name, std::initializer_list<const char*> choices) const {
    const auto given = nb::cast<std::string>(dict_[name]);
    size_t number = 0;
    for (const char* each : choices) {
      if (given == each) return number;
      number++;
    }
    need(false, name, "there is no '" + given + "'");
    return 0;
  }

 private:
  nb::dict dict_;
};

Step::Target target_of(nb::handle given) {
  const nb::tuple parts = tuple_of(given, 2, "the target of a step");
  return {nb::cast<size_t>(parts[0]), nb::cast<size_t>(parts[1])};
}

// The bytes of one number.
uint64_t bits_of(nb::handle given, size_t expected) {
  const BytesView view(given);
  need(view.span().size == expected && expected <= 8, "a number", "another number of bytes than its type has");
  uint64_t bits = 0;
  std::memcpy(&bits, view.span().data, expected);
  return bits;
}

void add_codes(const Options& options, Step& step) {
  if (options.has("words")) step.words = nb::cast<std::shared_ptr<const Vocabulary>>(options["words"]);
  if (options.has("integers")) step.integers = nb::cast<std::shared_ptr<const IntVocabulary>>(options["integers"]);
  step.num_codes = options.get<size_t>("num_codes", 0);
  if (options.has("bins")) {
    const nb::tuple bins = tuple_of(options["bins"], 2, "bins");
    const auto num_bins = nb::cast<int64_t>(bins[0]);
    need(num_bins >= 1 && num_bins <= INT32_MAX, "bins", "expected from 1 to 2147483647");
    need(static_cast<size_t>(num_bins) <= step.num_codes, "bins", "expected at most as many as codes");
    step.bins.emplace(static_cast<uint32_t>(num_bins), nb::cast<uint64_t>(bins[1]));
  }
  const nb::tuple slots = tuple_of(options["slots"], 3, "slots");
  step.slots = {nb::cast<int32_t>(slots[0]), nb::cast<int32_t>(slots[1]), nb::cast<int32_t>(slots[2])};
  if (options.has("rules")) {
    const nb::tuple rules = tuple_of(options["rules"], 3, "rules");
    step.text = {nb::cast<bool>(rules[0]), nb::cast<bool>(rules[1]), nb::cast<bool>(rules[2])};
  }
}

void add_scale(const Options& options, Step& step) {
  step.shift = nb::cast<std::vector<double>>(options["shift"]);
  step.factor = nb::cast<std::vector<double>>(options["factor"]);
  for (const double each : nb::cast<std::vector<double>>(options["fill"])) {
    step.fill.push_back(static_cast<float>(each));
  }
  need(!step.fill.empty(), "fill", "expected one number or more");
  step.scale.low = nb::cast<double>(options["low"]);
  step.scale.high = nb::cast<double>(options["high"]);
  need(step.scale.low <= step.scale.high, "low", "expected at most high");
  step.scale.fill = nb::cast<std::vector<double>>(options["fill"])[0];
  step.scale.log = options.get("log", false);
  step.scale.nan_is_missing = options.get("nan_is_missing", false);
  step.uses_mask = options.get("uses_mask", true);
}

void add_circle(const Options& options, Step& step) {
  step.part = static_cast<CalendarPart>(options.choice("part", {"month", "weekday", "hour"}));
  step.is_micros = options.choice("unit", {"days", "microseconds"}) == 1;
  step.points = nb::cast<std::vector<float>>(options["points"]);
  if (options.has("missing_date")) step.missing_date = nb::cast<int64_t>(options["missing_date"]);
  step.uses_mask = options.get("uses_mask", true);
}

Step step_of(const Options& options) {
  Step step;
  step.kind = static_cast<Step::Kind>(options.choice("kind", {"scale", "encode", "tokenize", "keep", "circle"}));
  step.form =
      static_cast<Step::Form>(options.choice("form", {"rows", "multi_hot", "counts", "padded", "longest", "ragged"}));
  step.field = nb::cast<size_t>(options["field"]);
  need(step.field < (size_t{1} << 24), "field", "there are not so many");
  step.is_list = options.get("is_list", false);
  step.out = dtype_named(options["out"]);
  if (options.has("stored")) step.stored = dtype_named(options["stored"]);
  step.width = options.get<size_t>("width", 1);
  if (options.has("target")) step.target = target_of(options["target"]);
  step.has_extra = options.get("has_extra", false);
  if (options.has("extra")) step.extra = target_of(options["extra"]);
  if (step.kind == Step::Kind::kScale) add_scale(options, step);
  else if (step.kind == Step::Kind::kCircle) add_circle(options, step);
  else if (step.kind != Step::Kind::kKeep) add_codes(options, step);
  if (options.has("missing")) {
    step.missing = static_cast<Step::Missing>(options.choice("missing", {"stored", "refused", "filled"}));
  }
  if (options.has("fill_value")) step.fill_bits = bits_of(options["fill_value"], item_bytes(step.stored));
  step.length = options.get<size_t>("length", 0);
  step.multiple = options.get<size_t>("multiple", 0);
  need(step.multiple <= (size_t{1} << 40), "multiple", "expected at most 2^40");
  step.from_end = options.get("from_end", false);
  if (options.has("padding")) step.pad = {bits_of(options["padding"], item_bytes(step.out)), item_bytes(step.out)};
  return step;
}

struct ArraySpec {
  DType dtype;
  std::vector<size_t> shape;
};

// The arrays of a batch.
struct BatchArrays {
  size_t num_rows = 0;
  nb::list objects;
  std::vector<ProgramArray> arrays;
};

class BoundProgram {
 public:
  BoundProgram(nb::sequence steps, nb::sequence arrays) : arrays_(specs_of(arrays)), program_(make(steps)) {}

  BatchArrays* allocate(size_t num_rows) const {
    auto batch = std::make_unique<BatchArrays>();
    batch->num_rows = num_rows;
    for (size_t i = 0; i < arrays_.size(); i++) {
      std::vector<size_t> shape{num_rows};
      shape.insert(shape.end(), arrays_[i].shape.begin(), arrays_[i].shape.end());
      NewArray array(arrays_[i].dtype, shape.data(), shape.size());
      batch->arrays.push_back({array.data, program_.row_bytes(i)});
      batch->objects.append(array.object);
    }
    return batch.release();
  }

  nb::tuple run(const BatchArrays& batch, size_t first, const ColumnSet& columns, nb::handle numbers,
                nb::handle index) const {
    RowChoice rows{nullptr, columns.num_rows()};
    if (!index.is_none()) {
      const ArrayView chosen = vector_of(index, "rows", {DType::kInt64});
      rows = {chosen.as<int64_t>(), chosen.rows()};
      check_rows(chosen, columns.num_rows());
    }
    need(batch.arrays.size() == program_.num_arrays(), "arrays", "they are of another program");
    need(first <= batch.num_rows && rows.count <= batch.num_rows - first, "first", "the arrays have fewer rows");
    const ArrayView fields = vector_of(numbers, "numbers", {DType::kInt64});
    need(fields.rows() >= program_.num_fields(), "numbers", "expected one for each field");
    std::vector<const FieldColumn*> chosen;
    for (size_t i = 0; i < program_.num_fields(); i++) {
      const auto number = static_cast<uint64_t>(fields.as<int64_t>()[i]);
      need(number < columns.fields().size(), "numbers", "there is no such column");
      chosen.push_back(&columns.fields()[number]);
    }
    auto piece = std::make_unique<Piece>();
    std::vector<uint32_t> failed;
    {
      const Unlocked unlocked(rows.count * program_.steps().size() * 4);
      failed = program_.run(chosen, rows, batch.arrays, first, *piece);
    }
    nb::object made = nb::none();
    if (!program_.piece_steps().empty()) made = nb::cast(piece.release(), nb::rv_policy::take_ownership);
    return nb::make_tuple(made, nb::cast(failed));
  }

  // Slices of a batch that the core makes; `self` is this program as Python sees it.
  BoundBatchSlices* begin(nb::object self, nb::object arrays, nb::object given, nb::handle numbers, nb::object rows,
                          size_t num_parts) const {
    const auto& batch = nb::cast<const BatchArrays&>(arrays);
    need(batch.arrays.size() == program_.num_arrays(), "arrays", "they are of another program");
    const ArrayView wanted = vector_of(rows, "rows", {DType::kInt64});
    need(wanted.rows() == batch.num_rows, "rows", "expected as many as the arrays have");
    BatchSlices::Source source{};
    size_t num_columns;
    if (nb::isinstance<ColumnSet>(given)) {
      const auto& columns = nb::cast<const ColumnSet&>(given);
      check_rows(wanted, columns.num_rows());
      source.fields = &columns.fields();
      num_columns = columns.fields().size();
    } else {
      source.reader = nb::cast<const BoundRowReader&>(given).reader.get();
      num_columns = source.reader->decoder().plan().fields.size();
    }
    need(num_parts >= 1 && num_parts <= std::max<size_t>(1, wanted.rows()), "num_parts", "expected from 1 to the rows");
    const ArrayView fields = vector_of(numbers, "numbers", {DType::kInt64});
    need(fields.rows() >= program_.num_fields(), "numbers", "expected one for each field");
    std::vector<size_t> columns;
    for (size_t i = 0; i < program_.num_fields(); i++) {
      const auto number = static_cast<uint64_t>(fields.as<int64_t>()[i]);
      need(number < num_columns, "numbers", "there is no such column");
      columns.push_back(number);
    }
    auto slices = std::make_unique<BatchSlices>(source, program_, std::move(columns), batch.arrays,
                                                wanted.as<int64_t>(), wanted.rows(), num_parts);
    return new BoundBatchSlices{{std::move(self), std::move(arrays), std::move(given), std::move(rows)},
                                std::move(slices)};
  }

  nb::list join(nb::sequence given) const {
    std::vector<const Piece*> pieces;
    std::vector<nb::object> held;
    for (nb::handle each : given) {
      held.push_back(nb::borrow(each));
      pieces.push_back(nb::cast<const Piece*>(each));
      need(pieces.back() != nullptr && pieces.back()->lists.size() == program_.piece_steps().size(), "pieces",
           "one is of another program");
    }
    nb::list joined;
    for (size_t number = 0; number < program_.piece_steps().size(); number++) {
      check_pieces(number, pieces);
      joined.append(join_one(number, pieces));
    }
    return joined;
  }

 private:
  static void check_rows(const ArrayView& rows, size_t num_rows) {
    bool all_inside = true;
    for (size_t i = 0; i < rows.rows(); i++) {
      all_inside &= static_cast<uint64_t>(rows.as<int64_t>()[i]) < num_rows;  // a negative one is larger
    }
    need(all_inside, "rows", "there is no such row");
  }

  static std::vector<ArraySpec> specs_of(nb::sequence given) {
    std::vector<ArraySpec> specs;
    for (nb::handle each : given) {
      const nb::tuple parts = tuple_of(each, 2, "an array");
      specs.push_back({dtype_named(parts[0]), nb::cast<std::vector<size_t>>(parts[1])});
      need(specs.back().shape.size() < kMostRank - 1, "shape", "expected at most 30 dimensions");
    }
    return specs;
  }

  Program make(nb::sequence given) {
    std::vector<Step> steps;
    for (nb::handle each : given) {
      const Options options(each);
      steps.push_back(step_of(options));
      const Step& step = steps.back();
      if (step.form != Step::Form::kLongest && step.form != Step::Form::kRagged) continue;
      item_shapes_.push_back(options.get<std::vector<size_t>>("item_shape", {}));
      need(item_shapes_.back().size() < kMostRank - 2, "item_shape", "expected at most 29 dimensions");
      need(product(item_shapes_.back()) == step.width, "item_shape", "it has another number of elements than an item");
    }
    std::vector<size_t> row_bytes;
    for (const ArraySpec& spec : arrays_) {
      size_t bytes = product(spec.shape);
      need(!__builtin_mul_overflow(bytes, item_bytes(spec.dtype), &bytes), "shape", "more bytes than any memory has");
      row_bytes.push_back(bytes);
    }
    return Program(std::move(steps), std::move(row_bytes));
  }

  static size_t product(const std::vector<size_t>& shape) {
    size_t size = 1;
    for (const size_t each : shape) {
      need(!__builtin_mul_overflow(size, each, &size), "shape", "more elements than any memory has");
    }
    return size;
  }

  void check_pieces(size_t number, const std::vector<const Piece*>& pieces) const {
    const Step& step = program_.steps()[program_.piece_steps()[number]];
    const size_t item = step.width * item_bytes(step.out);
    for (const Piece* piece : pieces) {
      const PieceLists& lists = piece->lists[number];
      const auto num_items = static_cast<size_t>(lists.offsets.data()[lists.offsets.size() - 1]);
      need(lists.values.size() == num_items * item, "pieces", "one is of another program");
    }
  }

  nb::tuple join_one(size_t number, const std::vector<const Piece*>& pieces) const {
    const Step& step = program_.steps()[program_.piece_steps()[number]];
    const bool is_ragged = step.form == Step::Form::kRagged;
    size_t num_rows = 0;
    for (const Piece* piece : pieces) num_rows += piece->lists[number].offsets.size() - 1;
    const size_t length = program_.joined_length(number, pieces);
    std::vector<size_t> shape{num_rows, length};
    if (is_ragged) shape.erase(shape.begin());
    shape.insert(shape.end(), item_shapes_[number].begin(), item_shapes_[number].end());
    NewArray values(step.out, shape.data(), shape.size());
    nb::object second = nb::none();
    uint8_t* mask = nullptr;
    int64_t* offsets = nullptr;
    if (is_ragged) {
      NewArray array(DType::kInt64, {num_rows + 1});
      second = array.object;
      offsets = array.as<int64_t>();
    } else if (step.has_extra) {
      NewArray array(DType::kBool, {num_rows, length});
      second = array.object;
      mask = array.data;
    }
    {
      const Unlocked unlocked(num_rows * 10 + num_rows * (is_ragged ? 0 : length) * step.width / 4);
      program_.join(number, pieces, length, values.data, mask, offsets);
    }
    return nb::make_tuple(values.object, second);
  }

  std::vector<ArraySpec> arrays_;
  std::vector<std::vector<size_t>> item_shapes_;
  Program program_;
};

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<Piece>(m, "Piece").def_ro("num_rows", &Piece::num_rows);
  nb::class_<BatchArrays>(m, "BatchArrays")
      .def_ro("num_rows", &BatchArrays::num_rows)
      .def_prop_ro("arrays", [](const BatchArrays& self) { return self.objects; });
  nb::class_<BoundProgram>(m, "Program")
      .def(nb::init<nb::sequence, nb::sequence>(), "steps"_a, "arrays"_a)
      .def("allocate", &BoundProgram::allocate, "num_rows"_a, nb::rv_policy::take_ownership)
      .def("run", &BoundProgram::run, "arrays"_a, "first"_a, "columns"_a, "numbers"_a, "rows"_a.none())
      .def(
          "begin",
          [](nb::object self, nb::object arrays, nb::object source, nb::handle numbers, nb::object rows,
             size_t num_parts) {
            const auto& program = nb::cast<const BoundProgram&>(self);
            return program.begin(self, std::move(arrays), std::move(source), numbers, std::move(rows), num_parts);
          },
          "arrays"_a, "source"_a, "numbers"_a, "rows"_a, "num_parts"_a, nb::rv_policy::take_ownership)
      .def("join", &BoundProgram::join, "pieces"_a);
}

}  // namespace penstock
