// What Python sees of reading: arguments become spans and specs, buffers become arrays. See src/penstock/_native.pyi.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "bind/buffers.h"
#include "bind/column_set.h"
#include "bind/segments.h"
#include "decode/decode.h"

using namespace nb::literals;

namespace penstock {
namespace {

nb::tuple fault_tuple(const RowFault& item) {
  const Fault& fault = item.fault;
  return nb::make_tuple(item.row, static_cast<int>(fault.status), fault.field, fault.expected, fault.got,
                        nb::bytes(item.detail.data(), item.detail.size()));
}

void add_default(FieldSpec& spec, nb::handle value) {
  if (spec.kind == Kind::kInt64) {
    spec.default_ints.push_back(nb::cast<int64_t>(value));
  } else if (spec.kind == Kind::kFloat) {
    spec.default_floats.push_back(static_cast<float>(nb::cast<double>(value)));
  } else {
    const BytesView view(value);
    spec.default_strings.emplace_back(reinterpret_cast<const char*>(view.span().data), view.span().size);
  }
}

// (key, kind, layout, count, required, default or None, and the vocabulary of a coded field); the default of a feature
// list is a sequence of steps.
FieldSpec spec_of(nb::handle given) {
  const nb::tuple parts = tuple_of(given, 6, 7, "a field");
  FieldSpec spec;
  spec.key = nb::cast<std::string>(parts[0]);
  spec.kind = static_cast<Kind>(nb::cast<int>(parts[1]));
  spec.layout = static_cast<Layout>(nb::cast<int>(parts[2]));
  spec.count = nb::cast<int64_t>(parts[3]);
  const bool needs_count = spec.layout == Layout::kFixed || spec.layout == Layout::kRaw;
  if (spec.kind < Kind::kBytes || spec.kind > Kind::kInt64 || spec.layout > Layout::kCoded ||
      spec.count < (needs_count ? 0 : -1)) {
    throw nb::value_error("a field has an impossible kind, layout or count");
  }
  spec.required = nb::cast<bool>(parts[4]);
  if (spec.layout == Layout::kCoded) {
    if (spec.kind != Kind::kBytes || parts.size() < 7 || parts[6].is_none()) {
      throw nb::value_error("a coded field needs a vocabulary");
    }
    spec.vocabulary = nb::cast<std::shared_ptr<const Vocabulary>>(parts[6]);
  }
  if (parts[5].is_none()) return spec;
  for (nb::handle value : nb::cast<nb::sequence>(parts[5])) {
    if (spec.layout != Layout::kSteps) {
      add_default(spec, value);
      continue;
    }
    const nb::sequence step = nb::cast<nb::sequence>(value);
    spec.default_steps.push_back(nb::len(step));
    for (nb::handle each : step) add_default(spec, each);
  }
  const size_t given_count = spec.default_ints.size() + spec.default_floats.size() + spec.default_strings.size();
  const bool one = spec.layout == Layout::kScalar || spec.layout == Layout::kString || spec.layout == Layout::kRaw ||
                   spec.layout == Layout::kCoded;
  const bool fixed = spec.layout == Layout::kFixed;
  if ((one && given_count != 1) || (fixed && static_cast<int64_t>(given_count) != spec.count)) {
    throw nb::value_error("a default has another number of values than its field");
  }
  if (spec.layout == Layout::kRaw && static_cast<int64_t>(spec.default_strings[0].size()) != spec.count) {
    throw nb::value_error("a raw default has another number of bytes than its field");
  }
  return spec;
}

// Columns, which become arrays of Python when they are asked for, and faults.
nb::tuple decode(const Decoder& decoder, nb::sequence given) {
  const Segments segments(given);
  Decoded out;
  {
    nb::gil_scoped_release unlocked;
    out = decoder.decode(segments.items);
  }
  nb::list faults;
  for (const RowFault& item : out.faults) faults.append(fault_tuple(item));
  auto* const columns = new ColumnSet(std::move(out), decoder, nb::find(decoder));
  return nb::make_tuple(nb::cast(columns, nb::rv_policy::take_ownership), faults);
}

// Payloads as they are: (arena, offsets, faults). A record with a fault is empty in the arena.
nb::tuple fetch(nb::sequence given) {
  const Segments segments(given);
  GrowableArray<uint8_t> arena;
  GrowableArray<int64_t> offsets;
  std::vector<RowFault> faults;
  {
    nb::gil_scoped_release unlocked;
    Fetcher fetcher;
    std::vector<Fetched> records;
    offsets.push(0);
    for (const Segment& segment : segments.items) {
      for (int64_t first = 0; first < segment.num_records;) {
        first += fetcher.fetch(segment, first, segment.num_records - first, records);
        for (const Fetched& record : records) {
          if (record.fault) faults.push_back({static_cast<int64_t>(offsets.size()) - 1, record.fault, {}});
          if (record.payload.size != 0) {
            std::memcpy(arena.room(record.payload.size), record.payload.data, record.payload.size);
            arena.advance(record.payload.size);
          }
          offsets.push(static_cast<int64_t>(arena.size()));
        }
      }
    }
  }
  nb::list fault_list;
  for (const RowFault& item : faults) fault_list.append(fault_tuple(item));
  return nb::make_tuple(as_array<uint8_t>(arena), as_array<int64_t>(offsets), fault_list);
}

}  // namespace

void bind_reading(nb::module_& m) {
  m.def("fetch", &fetch, "segments"_a);

  nb::class_<Decoder>(m, "Decoder")
      .def(
          "__init__",
          [](Decoder* self, nb::sequence fields, bool strict) {
            std::vector<FieldSpec> specs;
            for (nb::handle field : fields) specs.push_back(spec_of(field));
            new (self) Decoder(std::move(specs), strict);
          },
          "fields"_a, "strict"_a)
      .def("decode", &decode, "segments"_a)
      .def_prop_ro("bytes_read", &Decoder::bytes_read)
      .def_prop_ro("read_seconds", &Decoder::read_seconds);
}

}  // namespace penstock
