// Digests of what the core computes of fixed inputs: one line for each part, the same on every processor. Built for
// this machine, with its vector code, and for ARM64, whose lines are compared with those.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "../fuzz/require.h"
#include "../fuzz/seeds.h"
#include "batch/scale.h"
#include "decode/packed_varints.h"
#include "image/adler32.h"
#include "image/augment.h"
#include "image/colour.h"
#include "image/crc32.h"
#include "image/frame.h"
#include "image/inflate.h"
#include "image/pixels.h"
#include "image/png.h"
#include "image/png_chunks.h"
#include "image/png_filters.h"
#include "image/resize.h"
#include "order/permutation.h"
#include "order/random.h"
#include "record/crc32c.h"
#include "text/tokens.h"
#include "write/digest.h"
#include "write/digest_lanes.h"
#include "write/elements.h"
#include "write/hash.h"
#include "write/moments.h"
#include "write/sha256.h"

namespace penstock {
namespace {

using Bytes = std::vector<uint8_t>;

// Plain arithmetic, so that neither the digested values nor the digest depend on the code under test.
class Chance {
 public:
  uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 11;
  }
  uint64_t below(uint64_t bound) { return next() % bound; }
  Bytes bytes(size_t size) {
    Bytes out(size);
    for (uint8_t& each : out) each = static_cast<uint8_t>(next());
    return out;
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15u;
};

class Line {
 public:
  explicit Line(const char* name) : name_(name) {}
  ~Line() { std::printf("%-12s %016llx %zu\n", name_, static_cast<unsigned long long>(state_), count_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void add(const void* data, size_t size) {
    for (size_t i = 0; i < size; i++) state_ = (state_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
    count_ += size;
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.data(), values.size() * sizeof(T));
  }
  template <typename T>
  void add_value(const T& value) {
    add(&value, sizeof value);
  }

 private:
  const char* name_;
  uint64_t state_ = 0xcbf29ce484222325u;
  size_t count_ = 0;
};

Span span_of(const Bytes& bytes) { return Span{bytes.data(), bytes.size()}; }

// Every size to 300, and some above the stretches that are computed in parallel.
std::vector<size_t> list_sizes() {
  std::vector<size_t> sizes;
  for (size_t i = 0; i <= 300; i++) sizes.push_back(i);
  for (const size_t size : {383, 384, 385, 1000, 4095, 4096, 4097, 6143, 6144, 6151, 70001}) sizes.push_back(size);
  return sizes;
}

void digest_checksums() {
  Line castagnoli("crc32c"), plain("crc32"), adler("adler32");
  Chance chance;
  for (const size_t size : list_sizes()) {
    const Bytes bytes = chance.bytes(size + 3);
    for (size_t from = 0; from < 3; from++) {  // not aligned
      const uint8_t* const data = bytes.data() + from;
      REQUIRE(crc32c(data, size) == crc32c_by_table(data, size));
      REQUIRE(crc32(data, size) == crc32_by_table(data, size));
      castagnoli.add_value(crc32c(data, size));
      plain.add_value(crc32(data, size));
      adler.add_value(adler32(data, size));
    }
  }
}

void digest_hashes() {
  Line hash("hash"), blake("blake2b"), lanes("lanes"), sha("sha256");
  Chance chance;
  std::vector<Bytes> values;
  for (const size_t size : list_sizes()) values.push_back(chance.bytes(size));
  std::vector<Span> spans;
  for (const Bytes& each : values) spans.push_back(span_of(each));
  std::vector<uint64_t> hashes(spans.size());
  std::vector<Digest> digests(spans.size()), alone(spans.size());
  hash_values(spans.data(), spans.size(), hashes.data());
  hash.add(hashes);
  for (size_t i = 0; i < spans.size(); i++) {
    REQUIRE(hash_bytes(spans[i]) == hashes[i]);
    alone[i] = digest_bytes(spans[i]);
  }
  blake.add(alone);
  digest_values(spans.data(), spans.size(), digests.data());
  REQUIRE(digests == alone);
  digest_messages(spans.data(), spans.size(), digests.data());
  lanes.add(digests);
  Sha256 one, other;
  for (size_t i = 1; i < spans.size(); i++) {
    Sha256::add_two(one, spans[i - 1], other, spans[i]);
    uint8_t out[2 * Sha256::kDigestBytes];
    one.digest(out);
    other.digest(out + Sha256::kDigestBytes);
    sha.add(out, sizeof out);
  }
}

void digest_orders() {
  Line order("permutation"), words("philox"), uniform("uniform");
  for (const uint64_t size : {1ull, 7ull, 64ull, 65ull, 1000ull, 1048577ull, 1ull << 40, 3ull << 60}) {
    const Permutation permutation(7, 3, 1, size);
    const size_t count = static_cast<size_t>(std::min<uint64_t>(size, 1000));
    std::vector<int64_t> positions(count), found(count), back(count);
    for (size_t i = 0; i < count; i++) positions[i] = static_cast<int64_t>(size / count * i);
    permutation.apply(positions.data(), count, found.data());
    permutation.invert(found.data(), count, back.data());
    REQUIRE(back == positions);
    order.add(found);
  }
  std::vector<int64_t> records(100);
  for (size_t i = 0; i < records.size(); i++) records[i] = static_cast<int64_t>(i * i * 1000003);
  std::vector<uint32_t> drawn(records.size() * 21);
  draw_words(99, 5, 3, records.data(), records.size(), 21, drawn.data());
  words.add(drawn);
  const DrawKeys keys{99, 5, records.data()};
  std::vector<double> numbers(17);
  for (size_t row = 0; row < records.size(); row++) {
    keys.draw_uniform(4, row, numbers.size(), numbers.data());
    uniform.add(numbers);
  }
}

void digest_varints() {
  Line line("varints");
  Chance chance;
  for (size_t round = 0; round < 400; round++) {
    Bytes packed;
    for (size_t i = chance.below(80); i > 0; i--) {
      uint64_t value = chance.next() * chance.next() >> chance.below(64);
      for (; value >= 0x80; value >>= 7) packed.push_back(static_cast<uint8_t>(value | 0x80));
      packed.push_back(static_cast<uint8_t>(value));
    }
    if (round % 7 == 0 && !packed.empty()) packed.back() |= 0x80;  // cut off
    const size_t size = packed.size();
    packed.resize(size + kReadablePadding, 0xff);
    std::vector<int64_t> out(size);
    size_t count = 0;
    const Status status = unpack_varints(Span{packed.data(), size}, round % 2 == 0, out.data(), count);
    line.add_value(status);
    out.resize(status == Status::kOk ? count : 0);
    line.add(out);
  }
}

void digest_pixels() {
  Line resized("resize"), flipped("flip"), means("means"), colours("colours"), floats("floats"), augmented("augment");
  Chance chance;
  for (const size_t channels : {1, 3, 4}) {
    for (const bool antialias : {false, true}) {
      for (const size_t side : {1, 5, 16, 33, 64, 200}) {
        const Bytes from = chance.bytes(61 * 83 * channels + 256);
        const Rows<const uint8_t> source{from.data(), static_cast<ptrdiff_t>(83 * channels), 61, 83};
        Bytes out(side * (side + 3) * channels), plain(out.size());
        const auto stride = static_cast<ptrdiff_t>((side + 3) * channels);
        const Box box{0.25, 1.5, 59.0, 80.75};
        resize_pixels(source, {out.data(), stride, side, side + 3}, channels, box, antialias, false);
        resize_pixels(source, {plain.data(), stride, side, side + 3}, channels, box, antialias, true);
        REQUIRE(out == plain);
        resized.add(out);
      }
    }
    Bytes pixels = chance.bytes(4 * 19 * 37 * channels);
    const Images images{pixels.data(), 4, 19, 37, channels};
    const uint8_t across[] = {1, 0, 1, 0}, down[] = {0, 1, 1, 0};
    flip_images(images, across, down, false);
    flipped.add(pixels);
    std::vector<double> mean(4 * channels);
    mean_channels(images, false, mean.data());
    means.add(mean);
    const size_t k = channels == 1 ? 1 : 3;
    std::vector<float> matrices(4 * k * (k + 1));
    for (float& each : matrices) each = static_cast<float>(chance.below(4000)) / 1500 - 1;
    recolour_images(images, matrices.data(), false);
    colours.add(pixels);
    const float factor[] = {0.0173f, 0.0175f, 0.0174f, 1}, offset[] = {-2.1f, -2.03f, -1.8f, 0};
    std::vector<float> scaled(pixels.size());
    scale_bytes(pixels.data(), pixels.size() / channels, channels, factor, offset, false, scaled.data());
    floats.add(scaled);
    const Changes changes{0.1, 0.5, 0.5, 0.2, 0.3, 0.3, 0.25, {7, 8, 9, 255}};
    const ChangePurposes purposes{1, 2, 3, 4, 5, 6};
    const int64_t records[] = {0, 1, 77, 1 << 20};
    Augmenter(changes, purposes, DrawKeys{3, 1, records}).augment(images, false);
    augmented.add(pixels);
  }
}

void digest_crops() {
  Line line("crops");
  const int64_t records[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const RandomCrop crops(0.08, 1.0, 0.75, 4.0 / 3.0);
  for (size_t row = 0; row < 8; row++) {
    double numbers[RandomCrop::kNumNumbers];
    DrawKeys{5, 2, records}.draw_uniform(9, row, RandomCrop::kNumNumbers, numbers);
    line.add_value(crops.crop({480, 640 + row}, numbers));
  }
}

void digest_png() {
  Line inflated("inflate"), decoded("png"), filters("filters");
  Chance chance;
  for (Bytes seed : fuzz::make_seeds()) {
    for (int round = 0; round < 40; round++) {
      const Span file = span_of(seed);
      PngLayout layout;
      std::string fault = read_layout(file, 1 << 16, layout);
      if (fault.empty()) fault = check_stream(layout);
      for (const unsigned channels : {1u, 3u, 4u}) {
        if (!fault.empty()) break;
        Bytes out(static_cast<size_t>(layout.width) * layout.height * channels);
        const std::string wrong =
            read_pixels(layout, channels, out.data(), static_cast<ptrdiff_t>(layout.width * channels));
        decoded.add(wrong.data(), wrong.size());
        if (wrong.empty()) decoded.add(out);
      }
      decoded.add(fault.data(), fault.size());
      for (const size_t size : {58, 400, 629, 986}) {
        Bytes out(size + kInflateSlack);
        const InflateFault code = inflate_zlib(file, out.data(), size, out.size());
        inflated.add_value(code);
        if (code == InflateFault::kNone) inflated.add(out.data(), size);
      }
      if (!seed.empty()) seed[chance.below(seed.size())] ^= static_cast<uint8_t>(1 << chance.below(8));
    }
  }
  for (uint8_t filter = 0; filter < kNumFilters; filter++) {
    for (size_t pixel = 1; pixel <= 8; pixel++) {
      const size_t size = pixel * 41;
      const Bytes raw = chance.bytes(size), above = chance.bytes(size);
      Bytes out(size), plain(size);
      unfilter(filter, raw.data(), above.data(), out.data(), size, pixel);
      unfilter_by_byte(filter, raw.data(), above.data(), plain.data(), size, pixel);
      REQUIRE(out == plain);
      filters.add(out);
    }
  }
}

template <typename T>
void digest_numbers(const char* moments_name, const char* elements_name) {
  Line moments(moments_name), elements(elements_name);
  Chance chance;
  for (const size_t count : {0, 1, 2, 3, 7, 8, 31, 100, 1000, 40000}) {
    std::vector<T> values(count * 3);
    for (T& each : values) each = static_cast<T>(static_cast<double>(chance.below(1u << 30)) / 1024 - 300000);
    const Moments<T> all = measure_numbers(values.data(), nullptr, values.size());
    moments.add_value(all.least);
    moments.add_value(all.greatest);
    moments.add_value(all.mean);
    moments.add_value(all.squares);
    const ElementMoments<T> each = measure_elements(values.data(), count, 3, nullptr);
    elements.add(each.counts);
    elements.add(each.means);
    elements.add(each.squares);
  }
}

void digest_scales() {
  Line line("scale"), logs("log");
  Chance chance;
  std::vector<float> values(3000), out(3000);
  for (float& each : values) each = static_cast<float>(chance.below(1u << 24)) / 4096 - 1000;
  const double shift = 12.5, factor = 0.0371;
  for (const bool is_log : {false, true}) {
    const ScaleOptions options{-900, 900, 0, is_log, true};
    scale_numbers(values.data(), nullptr, values.size(), 1, {&shift, &factor, false}, options, out.data());
    (is_log ? logs : line).add(out);
  }
}

void digest_tokens() {
  Line line("tokens");
  Chance chance;
  for (const bool strip : {false, true}) {
    TextOptions options;
    options.strip = strip;
    TokenSplitter splitter(options);
    for (size_t round = 0; round < 500; round++) {
      Bytes text(chance.below(round < 250 ? 40 : 700));
      static constexpr char kLetters[] = "abcXYZ  \t\n.,!-'09\xc3\xa9";
      for (uint8_t& each : text) each = static_cast<uint8_t>(kLetters[chance.below(sizeof kLetters - 1)]);
      const size_t size = text.size();
      text.resize(size + kReadablePadding);
      splitter.cut(Span{text.data(), size}, [&](Span token) {
        line.add(token.data, token.size);
        line.add_value('|');
        return true;
      });
    }
  }
}

}  // namespace
}  // namespace penstock

int main() {
  using namespace penstock;
  std::fprintf(stderr, "crc32c by %s\n", crc32c_method());
  digest_checksums();
  digest_hashes();
  digest_orders();
  digest_varints();
  digest_pixels();
  digest_crops();
  digest_png();
  digest_numbers<float>("moments32", "elements32");
  digest_numbers<double>("moments64", "elements64");
  digest_numbers<int64_t>("momentsint", "elementsint");
  digest_scales();
  digest_tokens();
  return 0;
}
