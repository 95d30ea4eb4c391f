"""Texts are cut, counted and numbered by the core as a few lines of Python do it."""

import itertools
import re
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from each_case import each_case
from penstock import _native
from raising import raises_with

PUNCTUATION = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
FORMS = list(itertools.product([False, True], repeat=3))
DEFAULT = (True, True, True)

WORDS = st.sampled_from(
    [b"a", b"B", b"it's", b"--", b"don't!", b"x" * 15, b"Y" * 16, b"z" * 17, b"\xc3\xa9T"]
)
LONG = st.integers(50, 700).flatmap(lambda size: st.sampled_from([b"w" * size, b"w.W" * size, b"." * size]))
GAPS = st.sampled_from(
    [b" ", b"  ", b"\t", b"\n", b"\v", b"\f\r", b" " * 70, b"\0", b"\x1c", b"\xc2\xa0", b""]
)
TEXTS = st.one_of(
    st.binary(max_size=300),
    st.lists(st.one_of(WORDS, WORDS, WORDS, LONG, GAPS, GAPS), max_size=120).map(b"".join),
    st.lists(WORDS, max_size=120).map(b" ".join),
    st.text(max_size=100).map(str.encode),
)


def cut(text, lower, strip, split):
    """Return the tokens of a text, the plain way."""
    if lower:
        text = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in text)
    if strip:
        text = text.translate(None, PUNCTUATION)
    tokens = re.split(rb"[ \t\n\v\f\r]+", text) if split else [text]
    return [token for token in tokens if token]


def place(texts):
    """Put texts one behind the other."""
    stops = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = stops - np.array([len(text) for text in texts], np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), starts, stops


def rank(tokens):
    """Return tokens with their counts in the order of a vocabulary."""
    return sorted(Counter(tokens).items(), key=lambda item: (item[1], item[0]), reverse=True)


@settings(max_examples=150)
@given(st.lists(TEXTS, max_size=6), st.sampled_from(FORMS), st.sampled_from([0, 1, 7, 64]))
@example(
    [b"a" * 255 + b" b", b" " * 255 + b"ab", b"a" * 256, b"a " * 200, b"x" * 190 + b" " + b"y" * 66],
    DEFAULT,
    64,
)
@example([b"!" * 300 + b"a", b"a" + b"!" * 300, b" ! " * 100, b"a" * 64 + b"!" + b" b"], DEFAULT, 7)
def test_texts_of_any_bytes_become_the_ids_of_their_tokens(texts, form, length):
    wanted = [cut(text, *form) for text in texts]
    ranked = rank(token for tokens in wanted for token in tokens)
    counter = _native.TokenCounter(*form)
    counter.add(*place(texts), None)
    assert list(zip(*counter.most_common(2**40), strict=True)) == ranked
    assert counter.num_distinct == len(ranked)

    known = [token for token, _ in ranked[::2]]
    numbers = {token: i + 2 for i, token in enumerate(known)}
    expected = [[numbers.get(token, 1) for token in tokens] for tokens in wanted]
    vocabulary = _native.Vocabulary(known)
    ids, offsets = _native.tokenize(*place(texts), vocabulary, -1, 2, 1, *form)
    assert (ids.dtype, offsets.dtype) == (np.int32, np.int64)
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == expected
    ids, offsets = _native.tokenize(*place(texts), vocabulary, length, 2, 1, *form)
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == [row[:length] for row in expected]
    padded = _native.tokenize_padded(*place(texts), vocabulary, length, 2, 1, -7, *form)
    assert padded.shape == (len(texts), length)
    assert padded.tolist() == [(row + [-7] * length)[:length] for row in expected]
    counts = _native.count_tokens(*place(texts), *form[1:])
    assert counts.tolist() == [len(tokens) for tokens in wanted]


@pytest.mark.parametrize("form", FORMS)
def test_text_of_every_byte_is_cut_as_ascii_says(form):
    texts = [b"x" + bytes([byte]) + b"y" for byte in range(256)]
    counter = _native.TokenCounter(*form)
    counter.add(*place(texts), None)
    assert counter.most_common(1000)[0] == [
        token for token, _ in rank(t for x in texts for t in cut(x, *form))
    ]


@each_case("size", [63, 64, 65, 239, 240, 241, 255, 256, 257, 511, 512, 513])
@each_case("before", [0, 1, 15, 16, 17, 191, 192, 193, 255, 256])
def test_text_with_a_token_across_any_boundary_keeps_it_whole(size, before):
    token = bytes(97 + i % 26 for i in range(size))
    texts = [b" " * before + token, b"." * before + token + b" tail", b"a " * before + token + b"!"]
    vocabulary = _native.Vocabulary([token, b"tail"])
    ids, offsets = _native.tokenize(*place(texts), vocabulary, -1, 2, 1, *DEFAULT)
    found = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert found == [[2], [2, 3], [1] * before + [2]]


def test_text_at_the_end_of_memory_is_not_read_past():
    for size in range(300):
        arena = np.frombuffer(bytearray(b"ab, " * size)[: size + 1], np.uint8)
        assert _native.count_tokens(arena, np.array([0]), np.array([len(arena)]), True, True) >= 0


def test_text_of_one_token_of_ten_megabytes_is_one_token():
    large = b"Ab.c" * 2_500_000
    texts = [large, b"x " + large + b" y", large + b"d"]
    counter = _native.TokenCounter()
    counter.add(*place(texts), None)
    token = b"abc" * 2_500_000
    assert counter.most_common(2) == ([token, b"y"], [2, 1])
    vocabulary = _native.Vocabulary([token])
    padded = _native.tokenize_padded(*place(texts), vocabulary, 3, 2, 1, 0, *DEFAULT)
    assert padded.tolist() == [[2, 0, 0], [1, 2, 1], [1, 0, 0]]
    whole = _native.tokenize_padded(*place([large]), vocabulary, 2, 2, 1, 0, True, True, False)
    assert whole.tolist() == [[2, 0]]


@pytest.mark.long
def test_text_of_more_than_two_gigabytes_is_counted():
    arena = np.full(2**31 + 1000, ord("a"), np.uint8)
    arena[9::10] = ord(" ")
    starts, stops = np.array([0, 5]), np.array([len(arena), len(arena)])
    counts = _native.count_tokens(arena, starts, stops, True, True)
    assert counts.tolist() == [-(-len(arena) // 10)] * 2
    arena[:] = ord("B")
    counter = _native.TokenCounter()
    counter.add(arena, starts[:1], stops[:1], None)
    assert counter.num_distinct == 1
    assert len(counter.most_common(1)[0][0]) == len(arena)


def test_counter_of_some_rows_leaves_out_the_others():
    counter = _native.TokenCounter()
    counter.add(*place([b"a b", b"b c", b"c d"]), np.array([True, False, True]))
    assert counter.most_common(9) == ([b"d", b"c", b"b", b"a"], [1, 1, 1, 1])


@settings(max_examples=50)
@given(st.lists(st.lists(WORDS, max_size=30).map(b" ".join), max_size=9), st.integers(1, 4))
def test_counters_that_are_merged_equal_one_counter(texts, num_counters):
    whole, merged = _native.TokenCounter(), _native.TokenCounter()
    whole.add(*place(texts), None)
    for i in range(num_counters):
        part = _native.TokenCounter()
        part.add(*place(texts[i::num_counters]), None)
        merged.merge(part)
    assert merged.most_common(1000) == whole.most_common(1000)
    assert merged.num_distinct == whole.num_distinct


@pytest.mark.parametrize("limit", [0, 1, 2, 999, 1000, 1001])
def test_counter_asked_for_some_gives_the_first_of_all(limit):
    words = [b"%d" % (i * 7919 % 1000) for i in range(1000)] + [b"5"] * 3 + [b"77"] * 3
    counter = _native.TokenCounter()
    counter.add(*place(words), None)
    tokens, counts = counter.most_common(limit)
    assert list(zip(tokens, counts, strict=True)) == rank(words)[:limit]


def test_counter_that_threads_share_counts_all():
    texts = place([b"the %d" % (i % 100) for i in range(5000)])
    counter = _native.TokenCounter()
    threads = [threading.Thread(target=counter.add, args=(*texts, None)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.most_common(2) == ([b"the", b"99"], [20_000, 200])


def test_counter_refuses_itself_and_those_that_cut_in_another_way():
    counter = _native.TokenCounter()
    with raises_with(ValueError, "merged itself"):
        counter.merge(counter)
    with raises_with(ValueError, "texts"):
        counter.merge(_native.TokenCounter(lower=False))


def test_arrays_of_ids_are_aligned():
    texts, vocabulary = place([b"a b c"] * 5), _native.Vocabulary([b"a"])
    arrays = [
        *_native.tokenize(*texts, vocabulary, -1, 2, 1, *DEFAULT),
        _native.tokenize_padded(*texts, vocabulary, 3, 2, 1, 0, *DEFAULT),
        vocabulary.find(*texts),
    ]
    assert all(array.ctypes.data % 64 == 0 and array.flags.c_contiguous for array in arrays)


ARENA = np.frombuffer(b"abc", np.uint8)
ONE = np.array([1])
BAD_PLACES = {
    "past the arena": (ARENA, ONE, ONE * 4),
    "before the arena": (ARENA, -ONE, ONE),
    "going back": (ARENA, ONE * 2, ONE),
    "more starts": (ARENA, np.array([0, 1]), ONE),
    "int32": (ARENA, ONE.astype(np.int32), ONE),
    "None": (None, ONE, ONE),
}


@pytest.mark.parametrize("case", BAD_PLACES)
def test_texts_that_do_not_fit_their_arena_are_refused(case):
    places, vocabulary = BAD_PLACES[case], _native.Vocabulary([b"a"])
    calls = [
        lambda: _native.tokenize(*places, vocabulary, -1, 2, 1, *DEFAULT),
        lambda: _native.tokenize_padded(*places, vocabulary, 4, 2, 1, 0, *DEFAULT),
        lambda: _native.count_tokens(*places, True, True),
        lambda: _native.TokenCounter().add(*places, None),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError)):
            call()


def test_other_arguments_that_do_not_fit_are_refused():
    texts, vocabulary = place([b"a"]), _native.Vocabulary([b"a"])
    with raises_with(ValueError, "32"):
        _native.tokenize(*texts, vocabulary, -1, 2**31 - 1, 1, *DEFAULT)
    with pytest.raises((TypeError, ValueError, MemoryError)):
        _native.tokenize_padded(*texts, vocabulary, 2**62, 2, 1, 0, *DEFAULT)
    with pytest.raises(TypeError):
        _native.tokenize_padded(*texts, vocabulary, -1, 2, 1, 0, *DEFAULT)
    with pytest.raises(TypeError):
        _native.tokenize(*texts, [b"a"], -1, 2, 1, *DEFAULT)
    with pytest.raises((TypeError, ValueError)):
        _native.TokenCounter().add(*texts, np.ones(2, bool))
