#include <string>

#include "seeds.h"

namespace penstock::fuzz {
namespace {

using String = std::string;

String varint(uint64_t value, size_t size = 0) {
  String out;
  for (; value >= 0x80 || out.size() + 1 < size; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

String field(uint32_t number, const String& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}
String bytes_list(const String& value) { return field(1, field(1, value)); }
String floats(const String& packed) { return field(2, field(1, packed)); }
String ints(const String& packed) { return field(3, field(1, packed)); }
String entry(const String& key, const String& value) { return field(1, field(1, key) + field(2, value)); }

// Values in every spelling that a list may have.
std::vector<String> make_values() {
  const String minus_one = varint(~uint64_t{0});
  String many;
  for (uint64_t i = 0; i < 40; i++) many += varint(uint64_t{1} << (i * 7 % 64));
  return {
      bytes_list("text"),
      bytes_list(""),
      field(1, field(1, "two") + field(1, "values")),
      bytes_list(String(200, 'x')),
      floats(String("\0\0\x80\x3f", 4)),
      floats(String(12, '\x7f')),
      field(2, String("\x0d\0\0\xc0\x7f", 5)),
      field(2, String("\x0d\0\0\xc0\x7f\x0a\x04\1\2\3\4", 11)),
      ints(varint(7)),
      ints(minus_one),
      ints(varint(1) + varint(300) + minus_one),
      ints(varint(1, 10)),
      ints(many),
      field(3, "\x08\x01\x08\x02"),
      field(3, "\x08\x01\x0a\x02\x02\x03"),
      ints(varint(1)) + ints(varint(2)),
      floats(String(4, '\0')) + ints(varint(2)),
      field(3, ""),
      "",
      "\xf8\x01\x05" + ints(varint(3)),
  };
}

}  // namespace

std::vector<std::vector<uint8_t>> make_seeds() {
  const String keys[] = {"",
                         "a",
                         "b",
                         "key",
                         String(22, 'k'),
                         String(23, 'k'),
                         String(26, 'k'),
                         String(27, 'k'),
                         "0123456789abcdef0123456789abcdefXYZ"};
  const std::vector<String> values = make_values();
  std::vector<String> payloads = {""};
  for (size_t i = 0; i < values.size(); i++) {
    String map, lists;
    for (size_t k = 0; k < std::size(keys); k++) {
      const String& value = values[(i + k * (i % 3)) % values.size()];
      map += entry(keys[k], value);
      lists += entry(keys[k], field(1, value) + field(1, value));
    }
    payloads.push_back(field(1, map));
    payloads.push_back(field(1, map) + field(2, lists));
    payloads.push_back(field(1, entry("a", values[i]) + entry("a", values[(i + 1) % values.size()])));
    payloads.push_back(field(1, field(1, field(2, values[i]) + field(1, "key"))));
    payloads.push_back(field(1, entry("unwanted", values[i]) + "\x13\x1b\x1c\x14" + field(1, field(1, "b"))));
  }
  // One byte for each key says how the plan wants it: see choose_plan() of fuzz_example.cc.
  const uint8_t plans[] = {0x00, 0x14, 0x10, 0x24, 0x20, 0x36, 0x32, 0x42, 0x52, 0x62, 0xf0, 0x74, 0xf8, 0xf5};
  std::vector<std::vector<uint8_t>> seeds;
  for (size_t i = 0; i < payloads.size(); i++) {
    for (size_t shift = 0; shift < std::size(plans); shift += 3) {
      String input(1, static_cast<char>((i + shift) % 8));
      for (size_t k = 0; k < std::size(keys); k++) {
        input.push_back(static_cast<char>(plans[(k * (i % 2) + shift + i) % std::size(plans)]));
      }
      for (const String& payload : {payloads[i], payloads[(i + shift) % payloads.size()]}) {
        input.push_back(static_cast<char>(payload.size() & 0xff));
        input.push_back(static_cast<char>(payload.size() >> 8));
        input += payload;
      }
      seeds.emplace_back(input.begin(), input.end());
    }
  }
  return seeds;
}

}  // namespace penstock::fuzz
