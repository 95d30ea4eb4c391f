"""Survey the first rows of a source: one profile per column.

In: the first blocks of a source. Out: a `SourceProfile`, which also names columns that leak a target. Texts
such as `NaN` in a column of labels mark rows without a label, not a class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.foundation.process import count_cores
from penstock.plan.leakage import ComparableColumn, LeakageTarget
from penstock.plan.lists import count_markers, drop_texts, survey_arrays, survey_lists, survey_objects
from penstock.plan.profile import MISSING_MARKERS, ColumnProfile, SourceProfile, TextKind, TextProfile
from penstock.plan.texts import Chunks
from penstock.plan.values import (
    SurveyedColumn,
    add_markers,
    survey_byte_objects,
    survey_bytes,
    survey_numbers,
    survey_texts,
    survey_times,
)
from penstock.schema.notation import NumberFormat
from penstock.schema.scalar import MISSING_LABELS
from penstock.source.block import Block, RawColumn
from penstock.source.column import drop_missing_texts
from penstock.storage.named_files import NamedFiles

_NO_FOLDER: Final = NamedFiles()

_THREADED_ROWS: Final = 10_000  # of fewer rows, columns are surveyed in less time than threads take

MAX_FEW: Final = 16
"""Number of rows up to which plain Python is faster than Arrow."""

_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")  # no leading zeros, within int64
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?")
_WORDS: Final = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*")  # neither a number, a date, a list nor a file name
_OTHER_WORDS: Final = MISSING_MARKERS | {"inf", "infinity", "true", "false"}

_TEXT_ID = pa.string().id
_STRINGS: Final = (
    *("string", "large_string", "string_view"),
    *("binary", "large_binary", "fixed_size_binary", "binary_view"),
)
_SURVEYS: Final[dict[tuple[str, ...], Callable[[Chunks], SurveyedColumn]]] = {
    ("integer", "floating", "boolean"): survey_numbers,
    ("date", "timestamp", "time", "duration"): survey_times,
}
"""Survey functions by the names of Arrow's type predicates, such as `is_date`."""


def survey_few_texts(column: pa.Array[Any]) -> SurveyedColumn | None:
    """Return the profile of a short column of plain numbers or words; None if it holds anything else.

    Each call of Arrow or NumPy takes as long as this whole function, and a table of three rows may have
    100,000 columns.

    `column`: at most `MAX_FEW` texts, null if missing.
    """
    cells: list[Any] = column.to_pylist()
    texts: list[str] = [cell for cell in cells if cell is not None] if column.null_count else cells
    if not texts:
        return None
    counted: dict[str, Any]
    if all(map(_WHOLE.fullmatch, texts)):
        values, counted = _count_ints(texts)
    elif all(map(_NUMBER.fullmatch, texts)) and any("." in text for text in texts):
        values, counted = _count_floats(texts)
    elif all(map(_is_words, texts)):
        values, counted = _count_words(texts)
    else:
        return None
    profile = ColumnProfile(
        kind="text",
        type_text=str(column.type),
        num_rows=len(cells),
        num_missing=len(cells) - len(texts),
        **counted,
        is_unique=counted["num_distinct"] == len(texts) > 1,
    )
    present = np.array([cell is not None for cell in cells]) if profile.num_missing else None
    is_ordered = profile.text is not None and profile.text.reads_as is not None
    return SurveyedColumn(profile, ComparableColumn(values, present, counted["num_distinct"], is_ordered))


def _is_words(text: str) -> bool:
    return _WORDS.fullmatch(text) is not None and text.strip().lower() not in _OTHER_WORDS


def _count_ints(texts: list[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    numbers = list(map(int, texts))
    known = sorted(set(numbers))
    return np.array(numbers, np.int64), {
        "num_distinct": len(known),
        "values": tuple(known),
        "low": known[0],
        "high": known[-1],
        "is_whole": True,
        "is_counter": len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))),
        "text": _describe("int", max(map(len, texts))),
    }


def _count_floats(texts: list[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    numbers = list(map(float, texts))
    known = sorted(set(numbers))
    is_whole = all(map(float.is_integer, numbers))
    return np.array(numbers, np.float64), {
        "num_distinct": len(known),
        "values": tuple(map(int, known)) if is_whole else None,
        "low": known[0],
        "high": known[-1],
        "is_whole": is_whole,
        "text": _describe("float", max(map(len, texts))),
    }


def _count_words(texts: list[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    mean_words = sum(len(text.split()) for text in texts) / len(texts)
    return np.array([codes[text] for text in texts], np.int32), {
        "num_distinct": len(codes),
        "values": tuple(sorted(codes)),
        "text": _describe(None, max(map(len, texts)), mean_words),
    }


@lru_cache(maxsize=1024)
def _describe(reads_as: TextKind | None, max_bytes: int, mean_words: float = 0.0) -> TextProfile:
    return TextProfile(reads_as=reads_as, max_bytes=max_bytes, mean_words=mean_words)


def survey_blocks(
    blocks: SequenceOf[Block],
    *,
    is_whole: bool,
    targets: Collection[str] = (),
    words: Mapping[str, SequenceOf[str]] | None = None,
    numbers: Mapping[str, NumberFormat] | None = None,
    labels: Collection[str] = (),
    num_threads: int | None = None,
) -> SourceProfile:
    """Return the profiles of all columns.

    `targets`: names of target columns; all other columns are checked for target leakage. `words`: texts that
    mark a missing value, by column; in a listed column no other markers are inferred. `labels`: names of
    target columns in which texts such as `NaN` are missing labels. `num_threads`: by default one per core.
    """
    num_threads = num_threads or count_cores()
    num_rows = sum(block.num_rows for block in blocks)
    files = blocks[0].files if blocks and blocks[0].reads_files else None
    known = words or {}

    def survey(name: str) -> SurveyedColumn:
        parts = [block.columns[name] for block in blocks if block.num_rows]
        return survey_column(parts, files, known.get(name), numbers.get(name) if numbers else None)

    names = list(blocks[0].columns) if blocks else []
    if num_rows < _THREADED_ROWS or len(names) == 1 or num_threads == 1:
        found = dict(zip(names, map(survey, names), strict=True))
    else:
        with ThreadPoolExecutor(num_threads, "penstock-survey") as pool:
            found = dict(zip(names, pool.map(survey, names), strict=True))
    for name in labels:
        if name in found and num_rows:
            parts = [block.columns[name] for block in blocks if block.num_rows]
            found[name] = _drop_labels(parts, found[name], files)
    leaks = _find_leaks({name: each.labels for name, each in found.items()}, targets) if targets else {}
    columns = {
        name: replace(each.profile, determines=leaks[name]) if name in leaks else each.profile
        for name, each in found.items()
    }
    return SourceProfile(columns, num_rows, is_whole)


def survey_column(
    parts: SequenceOf[RawColumn],
    files: NamedFiles | None = _NO_FOLDER,
    words: SequenceOf[str] | None = None,
    numbers: NumberFormat | None = None,
) -> SurveyedColumn:
    """Return the profile of one column.

    `files`: the files that the values may name; None if they name none. `words`: texts that mark a missing
    value; None to recognize well-known markers among numbers. `numbers`: declared format of numbers in texts;
    None to detect it.
    """
    if not parts:
        return SurveyedColumn(ColumnProfile(kind="empty", type_text="nothing", num_rows=0))
    if words:
        parts = [drop_missing_texts(part, words) for part in parts]
    survey = partial(_survey_arrow, files=files, finds_markers=words is None, numbers=numbers)
    if len(parts) == 1 and not isinstance(parts[0], np.ndarray) and parts[0].type.id == _TEXT_ID:
        # A column of a small CSV file, which may have 100,000 columns.
        is_short = len(parts[0]) <= MAX_FEW and numbers is None
        found = survey_few_texts(parts[0]) if is_short else None
        return found or survey(pa.chunked_array([parts[0]]))
    if all(isinstance(part, np.ndarray) for part in parts):
        arrays = [np.asarray(part) for part in parts]
        if any(array.ndim > 1 for array in arrays):
            return SurveyedColumn(survey_arrays(arrays))
        if any(array.dtype == object for array in arrays):
            values = [value for array in arrays for value in array.tolist()]
            return _survey_objects(values, survey, finds_markers=words is None)
    column = _join(parts)
    if column is None:
        names = dict.fromkeys(
            str(part.dtype if isinstance(part, np.ndarray) else part.type) for part in parts
        )
        text = ", ".join(names)
        return SurveyedColumn(ColumnProfile(kind="mixed", type_text=text, num_rows=sum(map(len, parts))))
    return survey(column)


def _survey_objects(
    values: SequenceOf[Any], survey: Callable[[Chunks], SurveyedColumn], *, finds_markers: bool
) -> SurveyedColumn:
    """Return the profile of Python objects; `survey` surveys those that Arrow can hold."""
    if (profile := survey_byte_objects(values)) is not None:
        return SurveyedColumn(profile)
    markers = count_markers(values) if finds_markers else {}
    column, profile = survey_objects(drop_texts(values) if markers else values)
    found = SurveyedColumn(profile) if column is None else survey(column)
    return add_markers(found, markers) if markers else found


def _join(parts: Iterable[RawColumn]) -> Chunks | None:
    """Return the column as one chunked array; None if the types of its blocks have no common type."""
    try:
        chunks: list[Any] = [pa.array(part) if isinstance(part, np.ndarray) else part for part in parts]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # complex numbers, structured types
    if len(chunks) == 1:
        return pa.chunked_array(chunks)
    types = {chunk.type for chunk in chunks} - {pa.null()}
    if len(types) == 1 and not any(chunk.type == pa.null() for chunk in chunks):
        return pa.chunked_array(chunks)
    try:
        # A block of missing values has the type null; whole numbers become floats if other blocks hold
        # floats.
        schema = pa.unify_schemas(
            [pa.schema([("", each)]) for each in types or {pa.null()}], promote_options="permissive"
        )
        wanted = schema.field(0).type
        return pa.chunked_array([chunk.cast(wanted) for chunk in chunks], wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None


def _survey_arrow(
    column: Chunks, files: NamedFiles | None, finds_markers: bool, numbers: NumberFormat | None
) -> SurveyedColumn:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType):
        chunks: list[Any] = column.chunks
        storage: Chunks = pa.chunked_array([chunk.storage for chunk in chunks])
        return _survey_arrow(storage, files, finds_markers, numbers)
    if pa.types.is_dictionary(kind):
        found = _survey_arrow(column.cast(kind.value_type), files, finds_markers, numbers)
        return replace(found, profile=replace(found.profile, is_coded=True))
    if pa.types.is_decimal(kind):
        found = survey_numbers(column.cast(pa.float64()))
        return replace(found, profile=replace(found.profile, type_text=str(kind)))
    if _is_one_of(kind, *_STRINGS):
        is_view = pa.types.is_string_view(kind)
        texts = column.cast(pa.large_string()) if is_view else column
        survey_strings = survey_texts if _is_one_of(kind, *_STRINGS[:3]) else survey_bytes
        return survey_strings(texts, files, finds_markers=finds_markers, numbers=numbers)
    for names, survey in _SURVEYS.items():
        if _is_one_of(kind, *names):
            return survey(column)
    return SurveyedColumn(survey_lists(column))


def _is_one_of(kind: pa.DataType, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def _find_leaks(
    labels: Mapping[str, ComparableColumn | None], targets: Collection[str]
) -> dict[str, tuple[str, ...]]:
    leaks: dict[str, tuple[str, ...]] = {}
    for name in targets:
        found = labels.get(name)
        target = None if found is None else LeakageTarget(found)
        if target is None or not target.can_be_checked:
            continue
        for other, column in labels.items():
            if other not in targets and column is not None and target.is_determined_by(column):
                leaks[other] = (*leaks.get(other, ()), name)
    return leaks


def _drop_labels(
    parts: SequenceOf[RawColumn], found: SurveyedColumn, files: NamedFiles | None
) -> SurveyedColumn:
    """Return a target surveyed without texts that mark a missing label."""
    if not may_hold_words(found.profile):
        return found
    texts = [_to_texts(part) for part in parts]
    counts: Counter[str] = sum(map(_count_labels, texts), Counter())
    if not counts:
        return found
    kept = survey_column([drop_missing_texts(part, MISSING_LABELS) for part in texts], files)
    profile = replace(
        kept.profile,
        type_text=found.profile.type_text,
        is_coded=found.profile.is_coded,
        unlabelled=dict(sorted(counts.items())),
    )
    return replace(kept, profile=profile)


def may_hold_words(profile: ColumnProfile) -> bool:
    """Return whether a column holds texts that are not numbers, dates or lists."""
    if profile.kind != "text" or profile.text is None or profile.markers:
        return False
    return profile.text.reads_as in (None, "bool")  # read in another way, markers are recognized among values


def _to_texts(part: RawColumn) -> RawColumn:
    if isinstance(part, np.ndarray):
        return part if part.dtype == object else pa.array(part)
    if isinstance(part, pa.ExtensionArray):
        return _to_texts(part.storage)
    if isinstance(part, pa.DictionaryArray):
        return _to_texts(part.dictionary_decode())
    return pc.cast(part, pa.large_string()) if pa.types.is_string_view(part.type) else part


def _count_labels(part: RawColumn) -> Counter[str]:
    if isinstance(part, np.ndarray):
        words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in part]
        stripped = [each.strip() for each in words if isinstance(each, str)]
        return Counter(each for each in stripped if each in MISSING_LABELS)
    if not pa.types.is_string(part.type) and not pa.types.is_large_string(part.type):
        return Counter()
    trimmed: Any = pc.ascii_trim_whitespace(part)
    chosen = trimmed.filter(pc.is_in(trimmed, pa.array(MISSING_LABELS, part.type)))
    return Counter({each["values"]: each["counts"] for each in pc.value_counts(chosen).to_pylist()})
