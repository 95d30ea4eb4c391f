// Texts as tokens, cut as Keras' TextVectorization cuts them: on bytes, with ASCII letters lowered, ASCII punctuation
// taken out, parts between ASCII white space. Tokens become numbers of a vocabulary, or are counted to make one.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/bytes.h"
#include "foundation/growable_array.h"
#include "text/vocabulary.h"

namespace penstock {

struct TextOptions {
  bool lower = true;
  bool strip = true;  // punctuation, wherever it stands
  bool split = true;  // at white space; a text that is not split is one token, or none if nothing of it is left
};

class TokenSplitter {
 public:
  explicit TokenSplitter(TextOptions form) : form_(form) {}

  // Calls visit(token) for one token after the other until it returns false. A token is gone with the next one, and 16
  // bytes past its end may be read.
  template <typename Visit>
  void cut(Span text, const Visit& visit);

 private:
  // About 40 words: a text that is cut to 64 tokens takes two windows or three, and little is read unnecessarily.
  static constexpr size_t kWindow = 256;
  static constexpr size_t kWords = kWindow / 64;

  static constexpr size_t kShortText = 16;

  // Reads 1 to kShortText bytes, as if white space followed: lowered bytes; returns which are not white space, and
  // above them which are not kept.
  uint32_t load_short(Span text);
  template <typename Visit>
  void cut_short(Span text, const Visit& visit);
  // Reads up to kWindow bytes: lowered bytes, where white space begins and ends, where punctuation stands.
  void load(const uint8_t* p, size_t size);
  // The rest of bytes [begin, end) of the window, at most 64; may be empty.
  Span pick(size_t begin, size_t end);
  // Appends the rest of the text up to the first white space (or its end, if it is not split) to `long_`. Returns the
  // number of bytes taken from the text.
  size_t gather(Span text);
  Span gathered();

  TextOptions form_;
  uint8_t bytes_[kWindow + 16];
  uint8_t picked_[64 + 16];
  uint64_t edges_[kWords];      // bit i: byte i is white space and the one before it is not, or the other way round
  uint64_t drops_[kWords + 1];  // bit i: byte i is not kept
  GrowableArray<uint8_t> long_;
};

template <typename Visit>
void TokenSplitter::cut_short(Span text, const Visit& visit) {
  if (text.size == 0) return;
  const uint32_t found = load_short(text), drops = found >> 16;
  for (uint32_t words = found & 0xffff; words != 0;) {
    const auto begin = static_cast<size_t>(__builtin_ctz(words));
    const auto size = static_cast<size_t>(__builtin_ctz(~(words >> begin)));
    const uint32_t all = ((1u << size) - 1) << begin;
    words &= ~all;
    Span token{bytes_ + begin, size};
    if (PENSTOCK_UNLIKELY((drops & all) != 0)) {
      size_t count = 0;
      for (uint32_t keep = all & ~drops; keep != 0; keep &= keep - 1) picked_[count++] = bytes_[__builtin_ctz(keep)];
      token = Span{picked_, count};
    }
    if (token.size != 0 && !visit(token)) return;
  }
}

template <typename Visit>
void TokenSplitter::cut(Span text, const Visit& visit) {
  if (!form_.split) {
    gather(text);
    const Span whole = gathered();
    if (whole.size != 0) visit(whole);
    return;
  }
  if (text.size <= kShortText) {
    cut_short(text, visit);
    return;
  }
  for (size_t done = 0; done < text.size;) {
    const size_t left = text.size - done, size = left < kWindow ? left : kWindow;
    load(text.data + done, size);
    size_t word = 0;
    uint64_t edges = edges_[0];
    const auto next_edge = [&]() -> size_t {
      while (edges == 0) {
        if (word == kWords - 1) return kWindow;
        edges = edges_[++word];
      }
      const size_t at = 64 * word + static_cast<size_t>(__builtin_ctzll(edges));
      edges &= edges - 1;
      return at;
    };
    size_t next = size;
    for (;;) {
      const size_t begin = next_edge();
      if (begin >= size) break;
      const size_t end = next_edge();
      const bool goes_on = end == kWindow && left > kWindow;
      if (PENSTOCK_UNLIKELY(goes_on || end - begin > 64)) {
        next = begin;
        if (begin != 0 && end - begin <= 64) break;  // it may be whole in the next window
        next += gather(Span{text.data + done + begin, left - begin});
        const Span token = gathered();
        if (token.size != 0 && !visit(token)) return;
        break;
      }
      const Span token = pick(begin, end);
      if (token.size != 0 && !visit(token)) return;
    }
    done += next;
  }
}

inline Span TokenSplitter::pick(size_t begin, size_t end) {
  const size_t word = begin / 64, shift = begin % 64, size = end - begin;
  // Shifts by 64 are not defined: the part of the next word takes two.
  const uint64_t drops = drops_[word] >> shift | (drops_[word + 1] << 1) << (63 - shift);
  uint64_t keep = ~drops & (~uint64_t{0} >> (64 - size));
  if (keep == 0) return Span{picked_, 0};
  const auto skipped = static_cast<size_t>(__builtin_ctzll(keep));
  const uint64_t after = ~(keep >> skipped);
  const size_t run = after == 0 ? 64 : static_cast<size_t>(__builtin_ctzll(after));
  const uint8_t* const first = bytes_ + begin;
  if (PENSTOCK_LIKELY(skipped + run == 64 || keep >> (skipped + run) == 0)) return Span{first + skipped, run};
  size_t count = 0;
  for (; keep != 0; keep &= keep - 1) picked_[count++] = first[__builtin_ctzll(keep)];
  return Span{picked_, count};
}

// What a token becomes: first + its number, or `unknown`.
struct TokenIds {
  const Vocabulary& vocabulary;
  int32_t first, unknown;

  int32_t operator()(Span token) const {
    const int32_t number = vocabulary.find_padded(token);
    return number < 0 ? unknown : first + number;
  }
};

// Writes the ids of the first `most` tokens to `out`, and returns how many there are.
size_t write_ids(TokenSplitter& splitter, Span text, const TokenIds& ids, size_t most, int32_t* out);
// The same to the end of an array that grows.
void append_ids(TokenSplitter& splitter, Span text, const TokenIds& ids, size_t most, GrowableArray<int32_t>& out);
size_t count_tokens(TokenSplitter& splitter, Span text);

class TokenCounter {
 public:
  explicit TokenCounter(TextOptions form) : form_(form), cutter_(form) {}

  void add(Span text);
  // Adds what another has counted, which must not be this one.
  void merge(const TokenCounter& other);

  const TextOptions& form() const { return form_; }
  size_t num_distinct() const { return counts_.size(); }
  Span token(size_t number) const { return tokens_.value(number); }
  int64_t count(size_t number) const { return counts_[number]; }
  // Up to `limit` tokens by their number here: the more frequent first, of equally frequent ones the greater first.
  std::vector<uint32_t> most_common(size_t limit) const;

 private:
  void add_count(int32_t known, Span token, int64_t count);

  TextOptions form_;
  TokenSplitter cutter_;
  Vocabulary tokens_;
  std::vector<int64_t> counts_;
};

}  // namespace penstock
