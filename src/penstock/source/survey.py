"""Look at the first blocks of a source: what each column holds.

In: blocks. Out: facts, from which `plan/inference.py` decides. Every step works on whole columns: a hundred
thousand rows of forty columns take a small part of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.plan.profile import ColumnFacts, SourceFacts
from penstock.source.block import Block, RawColumn
from penstock.source.column import drop_words
from penstock.source.few import MAX_FEW, survey_few_texts
from penstock.source.items import count_markers, drop_texts, survey_arrays, survey_lists, survey_objects
from penstock.source.parse import Chunks
from penstock.source.twin import Labels, Target
from penstock.source.values import (
    Found,
    add_markers,
    survey_bytes,
    survey_numbers,
    survey_texts,
    survey_times,
)

_TEXT_ID = pa.string().id


def survey_blocks(
    blocks: SequenceOf[Block],
    *,
    is_whole: bool,
    targets: Collection[str] = (),
    words: Mapping[str, SequenceOf[str]] | None = None,
) -> SourceFacts:
    """Collect the facts of every column.

    Args:
        blocks: The first ones of a source.
        is_whole: Whether there are no others.
        targets: Columns that a model is to predict; the others are searched for twins of them.
        words: Texts that mean a missing value, by column; in a column that is listed no others are found.
    """
    num_rows = sum(block.num_rows for block in blocks)
    folder = blocks[0].folder if blocks else None
    known = words or {}
    found = {
        name: survey_column(
            [block.columns[name] for block in blocks if block.num_rows], folder, known.get(name)
        )
        for name in (blocks[0].columns if blocks else ())
    }
    twins = _find_twins({name: each.labels for name, each in found.items()}, targets) if targets else {}
    columns = {
        name: replace(each.facts, determines=twins[name]) if name in twins else each.facts
        for name, each in found.items()
    }
    return SourceFacts(columns, num_rows, is_whole)


def survey_column(
    parts: SequenceOf[RawColumn], folder: str | None = None, words: SequenceOf[str] | None = None
) -> Found:
    """Collect the facts of one column, given block by block.

    Args:
        parts: The column, block by block.
        folder: What relative paths are relative to.
        words: Texts that mean a missing value; None finds those that are well known among numbers.
    """
    if not parts:
        return Found(ColumnFacts(kind="empty", type_text="nothing", num_rows=0))
    if words:
        parts = [drop_words(part, words) for part in parts]
    survey = partial(_survey_arrow, folder=folder, finds_markers=words is None)
    if len(parts) == 1 and not isinstance(parts[0], np.ndarray) and parts[0].type.id == _TEXT_ID:
        # A column of a small CSV, which may have a hundred thousand of them.
        found = survey_few_texts(parts[0]) if len(parts[0]) <= MAX_FEW else None
        return found or survey_texts(pa.chunked_array([parts[0]]), folder, finds_markers=words is None)
    if all(isinstance(part, np.ndarray) for part in parts):
        arrays = [np.asarray(part) for part in parts]
        if any(array.ndim > 1 for array in arrays):
            return Found(survey_arrays(arrays))
        if any(array.dtype == object for array in arrays):
            values = [value for array in arrays for value in array.tolist()]
            markers = count_markers(values) if words is None else {}
            column, facts = survey_objects(drop_texts(values) if markers else values)
            found = Found(facts) if column is None else survey(column)
            return add_markers(found, markers) if markers else found
    column = _join(parts)
    if column is None:
        names = dict.fromkeys(
            str(part.dtype if isinstance(part, np.ndarray) else part.type) for part in parts
        )
        text = ", ".join(names)
        return Found(ColumnFacts(kind="mixed", type_text=text, num_rows=sum(map(len, parts))))
    return survey(column)


def _join(parts: Iterable[RawColumn]) -> Chunks | None:
    """Return the column as one; None where its blocks are of types that do not go together."""
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
        # A block of missing values has no type of its own; whole numbers beside floats become floats.
        schema = pa.unify_schemas(
            [pa.schema([("", each)]) for each in types or {pa.null()}], promote_options="permissive"
        )
        wanted = schema.field(0).type
        return pa.chunked_array([chunk.cast(wanted) for chunk in chunks], wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None


def _survey_arrow(column: Chunks, folder: str | None, finds_markers: bool) -> Found:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType):
        chunks: list[Any] = column.chunks
        storage: Chunks = pa.chunked_array([chunk.storage for chunk in chunks])
        return _survey_arrow(storage, folder, finds_markers)
    if pa.types.is_dictionary(kind):
        found = _survey_arrow(column.cast(kind.value_type), folder, finds_markers)
        return replace(found, facts=replace(found.facts, is_coded=True))
    if pa.types.is_decimal(kind):
        found = survey_numbers(column.cast(pa.float64()))
        return replace(found, facts=replace(found.facts, type_text=str(kind)))
    if _is_one_of(kind, *_STRINGS):
        is_view = pa.types.is_string_view(kind)
        texts = column.cast(pa.large_string()) if is_view else column
        survey_strings = survey_texts if _is_one_of(kind, *_STRINGS[:3]) else survey_bytes
        return survey_strings(texts, folder, finds_markers=finds_markers)
    for names, survey in _SURVEYS.items():
        if _is_one_of(kind, *names):
            return survey(column)
    return Found(survey_lists(column))


_STRINGS: Final = (
    *("string", "large_string", "string_view"),
    *("binary", "large_binary", "fixed_size_binary", "binary_view"),
)
_SURVEYS: Final[dict[tuple[str, ...], Callable[[Chunks], Found]]] = {
    ("integer", "floating", "boolean"): survey_numbers,
    ("date", "timestamp", "time", "duration"): survey_times,
}
"""By the names that Arrow's tests of types have."""


def _is_one_of(kind: pa.DataType, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def _find_twins(labels: Mapping[str, Labels | None], targets: Collection[str]) -> dict[str, tuple[str, ...]]:
    twins: dict[str, tuple[str, ...]] = {}
    for name in targets:
        told = labels.get(name)
        target = None if told is None else Target(told)
        if target is None or not target.can_be_checked:
            continue
        for other, column in labels.items():
            if other not in targets and column is not None and target.is_determined_by(column):
                twins[other] = (*twins.get(other, ()), name)
    return twins
