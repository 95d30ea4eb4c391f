"""Texts that occur in several splits, nearly unchanged: a score of such records is too good.

In: a data set and its fitted pipeline. Out: one note per text field. Texts are compared by their tokens, so
that case, punctuation and whitespace do not matter, and by MinHash (Broder 1997), so that a few words do not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PenstockError
from penstock.transform.fit_source import find_source
from penstock.transform.pipeline import Pipeline
from penstock.transform.text import Tokenize

_SPLITS: Final = ("train", "validation", "test")
_MAX_RECORDS: Final = 1 << 18  # per split: the first ones, in the order in which they are stored
_MAX_TOKENS: Final = 256  # per text
_MIN_TOKENS: Final = 20  # shorter texts, such as "very good, thank you", repeat by chance
_SHINGLE: Final = 3  # tokens that are compared together
_NUM_HASHES: Final = 32
_BAND: Final = 2  # hashes that agree in every pair of texts that is compared
_MIN_EQUAL: Final = 26  # hashes: about four fifths of the shingles of two texts

_MULTIPLIERS: Final = np.random.default_rng(7).integers(1, 1 << 63, _NUM_HASHES, np.uint64) * 2 + 1


class Signatures(NamedTuple):
    """Records of a split whose texts are long enough to compare, ascending, and hashes of their shingles."""

    records: NDArray[np.int64]
    hashes: NDArray[np.uint32]


class Repeated(NamedTuple):
    """Number of texts of one split that nearly equal a text of another.

    `second` is a record of the second split that nearly equals the record `first` of the first split.
    """

    num_records: int
    first: int
    second: int


def note_repeated_texts(data: Any, pipeline: Pipeline) -> Iterator[str]:
    """Yield a note for each text input, and each two splits, that have nearly equal texts.

    A split that cannot be read is left out: whatever uses its records reports the error.
    """
    splits = [name for name in _SPLITS if name in data.splits and len(data[name])]
    if len(splits) < 2:
        return
    for name, transform in pipeline.transforms.items():
        if not isinstance(transform, Tokenize) or name not in pipeline.inputs:
            continue
        found = {}
        for split in splits:
            with contextlib.suppress(PenstockError):
                found[split] = _sign_split(data[split], name, transform)
        for first, second in combinations(found, 2):
            repeated = find_repeated(found[first], found[second])
            if repeated is not None:
                is_sample = max(len(data[first]), len(data[second])) > _MAX_RECORDS
                yield _describe(name, (first, second), repeated, is_sample=is_sample)


def _describe(name: str, splits: tuple[str, str], repeated: Repeated, *, is_sample: bool) -> str:
    first, second = splits
    what = "record" if repeated.num_records == 1 else "records"
    has = "has" if repeated.num_records == 1 else "have"
    among = f" (of the first {_MAX_RECORDS:,} of each)" if is_sample else ""
    return (
        f"field {name!r}: {repeated.num_records:,} {what} of split {second!r} {has} nearly the same text as "
        f"a record of {first!r}{among}, such as record {repeated.second} of {second!r} and record "
        f"{repeated.first} of {first!r}. Scores on {second!r} may be too good. To keep such records in one "
        "split, convert the data with `group=COLUMN`, where they have the same value"
    )


def _sign_split(split: Any, name: str, transform: Tokenize) -> Signatures:
    """Return the signatures of the texts of a split; later records than the first ones are left out."""
    source, start = find_source(split), 0
    parts = []
    for column in source.columns(name):
        ids, offsets = transform.tokenize(column, _MAX_TOKENS)
        part = sign_texts(ids, offsets)
        parts.append(Signatures(part.records + start, part.hashes))
        start += len(offsets) - 1
        if start >= _MAX_RECORDS:
            break
    records, hashes = (np.concatenate(each) for each in zip(*parts, strict=True))
    kept = records < _MAX_RECORDS
    return Signatures(records[kept], hashes[kept])


def sign_texts(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> Signatures:
    """Return the signatures of texts."""
    records = np.flatnonzero(np.diff(offsets) >= _MIN_TOKENS)
    if not len(records):
        return Signatures(records, np.empty((0, _NUM_HASHES), np.uint32))
    words = np.zeros(len(ids) + _SHINGLE - 1, np.uint64)
    words[: len(ids)] = ids
    shingles = np.zeros(len(ids), np.uint64)
    for shift in range(_SHINGLE):
        shingles = _mix(shingles + words[shift : shift + len(ids)] + np.uint64(1))
    # Shingles that reach into the next text have no influence.
    last = np.repeat(offsets[1:] - _SHINGLE, np.diff(offsets))
    is_whole = np.arange(len(ids)) <= last[: len(ids)]
    hashes = np.empty((len(records), _NUM_HASHES), np.uint32)
    # Every second range of `reduceat` is a text; the others are between texts that are compared.
    ends = np.stack([offsets[records], offsets[records + 1]], axis=1).reshape(-1)
    for number, multiplier in enumerate(_MULTIPLIERS):
        values = np.where(is_whole, (shingles * multiplier) >> np.uint64(32), np.uint64(0xFFFFFFFF))
        padded = np.append(values, np.uint64(0xFFFFFFFF))
        hashes[:, number] = np.minimum.reduceat(padded, ends)[::2]
    return Signatures(records, hashes)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits all depend on all bits of the given ones (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def find_repeated(first: Signatures, second: Signatures) -> Repeated | None:
    """Return the texts of the second split that nearly equal one of the first; None if there are none."""
    if not len(first.records) or not len(second.records):
        return None
    partner = np.full(len(second.records), -1)
    for start in range(0, _NUM_HASHES, _BAND):
        known, wanted = (_join(each.hashes[:, start : start + _BAND]) for each in (first, second))
        order = np.argsort(known, kind="stable")
        places = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
        candidates = order[places]
        agreement = np.count_nonzero(first.hashes[candidates] == second.hashes, axis=1)
        partner = np.where((partner < 0) & (agreement >= _MIN_EQUAL), candidates, partner)
    found = np.flatnonzero(partner >= 0)
    if not len(found):
        return None
    example = found[0]
    return Repeated(len(found), int(first.records[partner[example]]), int(second.records[example]))


def _join(hashes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return the two hashes of a band as one number."""
    wide = hashes.astype(np.uint64)
    return (wide[:, 0] << np.uint64(32)) | wide[:, 1]
