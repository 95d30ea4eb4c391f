"""What a byte string begins as: the formats of images that a field can name.

In: the first bytes of a value or of a file. Out: the name of the format, or None.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.plan.leakage import Labels
from penstock.plan.lists import describe_lists
from penstock.plan.profile import MAX_VALUES, ColumnFacts, RawKind, TextFacts, is_nan
from penstock.plan.texts import Chunks, drop_markers, find_markers, read_texts
from penstock.schema.scalar import ImageFormat

MAGIC_BYTES: Final = 12
"""How many bytes tell."""

_MAGICS: Final[tuple[tuple[bytes, ImageFormat], ...]] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
)


def name_format(start: bytes) -> ImageFormat | None:
    """Return the format of an image that begins so.

    Example:
        >>> name_format(b"GIF89a")
        'gif'
    """
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "webp"
    return next((name for magic, name in _MAGICS if start.startswith(magic)), None)


_NUM_PROBED: Final = 256
_NUM_SOUGHT: Final = 20
"""Files are looked for so many times a column: enough to know whether names are names of files."""
_NUM_ENCODED_FIRST: Final = 16_384
"""Texts that are counted before the others: where half of them differ, so do too many of all."""


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Characters that text does not have, tabs and line ends apart; nearly all binary data has some."""


@dataclass(frozen=True)
class Found:
    """The facts of a column, and its values for a comparison where they can be compared."""

    facts: ColumnFacts
    labels: Labels | None = None


def survey_numbers(column: Chunks) -> Found:
    """Look at ints, floats or bools; NaN is missing."""
    is_bool, is_int = pa.types.is_boolean(column.type), pa.types.is_integer(column.type)
    kind: RawKind = "bool" if is_bool else "int" if is_int else "float"
    num_nan = 0
    if kind == "float":
        is_nan: Any = pc.is_nan(column)
        num_nan = int(pc.sum(is_nan).as_py() or 0)
        column = pc.if_else(is_nan, pa.scalar(None, column.type), column) if num_nan else column
    values = (column.drop_null() if column.null_count else column).to_numpy()
    counted = _count_numbers(values.view(np.uint8) if is_bool else values)
    counted["num_missing_nan"] = num_nan
    if is_bool:
        counted |= {"values": None, "low": None, "high": None}
    return _find(column, kind, values, counted, is_ordered=True)


def survey_times(column: Chunks) -> Found:
    """Look at dates, points in time, times of day or durations."""
    kind: RawKind = "date" if pa.types.is_date(column.type) else "time"
    is_short = pa.types.is_date32(column.type) or pa.types.is_time32(column.type)
    wanted = pa.int32() if is_short else pa.int64()
    values = column.cast(wanted).drop_null().to_numpy()
    counted = _count_numbers(values)
    counted |= {"values": None, "low": None, "high": None, "is_counter": False}
    return _find(column, kind, values, counted, is_ordered=True)


def survey_texts(column: Chunks, folder: str | None, *, finds_markers: bool = True) -> Found:
    """Look at texts; those that are all numbers, dates or lists count as such.

    Args:
        column: The texts.
        folder: What relative paths are relative to.
        finds_markers: Whether texts such as `NA` among numbers and dates are missing values.
    """
    texts = column.drop_null() if column.null_count else column
    if not len(texts):
        return Found(_state(column, "empty"))
    reading = read_texts(texts)
    text = reading.facts
    markers = find_markers(texts, reading) if finds_markers else {}
    if markers:
        found = survey_texts(drop_markers(column), folder, finds_markers=False)
        if _is_counted(found.facts):
            return add_markers(found, markers)
        text = _keep_digits(text, found.facts.text)
    is_numeric = reading.numbers is not None and not text.num_leading_zeros and not text.num_beyond_int64
    if reading.numbers is not None and is_numeric:
        counted = _count_numbers(reading.numbers)
        return _find(column, "text", reading.numbers, {**counted, "text": text}, is_ordered=True)
    codes, counted = _count_texts(texts, text)
    values = counted["values"]
    if values and len(values) <= 6 and {value.lower() for value in values} <= {"true", "false"}:
        counted |= {"values": None}
        text = replace(text, reads_as="bool")
    if text.num_image_names:
        text, counted["formats"] = _seek_files(text, texts.slice(0, _NUM_SOUGHT).to_pylist(), folder)
    if reading.lists:
        counted["items"] = describe_lists(reading.lists)
    counted["text"] = text
    if codes is None:
        return Found(_state(column, "text", **counted))
    return _find(column, "text", codes, counted, is_ordered=False)


def _is_counted(facts: ColumnFacts) -> bool:
    """Whether texts become numbers: digits with leading zeros, or too many of them, stay texts."""
    text = facts.text
    is_number = facts.reads_as in ("int", "float", "date", "time")
    return is_number and text is not None and not text.num_leading_zeros and not text.num_beyond_int64


def _keep_digits(text: TextFacts, others: TextFacts | None) -> TextFacts:
    """Return the facts of all texts with what was found in those that do not mean a missing value."""
    if others is None:
        return text
    zeros, beyond = others.num_leading_zeros, others.num_beyond_int64
    return replace(text, num_leading_zeros=zeros, num_beyond_int64=beyond)


def add_markers(found: Found, markers: dict[str, int]) -> Found:
    """Return the facts of a column whose texts for missing values, such as `NA`, were left out."""
    facts = found.facts
    num_nan = facts.num_missing_nan
    if facts.reads_as in ("int", "float"):
        num_nan += sum(number for word, number in markers.items() if is_nan(word))
    text = replace(facts.text or TextFacts(), markers=markers)
    return replace(found, facts=replace(facts, text=text, num_missing_nan=num_nan))


def survey_bytes(column: Chunks, folder: str | None, *, finds_markers: bool = True) -> Found:
    """Look at byte strings: those that are all text count as texts; are the others images?"""
    texts = _decode(column)
    if texts is not None:
        found = survey_texts(texts, folder, finds_markers=finds_markers)
        return replace(found, facts=replace(found.facts, type_text=str(column.type), is_decoded=True))
    present = column.drop_null().slice(0, _NUM_PROBED)
    starts = (bytes(value.as_buffer()[:MAGIC_BYTES]) for value in present)
    return Found(_state(column, "bytes", formats=_count_formats(starts)))


def _decode(column: Chunks) -> Chunks | None:
    """Return byte strings as texts; None where one is not UTF-8, or has control characters, or none is there.

    No image is text throughout, whatever its first bytes are.
    """
    first: list[Any] = column.drop_null().slice(0, _NUM_PROBED).to_pylist()
    if not first or not all(map(_is_text, first)):
        return None
    try:
        texts: Chunks = column.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        return None
    return None if pc.any(pc.match_substring_regex(texts, _CONTROL.pattern)).as_py() else texts


def _is_text(value: bytes) -> bool:
    try:
        return _CONTROL.search(value.decode()) is None
    except UnicodeDecodeError:
        return False


def _state(column: Chunks, kind: RawKind, **facts: Any) -> ColumnFacts:
    return ColumnFacts(
        kind=kind,
        type_text=str(column.type),
        num_rows=len(column),
        num_missing=column.null_count,
        **facts,
    )


def _find(
    column: Chunks, kind: RawKind, values: NDArray[Any], counted: dict[str, Any], *, is_ordered: bool
) -> Found:
    present = None
    if column.null_count:
        present = np.concatenate([chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in column.chunks])
    num_distinct = counted.pop("num_labels")
    return Found(_state(column, kind, **counted), Labels(values, present, num_distinct, is_ordered))


def _count_numbers(values: NDArray[Any]) -> dict[str, Any]:
    """Count what numbers there are, none of them NaN; sorting them is faster than any table of them."""
    known = np.sort(values)
    if not len(known):
        return {"num_distinct": 0, "num_labels": 0}
    is_new = known[1:] != known[:-1]
    num_distinct = 1 + int(np.count_nonzero(is_new))
    low, high = known[0].item(), known[-1].item()
    is_int = known.dtype.kind != "f"
    facts: dict[str, Any] = {
        "num_distinct": num_distinct,
        "num_labels": num_distinct,
        "is_unique": num_distinct == len(values) > 1,
        "low": low,
        "high": high,
        "is_whole": is_int or bool(np.all(np.isfinite(known[[0, -1]])) and np.all(known == np.rint(known))),
    }
    if is_int:
        is_counter = (
            facts["is_unique"] and high - low == len(values) - 1 and bool(np.all(np.diff(values) == 1))
        )
        facts["is_counter"] = is_counter
    if facts["is_whole"] and num_distinct <= MAX_VALUES:
        facts["values"] = (int(known[0]), *map(int, known[1:][is_new].tolist()))
    return facts


def _count_texts(texts: Chunks, text: TextFacts) -> tuple[NDArray[Any] | None, dict[str, Any]]:
    """Count what texts there are, and return a code for each; none where nearly all differ."""
    if len(texts) > _NUM_ENCODED_FIRST:
        first: Any = texts.slice(0, _NUM_ENCODED_FIRST).combine_chunks()
        num_first = len(first.dictionary_encode().dictionary)
        # Of texts that nearly all differ, only short ones without a space may be keys, and worth the count.
        may_be_keys = num_first == len(first) and text.mean_words == 1 and text.max_bytes <= 64
        if 2 * num_first > len(first) and not may_be_keys:
            return None, {"values": None}
    encoded: list[Any] = texts.dictionary_encode().chunks
    dictionary = encoded[0].dictionary
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded])
    values = tuple(sorted(dictionary.to_pylist())) if len(dictionary) <= MAX_VALUES else None
    return codes, {
        "num_labels": len(dictionary),
        "num_distinct": len(dictionary),
        "values": values,
        "is_unique": len(dictionary) == len(texts) > 1,
    }


def _seek_files(text: TextFacts, names: list[Any], folder: str | None) -> tuple[TextFacts, dict[str, int]]:
    starts = []
    for name in names:
        try:
            with open(os.path.join(folder or "", name), "rb") as file:  # noqa: PTH118, PTH123
                starts.append(file.read(MAGIC_BYTES))
        except (OSError, ValueError):  # not there, or no name at all: a NUL in it
            continue
    found = replace(text, num_files=len(starts), num_sought=len(names))
    return found, _count_formats(starts)


def _count_formats(starts: Iterable[bytes]) -> dict[str, int]:
    return dict(Counter(name_format(start) or "unknown" for start in starts))
