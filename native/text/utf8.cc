#include "text/utf8.h"

namespace penstock {
namespace {

bool continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

// Length of the well-formed sequence at p, 0 if there is none.
size_t sequence_length(const uint8_t* p, const uint8_t* end) {
  const size_t left = static_cast<size_t>(end - p);
  const uint8_t first = p[0];
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;  // a continuation byte, or an overlong form of ASCII
  if (first < 0xe0) return left >= 2 && continues(p[1]) ? 2 : 0;
  if (first < 0xf0) {
    if (left < 3 || !continues(p[1]) || !continues(p[2])) return 0;
    if (first == 0xe0 && p[1] < 0xa0) return 0;   // overlong
    if (first == 0xed && p[1] >= 0xa0) return 0;  // surrogates
    return 3;
  }
  if (first < 0xf5) {
    if (left < 4 || !continues(p[1]) || !continues(p[2]) || !continues(p[3])) return 0;
    if (first == 0xf0 && p[1] < 0x90) return 0;   // overlong
    if (first == 0xf4 && p[1] >= 0x90) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

bool is_control(uint8_t byte) { return (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f; }

template <bool kRefuseControls>
bool check(Span bytes) {
  const uint8_t* p = bytes.begin();
  const uint8_t* const end = bytes.end();
  while (p < end) {
    if (kRefuseControls && is_control(*p)) return false;
    if (!kRefuseControls && end - p >= 8 && !(load64(p) & 0x8080808080808080ull)) {
      p += 8;
      continue;
    }
    const size_t length = sequence_length(p, end);
    if (length == 0) return false;
    p += length;
  }
  return true;
}

}  // namespace

bool is_utf8(Span bytes) { return check<false>(bytes); }

bool is_text(Span bytes) { return check<true>(bytes); }

}  // namespace penstock
