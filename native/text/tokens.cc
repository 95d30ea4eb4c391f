#include "text/tokens.h"

#include <algorithm>
#include <numeric>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace penstock {
namespace {

enum : uint8_t { kSpace = 1, kMark = 2 };

// White space and punctuation of ASCII, as tf.strings.split and the expression of TextVectorization know them.
struct Classes {
  uint8_t of[256] = {};
  uint8_t lower[256] = {};
  constexpr Classes() {
    for (int c = 0; c < 256; c++) {
      const bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
      const bool is_mark = (c >= '!' && c <= '/') || (c >= ':' && c <= '@') ||  //
                           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
      of[c] = is_space ? kSpace : is_mark ? kMark : 0;
      lower[c] = static_cast<uint8_t>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
  }
};
constexpr Classes kClasses;

// Of 16 bytes: lowers them to `out`, returns which are white space (low half) and which are punctuation (high half).
#if defined(__x86_64__)
uint32_t classify16(__m128i v, bool lower, uint8_t* out) {
  // There is a comparison of signed bytes only: the range is moved to the least of them.
  const auto within = [&](int first, int last) {
    const __m128i moved = _mm_add_epi8(v, _mm_set1_epi8(static_cast<char>(128 - first)));
    return _mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(-128 + last - first + 1)));
  };
  const auto bits = [](__m128i mask) { return static_cast<uint32_t>(_mm_movemask_epi8(mask)); };
  const __m128i raise = _mm_and_si128(within('A', 'Z'), _mm_set1_epi8(static_cast<char>(lower ? 0x20 : 0)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_or_si128(v, raise));
  const __m128i spaces = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')), within('\t', '\r'));
  const __m128i marks =
      _mm_or_si128(_mm_or_si128(within('!', '/'), within(':', '@')), _mm_or_si128(within('[', '`'), within('{', '~')));
  return bits(spaces) | bits(marks) << 16;
}
uint32_t classify16(const uint8_t* p, bool lower, uint8_t* out) {
  return classify16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), lower, out);
}
uint32_t classify16(uint64_t low, uint64_t high, bool lower, uint8_t* out) {
  return classify16(_mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low)), lower, out);
}
#else
uint32_t classify16(const uint8_t* p, bool lower, uint8_t* out) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 16; i++) {
    const uint32_t found = kClasses.of[p[i]];
    result |= (found & kSpace) << i | (found >> 1) << (16 + i);
    out[i] = lower ? kClasses.lower[p[i]] : p[i];
  }
  return result;
}
uint32_t classify16(uint64_t low, uint64_t high, bool lower, uint8_t* out) {
  uint8_t bytes[16];
  std::memcpy(bytes, &low, 8);
  std::memcpy(bytes + 8, &high, 8);
  return classify16(bytes, lower, out);
}
#endif

// Classes of less than 16 bytes, followed by white space. They stay in registers: most tokenized texts are short, and a
// call of memcpy would take as long as the rest.
uint32_t classify_rest(const uint8_t* p, size_t size, bool lower, uint8_t* out) {
  constexpr uint64_t kSpaces = 0x2020202020202020;
  uint64_t low = 0, high = kSpaces;
  if (size >= 8) {
    low = load64(p);
    // The last eight bytes, without those that are in the first word.
    high = size == 8 ? kSpaces : load64(p + size - 8) >> (8 * (16 - size)) | kSpaces << (8 * (size - 8));
  } else {
    if (size >= 4) {
      low = load32(p) | static_cast<uint64_t>(load32(p + size - 4)) << (8 * (size - 4));
    } else if (size != 0) {
      const size_t middle = size / 2, last = size - 1;
      low = p[0] | static_cast<uint64_t>(p[middle]) << (8 * middle) | static_cast<uint64_t>(p[last]) << (8 * last);
    }
    low |= kSpaces << (8 * size);
  }
  return classify16(low, high, lower, out);
}

}  // namespace

void TokenSplitter::load(const uint8_t* p, size_t size) {
  uint64_t before = 1;  // a window begins as if after white space
  const uint64_t strip = form_.strip ? ~uint64_t{0} : 0;
  size_t word = 0;
  for (; word < kWords && 64 * word < size; word++) {
    uint64_t spaces = 0, marks = 0;
    size_t part = 0;
    for (; part < 64 && 64 * word + part < size; part += 16) {
      const size_t at = 64 * word + part;
      uint32_t found;
      if (at + 16 <= size) {
        found = classify16(p + at, form_.lower, bytes_ + at);
      } else {
        found = classify_rest(p + at, size - at, form_.lower, bytes_ + at);
      }
      spaces |= static_cast<uint64_t>(found & 0xffff) << part;
      marks |= static_cast<uint64_t>(found >> 16) << part;
    }
    if (part < 64) spaces |= ~uint64_t{0} << part;  // as if white space followed
    edges_[word] = spaces ^ (spaces << 1 | before);
    drops_[word] = marks & strip;
    before = spaces >> 63;
  }
  for (; word < kWords; word++, before = 1) {
    edges_[word] = before ^ 1;
    drops_[word] = 0;
  }
  drops_[kWords] = 0;
}

uint32_t TokenSplitter::load_short(Span text) {
  const uint32_t found = text.size == kShortText ? classify16(text.data, form_.lower, bytes_)
                                                 : classify_rest(text.data, text.size, form_.lower, bytes_);
  return (~found & 0xffff) | (form_.strip ? found & 0xffff0000u : 0);
}

size_t TokenSplitter::gather(Span text) {
  const uint8_t skipped = form_.strip ? kMark : 0, ends = form_.split ? kSpace : 0;
  size_t at = 0;
  while (at < text.size) {
    // Room for a piece at a time: how long the token is, is not known yet.
    const size_t piece = std::min<size_t>(text.size - at, 4096);
    uint8_t* const out = long_.room(piece + Vocabulary::kShort);
    size_t count = 0, i = 0;
    for (; i < piece; i++) {
      const uint8_t byte = text.data[at + i], found = kClasses.of[byte];
      if ((found & ends) != 0) break;
      out[count] = form_.lower ? kClasses.lower[byte] : byte;
      count += (found & skipped) == 0;
    }
    long_.advance(count);
    at += i;
    if (i < piece) break;
  }
  return at;
}

Span TokenSplitter::gathered() {
  const size_t size = long_.size();
  uint8_t* const pad = long_.room(Vocabulary::kShort);
  std::memset(pad, 0, Vocabulary::kShort);
  long_.truncate(0);
  return Span{long_.data(), size};
}

size_t write_ids(TokenSplitter& splitter, Span text, const TokenIds& ids, size_t most, int32_t* out) {
  size_t count = 0;
  if (most == 0) return 0;
  splitter.cut(text, [&](Span token) {
    out[count++] = ids(token);
    return count < most;
  });
  return count;
}

void append_ids(TokenSplitter& splitter, Span text, const TokenIds& ids, size_t most, GrowableArray<int32_t>& out) {
  size_t count = 0;
  if (most == 0) return;
  splitter.cut(text, [&](Span token) {
    out.push(ids(token));
    return ++count < most;
  });
}

size_t count_tokens(TokenSplitter& splitter, Span text) {
  size_t count = 0;
  splitter.cut(text, [&](Span) {
    count++;
    return true;
  });
  return count;
}

void TokenCounter::add_count(int32_t known, Span token, int64_t count) {
  if (known < 0) {
    known = tokens_.add(token);
    counts_.resize(tokens_.size());
  }
  counts_[static_cast<size_t>(known)] += count;
}

void TokenCounter::add(Span text) {
  cutter_.cut(text, [&](Span token) {
    add_count(tokens_.find_padded(token), token, 1);
    return true;
  });
}

void TokenCounter::merge(const TokenCounter& other) {
  for (size_t i = 0; i < other.num_distinct(); i++) {
    add_count(tokens_.find(other.token(i)), other.token(i), other.count(i));
  }
}

std::vector<uint32_t> TokenCounter::most_common(size_t limit) const {
  std::vector<uint32_t> numbers(counts_.size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  const auto is_before = [&](uint32_t a, uint32_t b) {
    if (counts_[a] != counts_[b]) return counts_[a] > counts_[b];
    const Span left = token(a), right = token(b);
    const int order = std::memcmp(left.data, right.data, std::min(left.size, right.size));
    return order != 0 ? order > 0 : left.size > right.size;
  };
  if (limit < numbers.size()) {
    const auto last = numbers.begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(numbers.begin(), last, numbers.end(), is_before);
    numbers.resize(limit);
  }
  std::sort(numbers.begin(), numbers.end(), is_before);
  return numbers;
}

}  // namespace penstock
