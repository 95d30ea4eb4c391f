// What Python sees of scanning files: indexes, full checks, repair, and the survey of fields. See
// src/penstock/_native.pyi.
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "bind/buffers.h"
#include "bind/segments.h"
#include "decode/survey.h"
#include "record/check.h"
#include "record/frame.h"
#include "record/index.h"
#include "record/repair.h"

using namespace nb::literals;

namespace penstock {
namespace {

nb::tuple damage_tuple(const Damage& damage) {
  return nb::make_tuple(damage.record, damage.offset, damage.size, static_cast<int>(damage.kind),
                        damage.length_is_right, damage.expected, damage.got);
}

nb::list damage_list(const std::vector<Damage>& damages) {
  nb::list out;
  for (const Damage& damage : damages) out.append(damage_tuple(damage));
  return out;
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
  // Lists of several kinds have ints and strings: then the number counts both, and is not used.
  out["distinct"] = counts.distinct.count();
  out["mean_words"] = counts.num_worded == 0 ? 0.0 : static_cast<double>(counts.num_words) / counts.num_worded;
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

// Counts the sound records of the segments; those with a fault are reported when they are read.
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
  GrowableArray<uint8_t> padded;
  std::memcpy(padded.room(payload.size() + kReadablePadding), payload.data(), payload.size());
  survey.add(Span{padded.data(), payload.size()});
}

ScanOptions scan_options(bool with_payloads, nb::object file_bytes, uint64_t max_record_bytes, bool zeros) {
  ScanOptions options;
  options.with_payloads = with_payloads;
  if (!file_bytes.is_none()) options.file_bytes = nb::cast<uint64_t>(file_bytes);
  options.max_record_bytes = max_record_bytes;
  options.allow_trailing_zeros = zeros;
  return options;
}

// A scanner together with its visitor, for Python to feed.
template <typename V>
struct FedScanner {
  V visitor;
  FrameScanner scanner;

  template <typename... Args>
  explicit FedScanner(const ScanOptions& options, Args... args) : visitor(args...), scanner(options, visitor) {}

  void feed(nb::object bytes) {
    const BytesView view(bytes);
    nb::gil_scoped_release unlocked;
    scanner.feed(view.span());
  }
  void finish() { scanner.finish(); }
};

using IndexScanner = FedScanner<IndexVisitor>;
using CheckScanner = FedScanner<CheckVisitor>;
using RepairScanner = FedScanner<RepairVisitor>;

// Says how far a scanner is: the number of the record that it reads, and where that begins.
template <typename T>
nb::tuple location(const T& self) {
  return nb::make_tuple(self.scanner.num_records(), self.scanner.position());
}

nb::tuple index_result(IndexVisitor& visitor, const FrameScanner& scanner) {
  visitor.begins.push(scanner.end());
  return nb::make_tuple(as_array<uint64_t>(visitor.begins), damage_list(visitor.damages));
}

nb::tuple scan_file(int fd, uint64_t size, uint64_t max_record_bytes, bool allow_trailing_zeros) {
  ScanOptions options = scan_options(false, nb::cast(size), max_record_bytes, allow_trailing_zeros);
  options.can_rewind = true;
  IndexVisitor visitor;
  FrameScanner scanner(options, visitor);
  int error;
  {
    nb::gil_scoped_release unlocked;
    error = scan_headers(fd, options, scanner);
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  return index_result(visitor, scanner);
}

nb::bytes take(GrowableArray<uint8_t>& bytes) {
  nb::bytes out(bytes.size() ? reinterpret_cast<const char*>(bytes.data()) : "", bytes.size());
  bytes.truncate(0);
  return out;
}

nb::tuple take_repaired(RepairScanner& self) {
  nb::list losses;
  for (const Loss& loss : self.visitor.losses) {
    losses.append(nb::make_tuple(damage_tuple(loss.damage), static_cast<int>(loss.status)));
  }
  self.visitor.losses.clear();
  return nb::make_tuple(take(self.visitor.good), take(self.visitor.bad), losses);
}

}  // namespace

void bind_scanning(nb::module_& m) {
  m.attr("MOST_DAMAGES") = IndexVisitor::kMostDamages;
  m.def("scan_file", &scan_file, "fd"_a, "size"_a, "max_record_bytes"_a, "allow_trailing_zeros"_a);

  nb::class_<Survey>(m, "Survey")
      .def(nb::init<>())
      .def("add", &survey_payload, "payload"_a)
      .def("add_records", &survey_records, "segments"_a)
      .def("counts", &survey_dict);

  nb::class_<IndexScanner>(m, "IndexScanner")
      .def(
          "__init__",
          [](IndexScanner* self, uint64_t max_record_bytes, bool zeros) {
            new (self) IndexScanner(scan_options(false, nb::none(), max_record_bytes, zeros));
          },
          "max_record_bytes"_a, "allow_trailing_zeros"_a)
      .def("feed", &IndexScanner::feed, "data"_a)
      .def_prop_ro("location", &location<IndexScanner>)
      .def("finish", [](IndexScanner& self) {
        self.finish();
        return index_result(self.visitor, self.scanner);
      });

  nb::class_<CheckScanner>(m, "CheckScanner")
      .def(
          "__init__",
          [](CheckScanner* self, Survey* survey, nb::object file_bytes, uint64_t max_record_bytes, bool zeros) {
            new (self) CheckScanner(scan_options(true, file_bytes, max_record_bytes, zeros), survey);
          },
          nb::keep_alive<1, 2>(), "survey"_a, "file_bytes"_a.none(), "max_record_bytes"_a, "allow_trailing_zeros"_a)
      .def("feed", &CheckScanner::feed, "data"_a)
      .def_prop_ro("location", &location<CheckScanner>)
      .def("finish", &CheckScanner::finish)
      .def_prop_ro("num_records", [](const CheckScanner& self) { return self.scanner.num_records(); })
      .def_prop_ro("num_damages", [](const CheckScanner& self) { return self.visitor.num_damages; })
      .def("damages", [](const CheckScanner& self) { return damage_list(self.visitor.damages); })
      .def("unparsable", [](const CheckScanner& self) {
        nb::list out;
        for (const Unparsable& item : self.visitor.unparsable) {
          out.append(nb::make_tuple(item.record, item.offset, static_cast<int>(item.status), item.in_lists));
        }
        return out;
      });

  nb::class_<RepairScanner>(m, "RepairScanner")
      .def(
          "__init__",
          [](RepairScanner* self, nb::object file_bytes, uint64_t max_record_bytes, bool zeros, bool examples,
             bool lists) {
            new (self) RepairScanner(scan_options(true, file_bytes, max_record_bytes, zeros), examples, lists);
          },
          "file_bytes"_a.none(), "max_record_bytes"_a, "allow_trailing_zeros"_a, "examples"_a, "lists"_a)
      .def("feed", &RepairScanner::feed, "data"_a)
      .def_prop_ro("location", &location<RepairScanner>)
      .def("finish", &RepairScanner::finish)
      .def("take", &take_repaired)
      .def_prop_ro("num_good", [](const RepairScanner& self) { return self.visitor.num_good; });
}

}  // namespace penstock
