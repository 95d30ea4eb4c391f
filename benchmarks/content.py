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
from reviews import draw_texts

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
