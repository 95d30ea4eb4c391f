// Rows of many files: where they are, and reading them in any order. See src/penstock/_native.pyi.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/batch_slices.h"
#include "bind/column_set.h"
#include "bind/numpy.h"
#include "bind/segments.h"
#include "record/file_identity.h"
#include "record/row_buffers.h"
#include "record/row_files.h"
#include "record/row_locations.h"

using namespace nb::literals;

namespace penstock {

namespace {

using Rows = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Identities = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

}  // namespace

Segments::Segments(nb::sequence given) {
  for (nb::handle each : given) {
    const auto parts = value_of<nb::tuple>(each, "a segment");
    const bool is_mixed = parts.size() != 0 && nb::isinstance<nb::list>(parts[0]);
    is_mixed ? add_mixed(tuple_of(each, 4, 5, "a segment of several files"))
             : add_plain(tuple_of(each, 5, 6, "a segment"));
  }
}

FrameSource Segments::source_of(nb::handle fd, nb::handle bytes, nb::handle start) {
  FrameSource source;
  source.fd = nb::cast<int>(fd);
  if (nb::isinstance<Mapping>(bytes)) {
    mappings_.push_back(nb::borrow(bytes));
    source.mapping = nb::cast<const Mapping*>(bytes);
    if (!source.mapping->holds()) source.mapping = nullptr;
  } else if (!bytes.is_none()) {
    views_.push_back(std::make_unique<BytesView>(bytes));
    source.memory = views_.back()->span();
  }
  source.memory_start = nb::cast<uint64_t>(start);
  return source;
}

void Segments::add_plain(nb::tuple parts) {
  Segment segment;
  segment.sources.push_back(source_of(parts[0], parts[1], parts[2]));
  add(std::move(segment), parts[3], parts[4]);
}

void Segments::add_mixed(nb::tuple parts) {
  Segment segment;
  for (nb::handle each : nb::cast<nb::list>(parts[0])) {
    const nb::tuple source = tuple_of(each, 3, "the file of a segment");
    segment.sources.push_back(source_of(source[0], source[1], source[2]));
  }
  small_arrays_.push_back(nb::cast<SmallNumbers>(parts[1]));
  const SmallNumbers& which = small_arrays_.back();
  segment.which = which.data();
  for (size_t i = 0; i < which.shape(0); i++) {
    need(segment.which[i] < segment.sources.size(), "a record is in no file");
  }
  const size_t num_records = which.shape(0);
  add(std::move(segment), parts[2], parts[3]);
  need(static_cast<size_t>(items.back().num_records) == num_records, "files and begins differ in length");
}

void Segments::add(Segment segment, nb::handle given_begins, nb::handle given_sizes) {
  arrays_.push_back(nb::cast<Numbers>(given_begins));
  const Numbers begins = arrays_.back();
  arrays_.push_back(nb::cast<Numbers>(given_sizes));
  const Numbers sizes = arrays_.back();
  const size_t count = begins.shape(0);
  need(count == sizes.shape(0), "begins and sizes differ in length");
  for (size_t i = 0; i < count; i++) {
    need(is_possible_frame(begins.data()[i], sizes.data()[i]), "a frame has an impossible offset or size");
  }
  segment.begins = begins.data();
  segment.sizes = sizes.data();
  segment.num_records = static_cast<int64_t>(count);
  items.push_back(std::move(segment));
}

namespace {

struct BoundRowFiles {
  nb::object locations;
  std::unique_ptr<RowFiles> files;
};

// Frames in memory with what keeps them alive.
struct BoundRowBuffers {
  std::unique_ptr<Segments> segments;
  std::unique_ptr<RowBuffers> buffers;
};

// Locations with the arrays that they point into.
struct BoundRowLocations {
  RowLocations locations;
  std::vector<nb::object> held;

  explicit BoundRowLocations(std::vector<int64_t> starts) : locations(check(starts)), held(locations.num_files()) {}

  BoundRowLocations(const BoundRowLocations&) = delete;
  BoundRowLocations& operator=(const BoundRowLocations&) = delete;

  static std::vector<int64_t> check(const std::vector<int64_t>& starts) {
    if (starts.empty() || starts[0] != 0) throw nb::value_error("starts must begin with 0");
    for (size_t i = 1; i < starts.size(); i++) {
      if (starts[i] < starts[i - 1]) throw nb::value_error("starts must not fall");
    }
    return starts;
  }

  void set(size_t file, nb::object offsets) {
    const auto array = array_of<uint64_t>(offsets, "offsets");
    if (file >= locations.num_files() || array.shape(0) != static_cast<size_t>(locations.num_rows(file)) + 1) {
      throw nb::value_error("offsets do not fit the file's rows");
    }
    // Another thread may be reading the offsets that were set before.
    need(held[file].ptr() == nullptr, "the offsets of a file are set twice");
    locations.set(file, array.data());
    held[file] = offsets;
  }

  nb::tuple find_files(const Rows& rows) const {
    const size_t count = rows.shape(0);
    Buffer which(count * sizeof(uint32_t));
    std::vector<uint32_t> files;
    bool found;
    {
      nb::gil_scoped_release unlocked;
      found = locations.find_files(rows.data(), count, which.as<uint32_t>(), files);
    }
    if (!found) throw nb::index_error("there is no such row");
    return nb::make_tuple(as_array<uint32_t>(std::move(which), count), nb::cast(files));
  }

  // The files of these rows whose offsets are not set.
  std::vector<uint32_t> find_unknown(const Rows& rows) const {
    std::vector<uint32_t> files;
    nb::gil_scoped_release unlocked;
    const bool found = locations.find_unknown(rows.data(), rows.shape(0), files);
    if (!found) throw nb::index_error("there is no such row");
    return files;
  }

  nb::tuple find_frames(const Rows& rows, const SmallNumbers& which, const std::vector<uint32_t>& files) const {
    const size_t count = rows.shape(0);
    if (which.shape(0) != count) throw nb::value_error("rows and files differ in length");
    Buffer begins(count * sizeof(uint64_t)), sizes(count * sizeof(uint64_t));
    bool found;
    {
      nb::gil_scoped_release unlocked;
      found =
          locations.find_frames(rows.data(), count, which.data(), files, begins.as<uint64_t>(), sizes.as<uint64_t>());
    }
    if (!found) throw nb::value_error("the offsets of a file are not known, or fall");
    return nb::make_tuple(as_array<uint64_t>(std::move(begins), count), as_array<uint64_t>(std::move(sizes), count));
  }
};

// The paths of files as bytes, empty for those that are not to be read; and size, time of modification and inode of
// each.
void make_files(BoundRowFiles* self, nb::object given_locations, nb::sequence given_paths, const Identities& given,
                size_t most_open, size_t most_pinned, bool maps) {
  const auto& locations = nb::cast<const BoundRowLocations&>(given_locations).locations;
  need(given.shape(0) == locations.num_files() && given.shape(1) == 3, "expected three numbers for each file");
  std::vector<RowFiles::File> files;
  files.reserve(locations.num_files());
  const int64_t* at = given.data();
  for (nb::handle each : given_paths) {
    const auto path = value_of<nb::bytes>(each, "a path");
    need(files.size() < locations.num_files(), "expected a path for each file");
    files.push_back({std::string(path.c_str(), path.size()), FileIdentity{at[0], at[1], at[2]}});
    at += 3;
  }
  need(files.size() == locations.num_files(), "expected a path for each file");
  auto made = std::make_unique<RowFiles>(locations, std::move(files), RowFiles::Limits{most_open, most_pinned, maps});
  new (self) BoundRowFiles{given_locations, std::move(made)};
}

bool prefetch_rows(const BoundRowFiles& self, const Rows& rows) {
  nb::gil_scoped_release unlocked;
  return self.files->prefetch(rows.data(), rows.shape(0));
}

void make_buffers(BoundRowBuffers* self, nb::handle segment) {
  nb::list one;
  one.append(segment);
  auto segments = std::make_unique<Segments>(nb::borrow<nb::sequence>(one));
  auto buffers = std::make_unique<RowBuffers>(segments->items[0]);
  new (self) BoundRowBuffers{std::move(segments), std::move(buffers)};
}

void make_reader(BoundRowReader* self, nb::object source, nb::object given_decoder) {
  const RowFinder& finder = nb::isinstance<BoundRowBuffers>(source)
                                ? static_cast<const RowFinder&>(*nb::cast<const BoundRowBuffers&>(source).buffers)
                                : *nb::cast<const BoundRowFiles&>(source).files;
  const auto& decoder = nb::cast<const Decoder&>(given_decoder);
  auto reader = std::make_unique<RowReader>(finder, decoder);
  new (self) BoundRowReader{{source, given_decoder}, std::move(reader)};
}

// One row of four numbers for each file: see read_identities().
nb::object identify_files(nb::bytes folder, const std::vector<std::string>& names) {
  const std::string path(folder.c_str(), folder.size());
  Buffer out(names.size() * 4 * sizeof(int64_t));
  {
    nb::gil_scoped_release unlocked;
    read_identities(path, names, out.as<int64_t>());
  }
  return as_array<int64_t>(std::move(out), names.size() * 4);
}

// Columns of rows in that order; None if a file has changed or a record has a fault.
nb::object read_rows(const BoundRowReader& self, nb::handle given) {
  const ArrayView rows = vector_of(given, "rows", {DType::kInt64});
  Decoded out;
  bool is_read;
  {
    nb::gil_scoped_release unlocked;
    is_read = self.reader->read(rows.as<int64_t>(), rows.rows(), out);
  }
  if (!is_read || !out.faults.empty()) return nb::none();
  const Decoder& decoder = self.reader->decoder();
  auto* const columns = new ColumnSet(std::move(out), decoder, nb::find(decoder));
  return nb::cast(columns, nb::rv_policy::take_ownership);
}

void prefetch_all(nb::sequence given) {
  const Segments segments(given);
  nb::gil_scoped_release unlocked;
  for (const Segment& segment : segments.items) prefetch(segment);
}

}  // namespace

void bind_rows(nb::module_& m) {
  m.def("prefetch", &prefetch_all, "segments"_a);
  nb::class_<Mapping>(m, "Mapping")
      .def(nb::init<int, size_t>(), "fd"_a, "size"_a)
      .def("read_ahead", &Mapping::read_ahead, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<BoundRowLocations>(m, "RowLocations")
      .def(nb::init<std::vector<int64_t>>(), "starts"_a)
      .def("set", &BoundRowLocations::set, "file"_a, "offsets"_a)
      .def("find_files", &BoundRowLocations::find_files, "rows"_a)
      .def("find_unknown", &BoundRowLocations::find_unknown, "rows"_a)
      .def("find_frames", &BoundRowLocations::find_frames, "rows"_a, "which"_a, "files"_a);
  m.def("identify_files", &identify_files, "folder"_a, "names"_a);
  nb::class_<BoundRowFiles>(m, "RowFiles")
      .def("__init__", &make_files, "locations"_a, "paths"_a, "identities"_a, "most_open"_a, "most_pinned"_a, "maps"_a)
      .def("prefetch", &prefetch_rows, "rows"_a)
      .def_prop_ro("num_open", [](const BoundRowFiles& self) { return self.files->num_open(); });
  nb::class_<BoundRowBuffers>(m, "RowBuffers").def("__init__", &make_buffers, "segment"_a);
  nb::class_<BoundRowReader>(m, "RowReader")
      .def("__init__", &make_reader, "source"_a, "decoder"_a)
      .def("read", &read_rows, "rows"_a);
}

}  // namespace penstock
