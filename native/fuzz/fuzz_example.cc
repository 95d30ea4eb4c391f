// Decoding by a plan, on any payloads in blocks of any size: every row is what the general parser finds in its record
// alone, whatever its neighbours are and whatever the key tables have learnt.
#include <algorithm>
#include <vector>

#include "decode/column.h"
#include "decode/decode.h"
#include "decode/structure.h"
#include "decode/survey.h"
#include "expected.h"
#include "input.h"
#include "record/frame.h"
#include "require.h"
#include "rows.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<uint8_t>;

// Around the lengths at which an entry stops to have a prefix that is compared whole: 22 wanted, 26 learnt.
const std::string kKeys[] = {"",
                             "a",
                             "b",
                             "key",
                             std::string(22, 'k'),
                             std::string(23, 'k'),
                             std::string(26, 'k'),
                             std::string(27, 'k'),
                             "0123456789abcdef0123456789abcdefXYZ"};

FieldSpec spec_of(const std::string& key, Kind kind, Layout layout, int64_t count, uint8_t choices) {
  FieldSpec spec;
  spec.key = key;
  spec.kind = kind;
  spec.layout = layout;
  spec.count = count;
  spec.required = choices & 1;
  if (spec.required || !(choices & 2)) return spec;
  int64_t num_values = layout == Layout::kRaw || count < 0 ? 1 : count;
  if (layout == Layout::kSteps) {
    spec.default_steps = {count < 0 ? size_t{0} : static_cast<size_t>(count), static_cast<size_t>(num_values)};
    num_values = static_cast<int64_t>(spec.default_steps[0] + spec.default_steps[1]);
  }
  for (int64_t i = 0; i < num_values; i++) {
    if (kind == Kind::kInt64) spec.default_ints.push_back(7 + i);
    else if (kind == Kind::kFloat) spec.default_floats.push_back(0.5f);
    else spec.default_strings.push_back(layout == Layout::kRaw ? std::string(static_cast<size_t>(count), 'd') : "dd");
  }
  return spec;
}

// A plan that wants some of the keys, each in some layout. Context and feature lists have separate keys.
std::vector<FieldSpec> choose_plan(Input& in) {
  std::vector<FieldSpec> specs;
  for (const std::string& key : kKeys) {
    const uint8_t choices = in.byte();
    const auto number = choices & 4 ? Kind::kInt64 : Kind::kFloat;
    const auto kind = choices & 8 ? Kind::kBytes : number;
    switch (choices >> 4 & 7) {
      case 0:
        break;
      case 1:
        specs.push_back(spec_of(key, number, Layout::kScalar, 1, choices));
        break;
      case 2:
        specs.push_back(spec_of(key, number, Layout::kFixed, 3, choices));
        break;
      case 3:
        specs.push_back(spec_of(key, number, Layout::kList, -1, choices));
        break;
      case 4:
        specs.push_back(spec_of(key, Kind::kBytes, Layout::kString, 1, choices));
        break;
      case 5:
        specs.push_back(spec_of(key, Kind::kBytes, Layout::kStrings, -1, choices));
        break;
      case 6:
        specs.push_back(spec_of(key, Kind::kBytes, Layout::kRaw, 4, choices));
        break;
      default:
        specs.push_back(spec_of(key, kind, Layout::kSteps, choices & 1 ? 2 : -1, choices & 2 ? 1 : choices >> 6 & 2));
    }
  }
  return specs;
}

// The first fault of each row.
std::vector<Status> statuses_of(const Decoded& decoded) {
  std::vector<Status> statuses(static_cast<size_t>(decoded.num_rows), Status::kOk);
  for (const RowFault& item : decoded.faults) {
    REQUIRE(0 <= item.row && item.row < decoded.num_rows && item.fault);
    Status& status = statuses[static_cast<size_t>(item.row)];
    if (status == Status::kOk) status = item.fault.status;
  }
  return statuses;
}

bool is_malformed(Status status) { return status >= Status::kVarintTooLong && status < Status::kVarintOverflow; }

// What a record holds for every field of the plan; nothing, if it is bad.
struct ExpectedRecord {
  bool is_sound;
  std::vector<Expected> fields;
};

ExpectedRecord expect_record(const Plan& plan, Span payload) {
  ExpectedRecord out{check_maps(payload, plan.has_lists, plan.strict) == Status::kOk, {}};
  for (size_t i = 0; i < plan.fields.size() && out.is_sound; i++) {
    out.fields.push_back(expect(payload, plan.fields[i], plan.strict));
    out.is_sound = out.fields.back().status == Status::kOk;
  }
  return out;
}

// A record that decoding finds malformed does not pass the full check either.
void require_survey_refuses(Span payload, bool has_lists) {
  Bytes padded(payload.begin(), payload.end());
  padded.resize(payload.size + kReadablePadding, 0xff);
  Survey survey;
  const Survey::Result result = survey.add(Span{padded.data(), payload.size});
  REQUIRE(result.status != Status::kOk || (has_lists && result.list_status != Status::kOk));
}

void check_row(const Plan& plan, Decoded& decoded, int64_t row, Status status, const ExpectedRecord& expected) {
  REQUIRE(expected.is_sound == (status == Status::kOk));
  for (size_t i = 0; i < plan.fields.size() && expected.is_sound; i++) {
    Column& column = decoded.columns[i];
    REQUIRE(row_of(plan.fields[i], column, decoded.kept, row) == expected.fields[i].row);
    if (column.present != nullptr) REQUIRE(column.present[row] == expected.fields[i].present);
  }
}

// A payload of the input's bytes; a large one begins with a string that is shown where it lies rather than copied.
Bytes build_payload(Input& in, bool is_large) {
  Bytes payload;
  if (is_large) {
    payload = {0x0a, 0x97, 0x20, 0x0a, 0x94, 0x20, 0x0a, 3,    'k',  'e',
               'y',  0x12, 0x8c, 0x20, 0x0a, 0x89, 0x20, 0x0a, 0x86, 0x20};
    payload.resize(payload.size() + 0x1006, 'x');
  }
  const Span own = in.take(in.number() % 1024);
  payload.insert(payload.end(), own.begin(), own.end());
  return payload;
}

void append_frame(Bytes& file, Span payload) {
  const size_t begin = file.size();
  file.resize(begin + kFrameBytes + payload.size);
  uint8_t* const frame = file.data() + begin;
  const uint64_t length = payload.size;
  std::memcpy(frame, &length, 8);
  const uint32_t header_crc = masked_crc32c(frame, 8);
  std::memcpy(frame + 8, &header_crc, 4);
  std::copy(payload.begin(), payload.end(), frame + kHeaderBytes);
  const uint32_t payload_crc = masked_crc32c(frame + kHeaderBytes, payload.size);
  std::memcpy(frame + kHeaderBytes + payload.size, &payload_crc, 4);
}

// Reads a block whose memory ends with the padding of its last record, so that a load too far is seen.
void read_tightly(const Plan& plan, const std::vector<Span>& payloads) {
  Structure structure(plan);
  const size_t count = std::min<size_t>(payloads.size(), kBlockRows);
  Bytes block(kHeaderBytes);
  for (size_t i = 0; i < count; i++) block.insert(block.end(), payloads[i].begin(), payloads[i].end());
  block.resize(block.size() + kReadablePadding, 0xff);
  block.shrink_to_fit();
  structure.begin(block.data());
  bool bad[kBlockRows] = {};
  size_t at = kHeaderBytes;
  for (size_t i = 0; i < count; i++) {
    const int row = static_cast<int>(i);
    bad[row] = structure.add(row, Span{block.data() + at, payloads[i].size}) != Status::kOk;
    if (bad[row]) structure.drop(row);
    at += payloads[i].size;
  }
  std::vector<RowFault> faults;
  for (size_t i = 0; i < plan.fields.size(); i++) {
    Column column(plan.fields[i], static_cast<int32_t>(i), plan.strict, static_cast<int64_t>(count));
    std::vector<int64_t> numbers(count), offsets(count + 1);
    Bytes present(count);
    column.fixed = numbers.data();
    if (plan.fields[i].layout != Layout::kScalar) column.row_offsets = offsets.data();
    if (!plan.fields[i].required) column.present = present.data();
    column.read(structure, static_cast<int>(count), 0, bad, faults);
  }
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  using namespace penstock::fuzz;
  Input in(data, size);
  const uint8_t choices = in.byte();
  const Decoder decoder(choose_plan(in), choices & 1);
  std::vector<Bytes> contents;
  while (!in.empty()) contents.push_back(build_payload(in, choices & 4));
  const size_t num_different = contents.size();
  const bool fills_block = choices & 2 && num_different != 0;
  const size_t num_rows = fills_block ? std::max<size_t>(num_different, kBlockRows + 3) : num_different;
  Bytes file;
  std::vector<Span> payloads;
  std::vector<uint64_t> begins, sizes;
  for (size_t row = 0; row < num_rows; row++) {
    const Bytes& content = contents[row % num_different];
    payloads.push_back(Span{content.data(), content.size()});
    begins.push_back(file.size());
    append_frame(file, payloads.back());
    sizes.push_back(file.size() - begins.back());
  }
  const Segment segment{{FrameSource{-1, nullptr, Span{file.data(), file.size()}, 0}},
                        nullptr,
                        begins.data(),
                        sizes.data(),
                        static_cast<int64_t>(num_rows)};
  const Plan& plan = decoder.plan();
  std::vector<ExpectedRecord> expected;
  for (size_t i = 0; i < num_different; i++) expected.push_back(expect_record(plan, payloads[i]));
  // The second time the unwanted keys have been learnt.
  for (int pass = 0; pass < 2; pass++) {
    Decoded decoded = decoder.decode({segment});
    const std::vector<Status> statuses = statuses_of(decoded);
    for (size_t row = 0; row < num_rows; row++) {
      check_row(plan, decoded, static_cast<int64_t>(row), statuses[row], expected[row % num_different]);
      if (pass == 0 && row < num_different && is_malformed(statuses[row])) {
        require_survey_refuses(payloads[row], plan.has_lists);
      }
    }
  }
  read_tightly(plan, payloads);
  return 0;
}
