// Encoding, on any columns: the frames pass the full check of a file, and decode to the encoded values, in
// whatever order the rows are taken and from however many arenas. Hashes of rows do not depend on the order of fields.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "decode/decode.h"
#include "input.h"
#include "material.h"
#include "record/check.h"
#include "require.h"
#include "write/compose.h"
#include "write/encode.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

// Around the lengths at which an entry stops to have a prefix that is written whole (38), and a key to have a length of
// one byte; and the layouts of fuzz_example.cc.
const std::string kKeys[] = {"",
                             "a",
                             "key",
                             std::string(22, 'k'),
                             std::string(26, 'k'),
                             std::string(27, 'k'),
                             std::string(38, 'k'),
                             std::string(39, 'k'),
                             std::string(118, 'k'),
                             std::string(128, 'k'),
                             "n\xc3\xa4me"};

std::vector<Material> choose_fields(Input& in, bool sequence_example, int64_t num_rows) {
  std::vector<Material> fields;
  for (const std::string& key : kKeys) {
    if (in.byte() & 1) fields.emplace_back(in, key, sequence_example, num_rows);
  }
  return fields;
}

std::vector<EncodeColumn> columns_of(const std::vector<Material>& fields) {
  std::vector<EncodeColumn> columns;
  for (const Material& field : fields) columns.push_back(field.column());
  return columns;
}

Encoder encoder_of(const std::vector<Material>& fields, bool sequence_example) {
  std::vector<EncodeField> specs;
  for (const Material& field : fields) specs.push_back(field.field());
  return Encoder(std::move(specs), sequence_example);
}

// An order of rows that the input says.
std::vector<int64_t> shuffle(Input& in, int64_t num_rows) {
  std::vector<int64_t> order(static_cast<size_t>(num_rows));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[in.byte() % i]);
  return order;
}

void check_hashes(const std::vector<Material>& fields, const Encoder& encoder, int64_t num_rows) {
  const std::vector<EncodeColumn> columns = columns_of(fields);
  std::vector<uint64_t> forth(static_cast<size_t>(num_rows)), back(forth);
  for (size_t i = 0; i < fields.size(); i++) {
    encoder.add_hashes(i, columns[i], num_rows, true, forth.data());
    const size_t other = fields.size() - 1 - i;
    encoder.add_hashes(other, columns[other], num_rows, true, back.data());
  }
  REQUIRE(forth == back);
  // Rows with different hashes hold different values, so their digests differ too. Equal hashes may be a collision.
  std::vector<DigestField> wanted;
  for (size_t i = 0; i < fields.size(); i++) wanted.push_back({i, false});
  std::vector<Digest> digests(static_cast<size_t>(num_rows));
  encoder.digest_rows(wanted, columns, num_rows, true, digests.data());
  for (size_t i = 1; i < digests.size(); i++) REQUIRE(forth[i] == forth[i - 1] || digests[i] != digests[i - 1]);
}

void check_frames(GrowableArray<uint8_t>& frames, size_t num_rows, bool sequence_example) {
  Survey survey;
  CheckVisitor visitor(&survey);
  ScanOptions options;
  options.with_payloads = true;
  options.file_bytes = frames.size();
  FrameScanner scanner(options, visitor);
  if (frames.size() != 0) scanner.feed(Span{frames.data(), frames.size()});
  scanner.finish();
  REQUIRE(visitor.damages.empty());
  REQUIRE(visitor.unparsable.empty());
  REQUIRE(static_cast<size_t>(scanner.num_records()) == num_rows);
  REQUIRE(sequence_example || survey.with_lists == 0);
}

void check_values(const std::vector<Material>& fields, GrowableArray<uint8_t>& frames,
                  GrowableArray<int64_t>& frame_sizes, const std::vector<int64_t>& order) {
  std::vector<FieldSpec> specs;
  for (const Material& field : fields) specs.push_back(field.spec());
  const Decoder decoder(std::move(specs), true);
  std::vector<uint64_t> begins, sizes;
  uint64_t at = 0;
  for (size_t row = 0; row < order.size(); row++) {
    begins.push_back(at);
    sizes.push_back(static_cast<uint64_t>(frame_sizes.data()[row]));
    at += sizes.back();
  }
  REQUIRE(at == frames.size());
  const Bytes file(frames.data(), frames.data() + frames.size());
  const Segment segment{{FrameSource{-1, nullptr, Span{file.data(), file.size()}, 0}},
                        nullptr,
                        begins.data(),
                        sizes.data(),
                        static_cast<int64_t>(order.size())};
  Decoded decoded = decoder.decode({segment});
  REQUIRE(decoded.faults.empty());
  for (size_t i = 0; i < fields.size(); i++) {
    Column& column = decoded.columns[i];
    for (size_t row = 0; row < order.size(); row++) {
      const bool is_there = fields[i].has(order[row]);
      if (column.present != nullptr) REQUIRE(column.present[row] == is_there);
      if (!is_there) continue;
      REQUIRE(row_of(fields[i].spec(), column, decoded.kept, static_cast<int64_t>(row)) == fields[i].row(order[row]));
    }
  }
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  using namespace penstock::fuzz;
  Input in(data, size);
  const uint8_t choices = in.byte();
  const bool sequence_example = choices & 1;
  const int64_t num_rows = choices & 2 ? 64 + choices % 16 : choices >> 5;
  const std::vector<Material> fields = choose_fields(in, sequence_example, num_rows);
  const Encoder encoder = encoder_of(fields, sequence_example);
  GrowableArray<uint8_t> out;
  GrowableArray<int64_t> ends;
  ends.push(0);
  encoder.encode(columns_of(fields), num_rows, out, ends);
  REQUIRE(ends.size() == static_cast<size_t>(num_rows) + 1);
  check_hashes(fields, encoder, num_rows);

  // Every body in an arena of exactly its size, so that a copy of too much is seen.
  std::vector<Bytes> arenas;
  for (size_t row = 0; row < static_cast<size_t>(num_rows); row++) {
    REQUIRE(ends.data()[row] <= ends.data()[row + 1]);
    arenas.emplace_back(out.data() + ends.data()[row], out.data() + ends.data()[row + 1]);
  }
  REQUIRE(static_cast<size_t>(ends.data()[num_rows]) == out.size());
  const std::vector<int64_t> order = shuffle(in, num_rows);
  std::vector<Span> bodies;
  for (int64_t row : order) {
    const Bytes& arena = arenas[static_cast<size_t>(row)];
    bodies.push_back(Span{arena.data(), arena.size()});
  }
  std::vector<LateField> late;
  for (const Material& field : fields) {
    if (!field.is_late()) continue;
    late.push_back(LateField{EncodeField(field.spec().key, Source::kStrings, false), {}});
    for (int64_t row : order) late.back().values.push_back(field.late_value(row));
  }
  GrowableArray<uint8_t> frames;
  GrowableArray<int64_t> frame_sizes;
  REQUIRE(compose_frames(bodies, late, sequence_example, frames, frame_sizes).empty());
  REQUIRE(frame_sizes.size() == bodies.size());
  check_frames(frames, bodies.size(), sequence_example);
  check_values(fields, frames, frame_sizes, order);
  return 0;
}
