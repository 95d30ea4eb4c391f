// What Python sees of reading: turns arguments into spans and specs, buffers into arrays. See src/penstock/_native.pyi.
#include "bind/buffers.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "bind/segments.h"
#include "decode/decode.h"
#include "decode/survey.h"
#include "record/check.h"
#include "record/crc32c.h"
#include "record/frame.h"
#include "record/scan.h"
#include "record/sieve.h"

using namespace nb::literals;

namespace penstock {
namespace {

nb::tuple fault_tuple(const RowFault& item) {
  const Fault& fault = item.fault;
  return nb::make_tuple(item.row, static_cast<int>(fault.status), fault.field, fault.expected, fault.got,
                        nb::bytes(item.detail.data(), item.detail.size()));
}

nb::tuple damage_tuple(const Damage& damage) {
  return nb::make_tuple(damage.record, damage.offset, damage.size, static_cast<int>(damage.kind),
                        damage.length_is_right, damage.expected, damage.got);
}

nb::list damage_list(const std::vector<Damage>& damages) {
  nb::list out;
  for (const Damage& damage : damages) out.append(damage_tuple(damage));
  return out;
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
  nb::tuple parts = nb::cast<nb::tuple>(given);
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
    if (spec.kind != Kind::kBytes || nb::len(parts) < 7 || parts[6].is_none()) {
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

nb::object values_of(const FieldSpec& spec, Column& column, int64_t num_rows, const nb::object& kept) {
  const auto rows = static_cast<size_t>(num_rows);
  const auto count = static_cast<size_t>(spec.count < 0 ? 0 : spec.count);
  const auto numbers = [&]() -> nb::object {
    return spec.kind == Kind::kInt64 ? as_array<int64_t>(column.ints) : as_array<float>(column.floats);
  };
  switch (spec.layout) {
    case Layout::kScalar:
      return nb::none();
    case Layout::kFixed:
      return spec.kind == Kind::kInt64 ? as_matrix<int64_t>(column.ints.release(), rows, count)
                                       : as_matrix<float>(column.floats.release(), rows, count);
    case Layout::kRaw:
      return as_matrix<uint8_t>(column.bytes.release(), rows, count);
    case Layout::kList:
      return numbers();
    case Layout::kString:
      if (column.is_view()) return nb::make_tuple(kept, as_array<int64_t>(column.view_stops));
      return as_array<uint8_t>(column.bytes);
    case Layout::kCoded:
      return as_array<int32_t>(column.codes.release(), rows);
    case Layout::kStrings:
      return nb::make_tuple(as_array<uint8_t>(column.bytes), as_array<int64_t>(column.value_offsets));
    case Layout::kSteps:
      if (spec.kind == Kind::kBytes) {
        return nb::make_tuple(as_array<uint8_t>(column.bytes), as_array<int64_t>(column.value_offsets),
                              as_array<int64_t>(column.step_offsets));
      }
      return nb::make_tuple(numbers(), nb::none(), as_array<int64_t>(column.step_offsets));
  }
  return nb::none();
}

nb::tuple decode(const Decoder& decoder, nb::sequence given) {
  const Segments segments(given);
  Decoded out;
  {
    nb::gil_scoped_release unlocked;
    out = decoder.decode(segments.items);
  }
  nb::object kept = nb::none();
  for (const Column& column : out.columns) {
    if (!column.is_view()) continue;
    const size_t size = out.kept.capacity();
    kept = as_array<uint8_t>(std::move(out.kept), size);
    break;
  }
  nb::list values;
  for (size_t i = 0; i < out.columns.size(); i++) {
    values.append(values_of(decoder.plan().fields[i], out.columns[i], out.num_rows, kept));
  }
  nb::list faults;
  for (const RowFault& item : out.faults) faults.append(fault_tuple(item));
  return nb::make_tuple(as_matrix<int64_t>(std::move(out.ints), decoder.num_int_scalars(), out.stride),
                        as_matrix<float>(std::move(out.floats), decoder.num_float_scalars(), out.stride),
                        as_matrix<int64_t>(std::move(out.offsets), decoder.num_row_offsets(), out.offset_stride),
                        as_matrix<bool>(std::move(out.present), decoder.num_optional(), out.stride), values, faults);
}

// Payloads as they are: (arena, offsets, faults). A record with a fault is empty in the arena.
nb::tuple fetch(nb::sequence given) {
  const Segments segments(given);
  Growing<uint8_t> arena;
  Growing<int64_t> offsets;
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

nb::dict counts_dict(const FieldCounts& counts) {
  nb::dict out;
  const auto or_zero = [](int64_t value) { return value == INT64_MAX || value == INT64_MIN ? 0 : value; };
  const int64_t with_kind = counts.by_kind[1] + counts.by_kind[2] + counts.by_kind[3];
  out["unset"] = counts.by_kind[0];
  out["bytes"] = counts.by_kind[1];
  out["float"] = counts.by_kind[2];
  out["int64"] = counts.by_kind[3];
  out["min_len"] = with_kind == 0 ? 0 : counts.min_len;
  out["max_len"] = counts.max_len;
  const bool any_int = counts.many_ints || !counts.int_values.empty();
  out["int_min"] = any_int ? counts.int_min : 0;
  out["int_max"] = any_int ? counts.int_max : 0;
  nb::list ints;
  std::vector<int64_t> sorted_ints(counts.int_values.begin(), counts.int_values.end());
  std::sort(sorted_ints.begin(), sorted_ints.end());
  for (int64_t value : sorted_ints) ints.append(value);
  out["int_values"] = counts.many_ints ? nb::object(nb::none()) : nb::object(ints);
  out["min_bytes"] = or_zero(counts.min_bytes);
  out["max_bytes"] = counts.max_bytes;
  out["num_values"] = counts.num_values;
  out["utf8"] = counts.text;
  out["jpeg"] = counts.jpeg;
  out["png"] = counts.png;
  out["webp"] = counts.webp;
  out["gif"] = counts.gif;
  out["bmp"] = counts.bmp;
  nb::list strings;
  std::vector<std::string> sorted_strings(counts.strings.begin(), counts.strings.end());
  std::sort(sorted_strings.begin(), sorted_strings.end());
  for (const std::string& value : sorted_strings) strings.append(nb::bytes(value.data(), value.size()));
  out["strings"] = counts.many_strings ? nb::object(nb::none()) : nb::object(strings);
  return out;
}

nb::dict survey_dict(const Survey& survey) {
  nb::dict fields, lists, out;
  for (const FieldCounts& counts : survey.fields) {
    if (counts.by_kind[0] + counts.by_kind[1] + counts.by_kind[2] + counts.by_kind[3] == 0) continue;
    fields[nb::str(counts.name.data(), counts.name.size())] = counts_dict(counts);
  }
  for (const FieldCounts& counts : survey.lists) {
    if (counts.records == 0) continue;
    nb::dict each = counts_dict(counts);
    each["records"] = counts.records;
    each["min_steps"] = counts.min_steps;
    each["max_steps"] = counts.max_steps;
    lists[nb::str(counts.name.data(), counts.name.size())] = each;
  }
  out["records"] = survey.records;
  out["unparsable"] = survey.unparsable;
  out["featureless"] = survey.featureless;
  out["empty"] = survey.empty;
  out["with_lists"] = survey.with_lists;
  out["fields"] = fields;
  out["lists"] = lists;
  return out;
}

// Counts the sound records of the segments; those with a fault are left to whoever reads them.
void survey_records(Survey& survey, nb::sequence given) {
  const Segments segments(given);
  nb::gil_scoped_release unlocked;
  Fetcher fetcher;
  std::vector<Fetched> records;
  for (const Segment& segment : segments.items) {
    for (int64_t first = 0; first < segment.num_records;) {
      first += fetcher.fetch(segment, first, segment.num_records - first, records);
      for (const Fetched& record : records) {
        if (!record.fault) survey.add(record.payload);
      }
    }
  }
}

void survey_payload(Survey& survey, nb::bytes payload) {
  Growing<uint8_t> padded;
  std::memcpy(padded.room(payload.size() + kReadablePadding), payload.data(), payload.size());
  survey.add(Span{padded.data(), payload.size()});
}

WalkOptions walk_options(bool with_payloads, nb::object file_bytes, uint64_t max_record_bytes, bool zeros) {
  WalkOptions options;
  options.with_payloads = with_payloads;
  if (!file_bytes.is_none()) options.file_bytes = nb::cast<uint64_t>(file_bytes);
  options.max_record_bytes = max_record_bytes;
  options.allow_trailing_zeros = zeros;
  return options;
}

// A walk together with its visitor, for Python to feed.
template <typename V>
struct FedWalk {
  V visitor;
  Walk walk;

  template <typename... Args>
  explicit FedWalk(const WalkOptions& options, Args... args) : visitor(args...), walk(options, visitor) {}

  void feed(nb::object bytes) {
    const BytesView view(bytes);
    nb::gil_scoped_release unlocked;
    walk.feed(view.span());
  }
  void finish() { walk.finish(); }
};

using IndexWalk = FedWalk<IndexVisitor>;
using CheckWalk = FedWalk<CheckVisitor>;
using SieveWalk = FedWalk<SieveVisitor>;

nb::tuple index_result(IndexVisitor& visitor, const Walk& walk) {
  visitor.begins.push(walk.end());
  return nb::make_tuple(as_array<uint64_t>(visitor.begins), damage_list(visitor.damages));
}

nb::tuple scan_file(int fd, uint64_t size, uint64_t max_record_bytes, bool allow_trailing_zeros) {
  const WalkOptions options = walk_options(false, nb::cast(size), max_record_bytes, allow_trailing_zeros);
  IndexVisitor visitor;
  Walk walk(options, visitor);
  int error;
  {
    nb::gil_scoped_release unlocked;
    error = scan_headers(fd, options, walk);
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  return index_result(visitor, walk);
}

nb::bytes take(Growing<uint8_t>& bytes) {
  nb::bytes out(bytes.size() ? reinterpret_cast<const char*>(bytes.data()) : "", bytes.size());
  bytes.truncate(0);
  return out;
}

nb::tuple take_from_sieve(SieveWalk& self) {
  nb::list losses;
  for (const Loss& loss : self.visitor.losses) {
    losses.append(nb::make_tuple(damage_tuple(loss.damage), static_cast<int>(loss.status)));
  }
  self.visitor.losses.clear();
  return nb::make_tuple(take(self.visitor.good), take(self.visitor.bad), losses);
}

}  // namespace
}  // namespace penstock

NB_MODULE(_native, m) {
  using namespace penstock;
  nb::set_leak_warnings(false);  // an exception's traceback may hold an array when the interpreter ends

  m.def("crc32c", [](nb::bytes data) { return crc32c(reinterpret_cast<const uint8_t*>(data.c_str()), data.size()); });
  m.def("masked_crc32c",
        [](nb::bytes data) { return masked_crc32c(reinterpret_cast<const uint8_t*>(data.c_str()), data.size()); });
  m.def("crc32c_by_table",
        [](nb::bytes data) { return crc32c_by_table(reinterpret_cast<const uint8_t*>(data.c_str()), data.size()); });
  m.def("crc32c_method", &crc32c_method);
  m.attr("MOST_DAMAGES") = IndexVisitor::kMostDamages;
  m.def("pooled_bytes", &pooled_bytes);
  m.def("empty_pool", &empty_pool);
  m.def("trim_memory", &trim_memory, nb::call_guard<nb::gil_scoped_release>());
  bind_writing(m);
  bind_places(m);
  bind_batching(m);
  bind_text(m);
  bind_picture(m);
  bind_pixels(m);
  m.def("scan_file", &scan_file, "fd"_a, "size"_a, "max_record_bytes"_a, "allow_trailing_zeros"_a);
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

  nb::class_<Survey>(m, "Survey")
      .def(nb::init<>())
      .def("add", &survey_payload, "payload"_a)
      .def("add_records", &survey_records, "segments"_a)
      .def("counts", &survey_dict);

  nb::class_<IndexWalk>(m, "IndexWalk")
      .def(
          "__init__",
          [](IndexWalk* self, uint64_t max_record_bytes, bool zeros) {
            new (self) IndexWalk(walk_options(false, nb::none(), max_record_bytes, zeros));
          },
          "max_record_bytes"_a, "allow_trailing_zeros"_a)
      .def("feed", &IndexWalk::feed, "data"_a)
      .def("finish", [](IndexWalk& self) {
        self.finish();
        return index_result(self.visitor, self.walk);
      });

  nb::class_<CheckWalk>(m, "CheckWalk")
      .def(
          "__init__",
          [](CheckWalk* self, Survey* survey, nb::object file_bytes, uint64_t max_record_bytes, bool zeros) {
            new (self) CheckWalk(walk_options(true, file_bytes, max_record_bytes, zeros), survey);
          },
          nb::keep_alive<1, 2>(), "survey"_a, "file_bytes"_a.none(), "max_record_bytes"_a, "allow_trailing_zeros"_a)
      .def("feed", &CheckWalk::feed, "data"_a)
      .def("finish", &CheckWalk::finish)
      .def_prop_ro("num_records", [](const CheckWalk& self) { return self.walk.num_records(); })
      .def_prop_ro("num_damages", [](const CheckWalk& self) { return self.visitor.num_damages; })
      .def("damages", [](const CheckWalk& self) { return damage_list(self.visitor.damages); })
      .def("unparsable", [](const CheckWalk& self) {
        nb::list out;
        for (const Unparsable& item : self.visitor.unparsable) {
          out.append(nb::make_tuple(item.record, item.offset, static_cast<int>(item.status), item.in_lists));
        }
        return out;
      });

  nb::class_<SieveWalk>(m, "SieveWalk")
      .def(
          "__init__",
          [](SieveWalk* self, nb::object file_bytes, uint64_t max_record_bytes, bool zeros, bool examples, bool lists) {
            new (self) SieveWalk(walk_options(true, file_bytes, max_record_bytes, zeros), examples, lists);
          },
          "file_bytes"_a.none(), "max_record_bytes"_a, "allow_trailing_zeros"_a, "examples"_a, "lists"_a)
      .def("feed", &SieveWalk::feed, "data"_a)
      .def("finish", &SieveWalk::finish)
      .def("take", &take_from_sieve)
      .def_prop_ro("num_good", [](const SieveWalk& self) { return self.visitor.num_good; });
}
