"""Survey columns of numbers, dates, texts and byte strings.

In: a column as Arrow arrays. Out: its profile, and its values as numbers for the check of target leakage.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.plan.leakage import ComparableColumn
from penstock.plan.lists import describe_lists
from penstock.plan.profile import MAX_VALUES, ColumnProfile, RawKind, TextProfile, is_nan_text
from penstock.plan.texts import Chunks, drop_markers, find_markers, interpret_texts
from penstock.schema.notation import NumberFormat
from penstock.schema.scalar import ImageFormat
from penstock.storage.named_files import NamedFiles

MAGIC_BYTES: Final = 12
"""Number of bytes that identify the format of an image."""

_MAGICS: Final[tuple[tuple[bytes, ImageFormat], ...]] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
)

_NUM_PROBED: Final = 256
_NUM_SOUGHT: Final = 20
"""Number of file names per column that are checked: enough to know whether texts are names of files."""

_NUM_ENCODED_FIRST: Final = 16_384
"""Number of texts that are counted first: if half of them are distinct, the column has too many distinct
texts."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Control characters except tabs and line ends: text has none of them, nearly all binary data has some."""


def find_image_format(start: bytes) -> ImageFormat | None:
    """Return the image format that the first bytes of a value or a file identify, or None.

    Example:
        >>> find_image_format(b"GIF89a")
        'gif'
    """
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "webp"
    return next((name for magic, name in _MAGICS if start.startswith(magic)), None)


@dataclass(frozen=True)
class SurveyedColumn:
    """Profile of a column, and its comparable values if it has any."""

    profile: ColumnProfile
    labels: ComparableColumn | None = None


def survey_numbers(column: Chunks) -> SurveyedColumn:
    """Survey ints, floats or bools; NaN counts as missing."""
    is_bool, is_int = pa.types.is_boolean(column.type), pa.types.is_integer(column.type)
    kind: RawKind = "bool" if is_bool else "int" if is_int else "float"
    num_nan = 0
    if kind == "float":
        is_nan_text: Any = pc.is_nan(column)
        num_nan = int(pc.sum(is_nan_text).as_py() or 0)
        column = pc.if_else(is_nan_text, pa.scalar(None, column.type), column) if num_nan else column
    values = (column.drop_null() if column.null_count else column).to_numpy()
    counted = _count_numbers(values.view(np.uint8) if is_bool else values)
    counted["num_missing_nan"] = num_nan
    if is_bool:
        counted |= {"values": None, "low": None, "high": None}
    return _find(column, kind, values, counted, is_ordered=True)


def survey_times(column: Chunks) -> SurveyedColumn:
    """Survey dates, points in time, times of day or durations."""
    kind: RawKind = "date" if pa.types.is_date(column.type) else "time"
    is_short = pa.types.is_date32(column.type) or pa.types.is_time32(column.type)
    wanted = pa.int32() if is_short else pa.int64()
    values = column.cast(wanted).drop_null().to_numpy()
    counted = _count_numbers(values)
    counted |= {"values": None, "low": None, "high": None, "is_counter": False}
    return _find(column, kind, values, counted, is_ordered=True)


def survey_texts(
    column: Chunks,
    files: NamedFiles | None,
    *,
    finds_markers: bool = True,
    numbers: NumberFormat | None = None,
) -> SurveyedColumn:
    """Survey texts; texts that are all numbers, dates or lists are profiled as such."""
    texts = column.drop_null() if column.null_count else column
    if not len(texts):
        return SurveyedColumn(_state(column, "empty"))
    interpretation = interpret_texts(texts, numbers)
    text = interpretation.profile
    markers = find_markers(texts, interpretation) if finds_markers else {}
    if markers:
        found = survey_texts(drop_markers(column), files, finds_markers=False, numbers=numbers)
        if _is_counted(found.profile):
            return add_markers(found, markers)
        if (others := found.profile.text) is not None:  # the digits of texts that are not markers
            zeros, beyond = others.num_leading_zeros, others.num_beyond_int64
            text = replace(text, num_leading_zeros=zeros, num_beyond_int64=beyond)
    values = interpretation.numbers
    if values is not None and not text.num_leading_zeros and not text.num_beyond_int64:
        counted = _count_numbers(values)
        return _find(column, "text", values, {**counted, "text": text}, is_ordered=True)
    codes, counted = _count_texts(texts, text)
    known = counted["values"]
    if known and len(known) <= 6 and {word.lower() for word in known} <= {"true", "false"}:
        counted |= {"values": None}
        text = replace(text, reads_as="bool")
    if text.num_image_names and files is not None:
        text, counted["formats"] = _seek_files(text, texts.slice(0, _NUM_SOUGHT).to_pylist(), files)
    if interpretation.lists:
        counted["items"] = describe_lists(interpretation.lists)
    counted["text"] = text
    if codes is None:
        return SurveyedColumn(_state(column, "text", **counted))
    return _find(column, "text", codes, counted, is_ordered=False)


def _is_counted(profile: ColumnProfile) -> bool:
    """Return whether texts become numbers: digits with leading zeros or beyond int64 stay texts."""
    text = profile.text
    if text is None or text.date_orders:
        return text is not None
    is_number = profile.reads_as in ("int", "float", "date", "time")
    return is_number and not text.num_leading_zeros and not text.num_beyond_int64


def add_markers(found: SurveyedColumn, markers: dict[str, int]) -> SurveyedColumn:
    """Return a survey with the markers of missing values, such as `NA`, that were removed before it."""
    profile = found.profile
    num_nan = profile.num_missing_nan
    if profile.reads_as in ("int", "float"):
        num_nan += sum(number for word, number in markers.items() if is_nan_text(word))
    text = replace(profile.text or TextProfile(), markers=markers)
    return replace(found, profile=replace(profile, text=text, num_missing_nan=num_nan))


def survey_bytes(
    column: Chunks,
    files: NamedFiles | None,
    *,
    finds_markers: bool = True,
    numbers: NumberFormat | None = None,
) -> SurveyedColumn:
    """Survey byte strings: as texts if all are text, otherwise by the image formats among them."""
    texts = _decode(column)
    if texts is not None:
        found = survey_texts(texts, files, finds_markers=finds_markers, numbers=numbers)
        return replace(found, profile=replace(found.profile, type_text=str(column.type), is_decoded=True))
    present = column.drop_null().slice(0, _NUM_PROBED)
    starts = (bytes(value.as_buffer()[:MAGIC_BYTES]) for value in present)
    return SurveyedColumn(_state(column, "bytes", formats=_count_formats(starts)))


def survey_byte_objects(values: SequenceOf[Any]) -> ColumnProfile | None:
    """Survey byte strings that are Python objects; None for other objects, and if they may be texts.

    The profile is that of `survey_bytes`, without a copy of all bytes.
    """
    if not set(map(type, values)) <= {bytes, type(None)}:
        return None
    present = [value for value in values if value is not None]
    first = present[:_NUM_PROBED]
    if not first or all(map(_is_text, first)):
        return None
    return ColumnProfile(
        kind="bytes",
        type_text=str(pa.binary()),
        num_rows=len(values),
        num_missing=len(values) - len(present),
        formats=_count_formats(value[:MAGIC_BYTES] for value in first),
    )


def _decode(column: Chunks) -> Chunks | None:
    """Return byte strings as texts; None if one is not plain UTF-8 text, or if all are missing.

    Control characters do not occur in plain text. An image is never valid text throughout, whatever its first
    bytes are.
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


def _state(column: Chunks, kind: RawKind, **profile: Any) -> ColumnProfile:
    return ColumnProfile(
        kind=kind,
        type_text=str(column.type),
        num_rows=len(column),
        num_missing=column.null_count,
        **profile,
    )


def _find(
    column: Chunks, kind: RawKind, values: NDArray[Any], counted: dict[str, Any], *, is_ordered: bool
) -> SurveyedColumn:
    present = None
    if column.null_count:
        present = np.concatenate([chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in column.chunks])
    num_distinct = counted.pop("num_labels")
    return SurveyedColumn(
        _state(column, kind, **counted), ComparableColumn(values, present, num_distinct, is_ordered)
    )


def _count_numbers(values: NDArray[Any]) -> dict[str, Any]:
    """Count distinct numbers without NaN; sorting is faster than a hash table."""
    known = np.sort(values)
    if not len(known):
        return {"num_distinct": 0, "num_labels": 0}
    is_new = known[1:] != known[:-1]
    num_distinct = 1 + int(np.count_nonzero(is_new))
    low, high = known[0].item(), known[-1].item()
    is_int = known.dtype.kind != "f"
    profile: dict[str, Any] = {
        "num_distinct": num_distinct,
        "num_labels": num_distinct,
        "is_unique": num_distinct == len(values) > 1,
        "low": low,
        "high": high,
        "is_whole": is_int or bool(np.all(np.isfinite(known[[0, -1]])) and np.all(known == np.rint(known))),
    }
    if is_int:
        is_counter = (
            profile["is_unique"] and high - low == len(values) - 1 and bool(np.all(np.diff(values) == 1))
        )
        profile["is_counter"] = is_counter
    if profile["is_whole"] and num_distinct <= MAX_VALUES:
        profile["values"] = (int(known[0]), *map(int, known[1:][is_new].tolist()))
    return profile


def _count_texts(texts: Chunks, text: TextProfile) -> tuple[NDArray[Any] | None, dict[str, Any]]:
    """Count distinct texts and return one code per text; None if nearly all are distinct."""
    if len(texts) > _NUM_ENCODED_FIRST:
        first: Any = texts.slice(0, _NUM_ENCODED_FIRST).combine_chunks()
        num_first = len(first.dictionary_encode().dictionary)
        # If nearly all texts are distinct, only short ones without a space may be keys and need to be
        # counted.
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


def _seek_files(text: TextProfile, names: list[Any], files: NamedFiles) -> tuple[TextProfile, dict[str, int]]:
    starts = [start for start in files.read_starts(names, MAGIC_BYTES) if start is not None]
    num_refused = sum(map(files.is_refused, names))
    found = replace(text, num_files=len(starts), num_sought=len(names), num_refused=num_refused)
    return found, _count_formats(starts)


def _count_formats(starts: Iterable[bytes]) -> dict[str, int]:
    return dict(Counter(find_image_format(start) or "unknown" for start in starts))
