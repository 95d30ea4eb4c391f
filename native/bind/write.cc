// What Python sees of writing: hashes, the encoder, frames. See src/penstock/_native.pyi.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bind/arguments.h"
#include "write/compose.h"
#include "write/digest.h"
#include "write/digest_lanes.h"
#include "write/encode.h"
#include "write/file_check.h"
#include "write/hash.h"
#include "write/sha256.h"
#include "write/text_index.h"

using namespace nb::literals;

namespace penstock {
namespace {

nb::object as_hashes(std::vector<uint64_t>& values) {
  GrowableArray<uint64_t> out;
  if (!values.empty()) std::memcpy(out.room(values.size()), values.data(), values.size() * 8);
  out.advance(values.size());
  return as_array<uint64_t>(out);
}

nb::object hash_strings(nb::handle arena, nb::handle starts, nb::handle stops) {
  const Strings strings(arena, starts, stops);
  std::vector<uint64_t> hashes(strings.size());
  for (size_t i = 0; i < hashes.size(); i++) hashes[i] = hash_bytes(strings[i]);
  return as_hashes(hashes);
}

nb::object mix_rows(uint64_t seed, uint64_t first_row, size_t num_rows) {
  std::vector<uint64_t> keys(num_rows);
  const uint64_t key = key_of(seed);
  for (size_t i = 0; i < num_rows; i++) keys[i] = mix_keyed(key, first_row + i);
  return as_hashes(keys);
}

nb::object mix_hashes(uint64_t seed, nb::handle given) {
  const auto hashes = array_of<uint64_t>(given, "hashes");
  std::vector<uint64_t> keys(hashes.shape(0));
  const uint64_t key = key_of(seed);
  for (size_t i = 0; i < keys.size(); i++) keys[i] = mix_keyed(key, hashes.data()[i]);
  return as_hashes(keys);
}

// The arguments of one call as columns, with what keeps them alive.
struct Columns {
  std::vector<EncodeColumn> items;
  std::vector<nb::object> kept;

  Columns(const std::vector<EncodeField>& fields, nb::sequence given, size_t num_rows) {
    need(nb::len(given) == fields.size(), "expected one column per field");
    size_t i = 0;
    for (nb::handle each : given) items.push_back(column_of(fields[i++], tuple_of(each, 7, "a column"), num_rows));
  }

 private:
  // (values, starts, stops, row offsets, step offsets, count, present); what a field has no use for is None.
  EncodeColumn column_of(const EncodeField& field, nb::tuple parts, size_t rows) {
    EncodeColumn column;
    column.count = value_of<int64_t>(parts[5], "count");
    need(column.count >= 0, "a count is negative");
    column.present = data_or_null<bool>(parts[6], rows, kept, "present");
    if (field.source == Source::kDeferred) {
      column.hashes = data_or_null<uint64_t>(parts[0], rows, kept, "hashes");
      need(column.hashes != nullptr, "a deferred column has no hashes");
      column.content_digests = data_or_null<uint64_t>(parts[1], 2 * rows, kept, "digests");
      return column;
    }
    const int64_t num_values = take_values(field, parts, column);
    if (field.source == Source::kRaw) {
      check_fixed(num_values, column.count, rows);
    } else if (field.is_feature_list) {
      take_steps(parts, column, num_values, rows);
    } else {
      column.row_offsets = offsets_of(parts[3], rows, num_values, kept);
      if (column.row_offsets != nullptr) return column;
      check_fixed(num_values, column.count, rows);
      need(field.source != Source::kStrings || column.count == 1, "strings without offsets are not one for each row");
    }
    return column;
  }

  int64_t take_values(const EncodeField& field, nb::tuple parts, EncodeColumn& column) {
    kept.push_back(nb::borrow(parts[0]));
    if (field.source == Source::kInts) {
      const auto values = array_of<int64_t>(parts[0], "values of int64");
      column.ints = values.data();
      return static_cast<int64_t>(values.shape(0));
    }
    if (field.source == Source::kFloats) {
      const auto values = array_of<float>(parts[0], "values of float32");
      column.floats = values.data();
      return static_cast<int64_t>(values.shape(0));
    }
    const auto bytes = array_of<uint8_t>(parts[0], "values of uint8");
    column.bytes = bytes.data();
    if (field.source == Source::kRaw) {
      // Marked by the caller: one double per row is a number, and hashed as one.
      if (!parts[4].is_none()) {
        need(column.count == sizeof(double), "a column that is marked as doubles does not have eight bytes per row");
        need(is_aligned<double>(bytes.data()), "doubles do not lie at a multiple of eight");
        column.doubles = reinterpret_cast<const double*>(bytes.data());
      }
      return static_cast<int64_t>(bytes.shape(0));
    }
    const Strings strings(parts[0], parts[1], parts[2]);
    kept.push_back(nb::borrow(parts[1]));
    kept.push_back(nb::borrow(parts[2]));
    column.starts = strings.starts.data();
    column.stops = strings.stops.data();
    return static_cast<int64_t>(strings.size());
  }

  void take_steps(nb::tuple parts, EncodeColumn& column, int64_t num_values, size_t rows) {
    need(!parts[3].is_none(), "a feature list has no row offsets");
    int64_t num_steps;
    if (parts[4].is_none()) {
      column.step_count = column.count;
      num_steps = column.count == 0 ? 0 : num_values / column.count;
      if (column.count == 0) {
        // Steps of no values: any number of them.
        const auto rows_of = array_of<int64_t>(parts[3], "offsets");
        num_steps = rows_of.shape(0) == 0 ? 0 : rows_of.data()[rows_of.shape(0) - 1];
      }
    } else {
      const auto steps = array_of<int64_t>(parts[4], "step offsets");
      need(steps.shape(0) >= 1, "step offsets are empty");
      num_steps = static_cast<int64_t>(steps.shape(0)) - 1;
      column.step_offsets = offsets_of(parts[4], static_cast<size_t>(num_steps), num_values, kept);
    }
    column.row_offsets = offsets_of(parts[3], rows, num_steps, kept);
  }

  static void check_fixed(int64_t num_values, int64_t count, size_t rows) {
    const auto wanted = static_cast<unsigned __int128>(static_cast<uint64_t>(count)) * rows;
    need(wanted == static_cast<uint64_t>(num_values), "there are not `count` values for each row");
  }
};

// (key, source, whether it is a feature list)
EncodeField field_of(nb::handle given, bool sequence_example) {
  const nb::tuple parts = tuple_of(given, 3, "a field");
  const int source = value_of<int>(parts[1], "a source");
  need(source >= 0 && source <= static_cast<int>(Source::kDeferred), "a field has an impossible source");
  const bool in_lists = value_of<bool>(parts[2], "whether a field is a feature list");
  need(!in_lists || sequence_example, "only a SequenceExample has feature lists");
  need(!in_lists || source <= static_cast<int>(Source::kStrings), "a feature list holds numbers or strings");
  need(!sequence_example || source != static_cast<int>(Source::kDeferred), "a SequenceExample has no deferred fields");
  return EncodeField(value_of<std::string>(parts[0], "a key"), static_cast<Source>(source), in_lists);
}

nb::tuple encode(const Encoder& encoder, nb::sequence given, size_t num_rows) {
  const Columns columns(encoder.fields(), given, num_rows);
  GrowableArray<uint8_t> out;
  GrowableArray<int64_t> offsets;
  {
    nb::gil_scoped_release unlocked;
    offsets.push(0);
    encoder.encode(columns.items, static_cast<int64_t>(num_rows), out, offsets);
  }
  return nb::make_tuple(as_array<uint8_t>(out), as_array<int64_t>(offsets));
}

nb::object hash_rows(const Encoder& encoder, nb::sequence given, size_t num_rows, nb::sequence wanted, bool is_named) {
  const Columns columns(encoder.fields(), given, num_rows);
  std::vector<size_t> numbers;
  for (nb::handle each : wanted) {
    numbers.push_back(value_of<size_t>(each, "the number of a field"));
    need(numbers.back() < encoder.fields().size(), "there is no such field");
  }
  std::vector<uint64_t> sums(num_rows, 0);
  {
    nb::gil_scoped_release unlocked;
    for (size_t number : numbers) {
      encoder.add_hashes(number, columns.items[number], static_cast<int64_t>(num_rows), is_named, sums.data());
    }
  }
  return as_hashes(sums);
}

constexpr size_t kFingerprints = 4;

// The digest of a byte string, as bytes.
nb::bytes digest_of(nb::handle data) {
  const BytesView view(data);
  Digest digest;
  {
    nb::gil_scoped_release unlocked;
    digest = digest_bytes(view.span());
  }
  return nb::bytes(reinterpret_cast<const char*>(digest.words), kDigestBytes);
}

// The hash of each value, and its digest as two words.
nb::tuple fingerprint(nb::sequence given) {
  std::vector<std::unique_ptr<BytesView>> views;
  std::vector<Span> values;
  for (nb::handle each : given) {
    views.push_back(std::make_unique<BytesView>(each));
    values.push_back(views.back()->span());
  }
  GrowableArray<uint64_t> hashes, digests;
  auto* const hash_words = hashes.room(values.size());
  auto* const digest_words = digests.room(2 * values.size());
  {
    nb::gil_scoped_release unlocked;
    std::vector<Digest> found(kFingerprints);
    // A few at a time: hashed bytes are still in the cache when their digest is computed.
    for (size_t first = 0; first < values.size(); first += kFingerprints) {
      const size_t count = std::min(kFingerprints, values.size() - first);
      hash_values(values.data() + first, count, hash_words + first);
      digest_values(values.data() + first, count, found.data());
      std::memcpy(digest_words + 2 * first, found.data(), count * kDigestBytes);
    }
  }
  hashes.advance(values.size());
  digests.advance(2 * values.size());
  return nb::make_tuple(as_array<uint64_t>(hashes), as_array<uint64_t>(digests));
}

// The paths of files, each with a zero byte after it.
std::vector<std::string> paths_of(nb::bytes given) {
  std::vector<std::string> paths;
  const char* at = given.c_str();
  const char* const end = at + given.size();
  while (at != end) {
    const void* const zero = std::memchr(at, 0, static_cast<size_t>(end - at));
    need(zero != nullptr && zero != at, "expected paths, each with a zero byte after it");
    paths.emplace_back(at, static_cast<const char*>(zero));
    at = static_cast<const char*>(zero) + 1;
  }
  return paths;
}

// (sizes, or -1 for a file that is not checked; hashes; digests as two words each; formats; widths; heights)
nb::tuple finish_files(FileCheck& check) {
  {
    nb::gil_scoped_release unlocked;
    check.wait();
  }
  GrowableArray<int64_t> sizes, widths, heights;
  GrowableArray<uint64_t> hashes, digests;
  GrowableArray<int8_t> formats;
  for (const CheckedFile& file : check.files()) {
    sizes.push(file.size);
    hashes.push(file.hash);
    digests.push(file.digest.words[0]);
    digests.push(file.digest.words[1]);
    formats.push(static_cast<int8_t>(file.format));
    widths.push(file.width);
    heights.push(file.height);
  }
  return nb::make_tuple(as_array<int64_t>(sizes), as_array<uint64_t>(hashes), as_array<uint64_t>(digests),
                        as_array<int8_t>(formats), as_array<int64_t>(widths), as_array<int64_t>(heights));
}

// `wanted` has (number, whether its strings go in by their own digests) of each field.
nb::object digest_rows(const Encoder& encoder, nb::sequence given, size_t num_rows, nb::sequence wanted,
                       bool is_named) {
  const Columns columns(encoder.fields(), given, num_rows);
  std::vector<DigestField> fields;
  for (nb::handle each : wanted) {
    const nb::tuple parts = tuple_of(each, 2, "a field of a digest");
    const auto number = value_of<size_t>(parts[0], "the number of a field");
    need(number < encoder.fields().size(), "there is no such field");
    need(encoder.fields()[number].source != Source::kDeferred || columns.items[number].content_digests != nullptr,
         "a deferred column has no digests");
    fields.push_back({number, value_of<bool>(parts[1], "whether strings go in by their digests")});
  }
  GrowableArray<uint64_t> out;
  auto* const words = out.room(2 * num_rows);
  {
    nb::gil_scoped_release unlocked;
    std::sort(fields.begin(), fields.end(), [&](const DigestField& a, const DigestField& b) {
      return encoder.fields()[a.number].key < encoder.fields()[b.number].key;
    });
    std::vector<Digest> digests(num_rows);
    encoder.digest_rows(fields, columns.items, static_cast<int64_t>(num_rows), is_named, digests.data());
    if (num_rows != 0) std::memcpy(words, digests.data(), num_rows * kDigestBytes);
  }
  out.advance(2 * num_rows);
  return as_array<uint64_t>(out);
}

std::vector<Array<uint8_t>> arenas_of(nb::sequence given) {
  std::vector<Array<uint8_t>> arenas;
  for (nb::handle each : given) arenas.push_back(array_of<uint8_t>(each, "an arena"));
  return arenas;
}

std::vector<Span> spans_of(const std::vector<Array<uint8_t>>& blocks, const Array<uint32_t>& arena_of,
                           const Array<int64_t>& begins, const Array<int64_t>& sizes) {
  const size_t rows = begins.shape(0);
  need(arena_of.shape(0) == rows && sizes.shape(0) == rows, "arena_of, begins and sizes differ in length");
  std::vector<Span> spans(rows);
  for (size_t i = 0; i < rows; i++) {
    need(arena_of.data()[i] < blocks.size(), "there is no such arena");
    const Array<uint8_t>& block = blocks[arena_of.data()[i]];
    const int64_t begin = begins.data()[i], size = sizes.data()[i], end = static_cast<int64_t>(block.shape(0));
    need(0 <= begin && begin <= end && 0 <= size && size <= end - begin, "a string is not inside its arena");
    spans[i] = Span{block.data() + begin, static_cast<size_t>(size)};
  }
  return spans;
}

constexpr size_t kLargestFile = size_t{1} << 40;  // sizes of some can be added up without overflow

// A buffer, (path, size, digest) of a file, or None.
LateValue late_value(nb::handle given, std::vector<std::unique_ptr<BytesView>>& views) {
  if (given.is_none()) return {};
  if (nb::isinstance<nb::tuple>(given)) {
    const nb::tuple parts = tuple_of(given, 3, "a file");
    const auto bytes = value_of<nb::bytes>(parts[0], "the path of a file");
    std::string path(bytes.c_str(), bytes.size());
    need(!path.empty() && path.find('\0') == std::string::npos, "the path of a file is empty, or has a zero in it");
    const auto size = value_of<size_t>(parts[1], "the size of a file");
    need(size <= kLargestFile, "a file is larger than any record");
    const auto digest_bytes = value_of<nb::bytes>(parts[2], "the digest of a file");
    need(digest_bytes.size() == kDigestBytes, "a digest does not have 16 bytes");
    Digest digest;
    std::memcpy(digest.words, digest_bytes.c_str(), kDigestBytes);
    return LateValue::in_file(std::move(path), size, digest);
  }
  views.push_back(std::make_unique<BytesView>(given));
  return LateValue::in_memory(views.back()->span());
}

// What a reference of encode/deferred.py refers to. Numbers cross into Python: append, never renumber.
enum class Referred : uint8_t { kNothing = 0, kMemory = 1, kFile = 2, kStore = 3 };

// (the size of the value of each reference, what it refers to)
nb::tuple read_references(nb::sequence arenas, nb::handle arena_of, nb::handle begins, nb::handle sizes) {
  constexpr size_t kHeadBytes = sizeof(int64_t) + kDigestBytes;  // for a file, its path follows
  const auto blocks = arenas_of(arenas);
  const std::vector<Span> references = spans_of(blocks, array_of<uint32_t>(arena_of, "arena_of"),
                                                array_of<int64_t>(begins, "begins"), array_of<int64_t>(sizes, "sizes"));
  GrowableArray<int64_t> value_sizes;
  GrowableArray<uint8_t> kinds;
  for (const Span& each : references) {
    need(each.size == 0 || each.size >= kHeadBytes, "a reference is too short");
    value_sizes.push(each.size == 0 ? 0 : static_cast<int64_t>(load64(each.data)));
    Referred kind = each.size == 0 ? Referred::kNothing : Referred::kMemory;
    if (each.size > kHeadBytes) kind = each.data[kHeadBytes] == '/' ? Referred::kFile : Referred::kStore;
    kinds.push(static_cast<uint8_t>(kind));
  }
  return nb::make_tuple(as_array<int64_t>(value_sizes), as_array<uint8_t>(kinds));
}

// Bodies by (arenas, which arena, begins, sizes); late fields as (key, a value for each row).
nb::tuple compose(nb::sequence arenas, nb::handle arena_of, nb::handle begins, nb::handle sizes, nb::sequence late,
                  bool is_message) {
  const auto blocks = arenas_of(arenas);
  const auto numbers = array_of<uint32_t>(arena_of, "arena_of");
  const auto firsts = array_of<int64_t>(begins, "begins");
  const auto lengths = array_of<int64_t>(sizes, "sizes");
  const std::vector<Span> bodies = spans_of(blocks, numbers, firsts, lengths);
  need(!is_message || nb::len(late) == 0, "a body that is a whole message takes no late fields");
  const size_t rows = bodies.size();
  std::vector<LateField> fields;
  std::vector<std::unique_ptr<BytesView>> views;
  for (nb::handle each : late) {
    const nb::tuple parts = tuple_of(each, 2, "a late field");
    fields.push_back({EncodeField(value_of<std::string>(parts[0], "a key"), Source::kStrings, false), {}});
    for (nb::handle value : value_of<nb::sequence>(parts[1], "the values of a late field")) {
      fields.back().values.push_back(late_value(value, views));
    }
    need(fields.back().values.size() == rows, "a late field does not have one value per row");
  }
  GrowableArray<uint8_t> out;
  GrowableArray<int64_t> frame_sizes;
  std::vector<LateFault> faults;
  {
    nb::gil_scoped_release unlocked;
    faults = compose_frames(bodies, fields, is_message, out, frame_sizes);
  }
  nb::list fault_list;
  for (const LateFault& fault : faults) fault_list.append(nb::make_tuple(fault.row, fault.field, fault.error));
  return nb::make_tuple(as_array<uint8_t>(out), as_array<int64_t>(frame_sizes), fault_list);
}

// (the lines of frames of these sizes, the end of the last frame)
nb::tuple text_index(nb::handle given, uint64_t offset) {
  const auto sizes = array_of<int64_t>(given, "sizes");
  for (size_t i = 0; i < sizes.shape(0); i++) need(sizes.data()[i] >= 0, "a size is negative");
  GrowableArray<uint8_t> out;
  uint64_t end;
  {
    nb::gil_scoped_release unlocked;
    end = write_text_index(sizes.data(), sizes.shape(0), offset, out);
  }
  return nb::make_tuple(as_array<uint8_t>(out), end);
}

void add_to_hash(Sha256& hash, nb::handle data) {
  const BytesView view(data);
  nb::gil_scoped_release unlocked;
  hash.add(view.span());
}

// Adds to two different hashes at once.
void add_to_two(Sha256& one, nb::handle data, Sha256& other, nb::handle other_data) {
  need(&one != &other, "expected two different hashes");
  const BytesView view(data), other_view(other_data);
  nb::gil_scoped_release unlocked;
  Sha256::add_two(one, view.span(), other, other_view.span());
}

nb::bytes digest_of_hash(const Sha256& hash) {
  uint8_t out[Sha256::kDigestBytes];
  hash.digest(out);
  return nb::bytes(reinterpret_cast<const char*>(out), sizeof out);
}

// Byte strings from any arenas, concatenated.
nb::object gather(nb::sequence arenas, nb::handle arena_of, nb::handle begins, nb::handle sizes) {
  const auto blocks = arenas_of(arenas);
  const auto numbers = array_of<uint32_t>(arena_of, "arena_of");
  const auto firsts = array_of<int64_t>(begins, "begins");
  const auto lengths = array_of<int64_t>(sizes, "sizes");
  const std::vector<Span> strings = spans_of(blocks, numbers, firsts, lengths);
  GrowableArray<uint8_t> out;
  {
    nb::gil_scoped_release unlocked;
    size_t total = 0;
    for (const Span& each : strings) total += each.size;
    uint8_t* at = out.room(total);
    for (const Span& each : strings) {
      if (each.size != 0) std::memcpy(at, each.data, each.size);
      at += each.size;
    }
    out.advance(total);
  }
  return as_array<uint8_t>(out);
}

}  // namespace

void bind_writing(nb::module_& m) {
  m.def("hash_bytes", [](nb::object data) { return hash_bytes(BytesView(data).span()); }, "data"_a);
  m.def("digest_bytes", &digest_of, "data"_a);
  m.def("fingerprint", &fingerprint, "values"_a);
  m.def("hash_strings", &hash_strings, "arena"_a, "starts"_a, "stops"_a);
  m.def("mix_rows", &mix_rows, "seed"_a, "first_row"_a, "num_rows"_a);
  m.def("mix_hashes", &mix_hashes, "seed"_a, "hashes"_a);
  m.def("gather", &gather, "arenas"_a, "arena_of"_a, "begins"_a, "sizes"_a);
  m.def("compose", &compose, "arenas"_a, "arena_of"_a, "begins"_a, "sizes"_a, "late"_a, "is_message"_a);

  m.def("read_references", &read_references, "arenas"_a, "arena_of"_a, "begins"_a, "sizes"_a);
  nb::class_<FileCheck>(m, "FileCheck")
      .def(
          "__init__",
          [](FileCheck* self, nb::bytes paths, bool reads_headers) {
            new (self) FileCheck(paths_of(paths), reads_headers);
          },
          "paths"_a, "reads_headers"_a)
      .def("run", &FileCheck::run, nb::call_guard<nb::gil_scoped_release>())
      .def("finish", &finish_files);

  m.def("text_index", &text_index, "sizes"_a, "offset"_a);
  m.def("has_sha256_instructions", &has_sha256_instructions);
  nb::class_<Sha256>(m, "Sha256")
      .def(nb::init<>())
      .def("update", &add_to_hash, "data"_a)
      .def("update_with", &add_to_two, "data"_a, "other"_a, "other_data"_a)
      .def("digest", &digest_of_hash);

  nb::class_<Encoder>(m, "Encoder")
      .def(
          "__init__",
          [](Encoder* self, nb::sequence fields, bool sequence_example) {
            std::vector<EncodeField> specs;
            for (nb::handle field : fields) specs.push_back(field_of(field, sequence_example));
            new (self) Encoder(std::move(specs), sequence_example);
          },
          "fields"_a, "sequence_example"_a)
      .def("encode", &encode, "columns"_a, "num_rows"_a)
      .def("hash_rows", &hash_rows, "columns"_a, "num_rows"_a, "fields"_a, "is_named"_a)
      .def("digest_rows", &digest_rows, "columns"_a, "num_rows"_a, "fields"_a, "is_named"_a);
}

}  // namespace penstock
