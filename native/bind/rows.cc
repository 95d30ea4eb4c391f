// Rows of many files: where they are, and reading them in any order. See src/penstock/_native.pyi.
#include <nanobind/stl/vector.h>

#include "bind/batch_slices.h"
#include "bind/column_set.h"
#include "bind/numpy.h"
#include "bind/segments.h"
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

// Locations with the arrays that they point into.
struct BoundRowLocations {
  RowLocations locations;
  std::vector<nb::object> held;

  explicit BoundRowLocations(std::vector<int64_t> starts) : locations(check(starts)), held(locations.num_files()) {}

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

  // All at once, if no file of these rows has changed: (which, files, begins, sizes); None if one has. Each file is
  // given by its descriptor, size, time of modification and inode.
  nb::object find_unchanged(const Rows& rows, const Identities& identities) const {
    static_assert(sizeof(RowLocations::FileIdentity) == 4 * sizeof(int64_t));
    if (identities.shape(0) != locations.num_files() || identities.shape(1) != 4) {
      throw nb::value_error("expected four numbers for each file");
    }
    const auto* const known = reinterpret_cast<const RowLocations::FileIdentity*>(identities.data());
    const size_t count = rows.shape(0);
    Buffer which(count * sizeof(uint32_t)), begins(count * sizeof(uint64_t)), sizes(count * sizeof(uint64_t));
    std::vector<uint32_t> files;
    bool found, all_there, is_same = true;
    {
      nb::gil_scoped_release unlocked;
      found = locations.find_files(rows.data(), count, which.as<uint32_t>(), files);
      all_there = found && locations.find_frames(rows.data(), count, which.as<uint32_t>(), files, begins.as<uint64_t>(),
                                                 sizes.as<uint64_t>());
      for (const uint32_t file : files) is_same &= known[file].is_unchanged();
    }
    if (!found) throw nb::index_error("there is no such row");
    if (!all_there) throw nb::value_error("the offsets of a file are not known, or fall");
    if (!is_same) return nb::none();
    return nb::make_tuple(as_array<uint32_t>(std::move(which), count), nb::cast(files),
                          as_array<uint64_t>(std::move(begins), count), as_array<uint64_t>(std::move(sizes), count));
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

// Reads rows of open files, each given as (descriptor, mapping or None) and by its identity as in find_unchanged().
void make_reader(BoundRowReader* self, nb::object given_locations, nb::sequence given_files, const Identities& given,
                 nb::object given_decoder, nb::object owner) {
  const auto& locations = nb::cast<const BoundRowLocations&>(given_locations).locations;
  const auto& decoder = nb::cast<const Decoder&>(given_decoder);
  need(given.shape(0) == locations.num_files() && given.shape(1) == 4, "expected four numbers for each file");
  std::vector<nb::object> held{given_locations, given_decoder, std::move(owner)};
  std::vector<FrameSource> files;
  for (nb::handle each : given_files) {
    const nb::tuple parts = tuple_of(each, 2, "a file");
    FrameSource source;
    source.fd = nb::cast<int>(parts[0]);
    if (!parts[1].is_none()) {
      held.push_back(nb::borrow(parts[1]));
      source.mapping = nb::cast<const Mapping*>(parts[1]);
      if (!source.mapping->holds()) source.mapping = nullptr;
    }
    files.push_back(source);
  }
  need(files.size() == locations.num_files(), "expected a descriptor for each file");
  const auto* const known = reinterpret_cast<const RowLocations::FileIdentity*>(given.data());
  std::vector<RowLocations::FileIdentity> identities(known, known + files.size());
  auto reader = std::make_unique<RowReader>(locations, std::move(files), std::move(identities), decoder);
  new (self) BoundRowReader{std::move(held), std::move(reader)};
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
      .def("find_unchanged", &BoundRowLocations::find_unchanged, "rows"_a, "identities"_a)
      .def("find_frames", &BoundRowLocations::find_frames, "rows"_a, "which"_a, "files"_a);
  nb::class_<BoundRowReader>(m, "RowReader")
      .def("__init__", &make_reader, "locations"_a, "files"_a, "identities"_a, "decoder"_a, "owner"_a)
      .def("read", &read_rows, "rows"_a);
}

}  // namespace penstock
