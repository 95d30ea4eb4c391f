"""The values of the data sets, drawn from a seed.

In: a data set and the number of a shard. Out: its columns, arrays for numbers and lists for everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets import SEED, DatasetSpec, Field

NUM_WORDS = 30_000
# Half of the texts are longer than this; with the spread below their mean is about 230 words.
MEDIAN_LENGTH = 172
LENGTH_SPREAD = 0.76
SHORTEST, LONGEST = 10, 2_500
# Zipf-Mandelbrot: the most frequent word makes up about one word in twenty, as in English.
ZIPF_SHIFT = 2.7
ZIPF_EXPONENT = 1.05
SENTENCE_LENGTH = 17
PLAIN, COMMA, QUOTED, BRACED, STOP, SHOUT, ASK, BREAK = range(8)
NUM_MARKS = 8
MARK_SHARES = {COMMA: 0.055, QUOTED: 0.01, BRACED: 0.006}
STOP_SHARES = (0.80, 0.06, 0.05, 0.09)
CONSONANTS = "bcdfghklmnprstvwz"
VOWELS = "aeiou"
ACCENTS = str.maketrans("aeou", "áéöü")


def draw_texts(num_texts: int, rng: np.random.Generator) -> list[bytes]:
    """Draw so many texts; the same generator gives the same ones."""
    lengths = np.exp(rng.normal(np.log(MEDIAN_LENGTH), LENGTH_SPREAD, num_texts)).astype(np.int64)
    stops = np.cumsum(np.clip(lengths, SHORTEST, LONGEST))
    num_words = int(stops[-1])
    codes = _draw_text_words(num_words, rng) * (2 * NUM_MARKS)
    marks, is_first = _draw_marks(num_words, stops, rng)
    forms = _make_forms()
    pieces = [forms[code] for code in (codes + 2 * marks + is_first).tolist()]
    starts = [0, *stops[:-1].tolist()]
    return [" ".join(pieces[start:stop]).encode() for start, stop in zip(starts, stops.tolist(), strict=True)]


def _draw_text_words(num_words: int, rng: np.random.Generator) -> NDArray[np.int64]:
    shares = (np.arange(NUM_WORDS) + 1 + ZIPF_SHIFT) ** -ZIPF_EXPONENT
    edges = np.cumsum(shares) / shares.sum()
    codes: NDArray[np.int64] = np.searchsorted(edges, rng.random(num_words)).clip(max=NUM_WORDS - 1)
    return codes


def _draw_marks(
    num_words: int, stops: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw what stands around each word, and whether it begins a sentence."""
    is_last = rng.random(num_words) < 1 / SENTENCE_LENGTH
    is_last[stops - 1] = True
    inside = rng.choice(
        [PLAIN, *MARK_SHARES], num_words, p=[1 - sum(MARK_SHARES.values()), *MARK_SHARES.values()]
    )
    behind = rng.choice([STOP, SHOUT, ASK, BREAK], num_words, p=STOP_SHARES)
    return np.where(is_last, behind, inside), np.concatenate([[True], is_last[:-1]])


@cache
def _make_forms() -> list[str]:
    """Make every word with every mark, in small letters and with a capital."""
    forms = []
    for word in _make_text_words():
        for form in ("{}", "{},", '"{}"', "({})", "{}.", "{}!", "{}?", "{}.<br /><br />"):
            forms += [form.format(word), form.format(word.capitalize())]
    return forms


def _make_text_words() -> list[str]:
    """Make the vocabulary, frequent words short; some have an apostrophe, a hyphen or an accent."""
    rng = np.random.default_rng([SEED, NUM_WORDS])
    words: dict[str, None] = {}
    while len(words) < NUM_WORDS:
        # Syllables of two or three letters: 1 for the first hundred words, up to 5 later on.
        num_syllables = 1 + int(rng.integers(0, 1 + min(4, int(np.log10(1 + len(words))))))
        word = "".join(_make_syllable(rng) for _ in range(num_syllables))
        chance = rng.random()
        if chance < 0.015:
            word += str(rng.choice(["'s", "'t", "n't", "'ll"]))
        elif chance < 0.025:
            word += "-" + _make_syllable(rng)
        elif chance < 0.032:
            word = word.translate(ACCENTS)
        words[word] = None
    return list(words)


def _make_syllable(rng: np.random.Generator) -> str:
    letters = str(rng.choice(list(CONSONANTS))) + str(rng.choice(list(VOWELS)))
    return letters + (str(rng.choice(list(CONSONANTS))) if rng.random() < 0.4 else "")


Values = NDArray[Any] | Sequence[Any]

NUM_IDS = 100_000
SHORTEST_LIST, LONGEST_LIST = 5, 200
BLOB_BYTES = 40_960
# Blobs are cut out of one pool at a random byte: no two are alike, and a dictionary has nothing to share.
POOL_BYTES = 32 << 20
ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)


def make_columns(spec: DatasetSpec, shard: int) -> dict[str, Values]:
    """Draw one shard's values, field by field; the same call gives the same values."""
    num_rows = spec.records_per_shard
    columns: dict[str, Values] = {}
    for number, field in enumerate(spec.fields):
        rng = np.random.default_rng([SEED, ord(spec.name[0]), shard, number])
        columns[field.name] = _draw(field, number, num_rows, rng)
    return columns


def _draw(field: Field, number: int, num_rows: int, rng: np.random.Generator) -> Values:
    if field.name == "label":
        return rng.integers(0, 10, num_rows)
    if field.name in ("blob", "text"):
        return _draw_blobs(num_rows, rng) if field.name == "blob" else draw_texts(num_rows, rng)
    if field.kind == "float":
        shape = (num_rows,) if field.length == 1 else (num_rows, field.length or 0)
        return rng.normal(size=shape).astype(np.float32)
    if field.length is None:
        lengths = rng.integers(SHORTEST_LIST, LONGEST_LIST + 1, num_rows)
        flat = _draw_skewed(NUM_IDS, int(lengths.sum()), rng)
        return np.split(flat, np.cumsum(lengths)[:-1])
    # Categories of 10 to 10 million: from day of the week to user id.
    codes = _draw_skewed(10 ** (1 + number % 7), num_rows, rng)
    if field.kind == "int64":
        return codes
    words = _make_words(number)
    return [words[code] for code in (codes % len(words)).tolist()]


def _draw_blobs(num_rows: int, rng: np.random.Generator) -> list[bytes]:
    pool = _make_pool()
    starts = rng.integers(0, POOL_BYTES - BLOB_BYTES, num_rows).tolist()
    return [pool[start : start + BLOB_BYTES] for start in starts]


def _draw_skewed(num_distinct: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw codes so that P(code < x) is log x / log n: what a Zipf law gives, without its endless tail."""
    codes = np.exp(rng.random(size) * np.log(num_distinct + 1)).astype(np.int64) - 1
    limited: NDArray[np.int64] = np.minimum(codes, num_distinct - 1)
    return limited


@cache
def _make_words(number: int) -> list[bytes]:
    """Make a field's vocabulary: words of 4 to 12 characters, the same in every shard."""
    rng = np.random.default_rng([SEED, number])
    lengths = rng.integers(4, 13, 10 ** (1 + number % 5)).tolist()
    return [rng.choice(ALPHABET, length).tobytes() for length in lengths]


@cache
def _make_pool() -> bytes:
    return np.random.default_rng(SEED).bytes(POOL_BYTES)
