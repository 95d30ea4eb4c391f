"""Samples as dicts: an iterable, a generator, or a function that returns one of them.

In: dicts of Python values. Out: blocks. The keys of the first block are the columns; a key that a sample
lacks is a missing value. Errors of the user's code are not changed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import OptionError, SourceError
from penstock.foundation.json_text import MAX_DEPTH
from penstock.foundation.wording import find_nearest, show
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS, Block, RawColumn
from penstock.source.column import make_column
from penstock.source.cutter import estimate_bytes

_FIXED: Final = frozenset(
    {
        *(type(None), bool, int, float, str, bytes),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
        *(np.bool_, np.int32, np.int64, np.float32, np.float64, np.str_, np.datetime64),
    }
)


def copy_sample(sample: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Return a copy of a sample that shares no mutable object with the caller.

    `row`: index of the sample, from 0, for the error.
    """
    copied = dict(sample)
    for name, value in copied.items():
        if type(value) in _FIXED:
            continue
        try:
            copied[name] = copy_value(value)
        except RecursionError:
            raise _too_deep(name, row) from None
    return copied


def check_depth(name: str, values: Iterable[Any]) -> None:
    """Check the depth of nested lists: making a column of very deep lists would end the process."""
    nested = [(row, value) for row, value in enumerate(values) if isinstance(value, (list, tuple))]
    for _ in range(MAX_DEPTH):
        nested = [
            (row, item)
            for row, value in nested
            if not _FIXED.issuperset(map(type, value))
            for item in value
            if isinstance(item, (list, tuple))
        ]
        if not nested:
            return
    raise _too_deep(name, nested[0][0])


def _too_deep(name: object, row: int) -> SourceError:
    return SourceError(
        "depth of the value",
        row=row + 1,
        field=str(name),
        expected=f"at most {MAX_DEPTH} levels of nested lists",
        got="more",
        advice="Flatten the value, or leave it out.",
    )


def copy_value(value: Any, depth: int = 0) -> Any:
    """Return a value, or a copy of it if it is mutable."""
    if type(value) in _FIXED:
        return value
    if depth > MAX_DEPTH:
        raise RecursionError(f"more than {MAX_DEPTH} levels")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        return _copy_items(value, depth)
    if isinstance(value, Mapping):
        return {key: copy_value(inner, depth + 1) for key, inner in value.items()}
    return _copy_array(value, depth)


def _copy_items(value: list[Any] | tuple[Any, ...], depth: int) -> Any:
    is_fixed = _FIXED.issuperset(map(type, value))
    if type(value) is not list and is_fixed:
        return value
    if is_fixed:
        return list(value)
    items = [copy_value(item, depth + 1) for item in value]
    return items if isinstance(value, list) else tuple(items)


def _copy_array(value: Any, depth: int) -> Any:
    if isinstance(value, np.ndarray):
        copied = value.copy()
        if value.dtype == object and not _FIXED.issuperset(map(type, _flat(value))):
            for index in np.ndindex(value.shape):
                copied[index] = copy_value(value[index], depth + 1)
        return copied
    # Arrow arrays and NumPy scalars have this method too, but are immutable.
    if hasattr(value, "__array__") and not isinstance(value, (np.generic, pa.Array, pa.ChunkedArray)):
        return np.array(value)
    return value


def _flat(value: np.ndarray[Any, Any]) -> Iterable[Any]:
    items: Iterable[Any] = value.flat
    return items


class SampleSource:
    """Dicts from an iterable; one block of them is in memory at a time.

    The type of a column follows from the samples of each block, except that ints after floats become floats,
    and a block without any value has the type of the previous block. Types of blocks can still differ: lists
    may hold ints in one block and floats in the next, and arrays may have one shape in one block and several
    in the next.
    """

    num_bytes: int | None = None

    def __init__(
        self,
        begin: Callable[[], Iterable[Any]],
        *,
        name: str,
        is_repeatable: bool,
        num_rows: int | None = None,
    ) -> None:
        self.name = name
        self.is_repeatable = is_repeatable
        self.num_rows = num_rows
        self.declared: Mapping[str, Field] = {}
        self.forms: Mapping[str, Representation] = {}
        self.notes: tuple[str, ...] = ()
        self._begin = begin
        self._has_begun = False
        self._num_read: int | None = None

    def blocks(self) -> Iterator[Block]:
        """Yield the samples."""
        if self._has_begun and not self.is_repeatable:
            raise SourceError(
                f"{self.name} was already read and cannot be read again",
                advice="Pass a function that returns a new one.",
            )
        self._has_begun = True
        names: dict[str, None] = {}
        types: dict[str, pa.DataType] = {}
        first_row = 0
        for samples in _gather(self._iterate(), self.name):
            if not first_row:
                names = {name: None for sample in samples for name in sample}
                self._check_names(names)
            columns = {name: [sample.get(name) for sample in samples] for name in names}
            self._check_keys(samples, names, first_row)
            made = {name: _keep_type(make_column(values), name, types) for name, values in columns.items()}
            yield Block(first_row, len(samples), made)
            first_row += len(samples)
        if not first_row:
            raise SourceError(f"no rows: {self.name}", expected="at least one sample", got="none")
        self._num_read = first_row

    def provenance(self) -> list[dict[str, Any]]:
        """Return the name and kind of the source, and the number of samples."""
        return [{"name": self.name, "kind": "samples", "rows": self._num_read}]

    def _iterate(self) -> Iterator[Any]:
        given = self._begin()
        try:
            return iter(given)
        except TypeError:
            advice = "The function must yield samples, or return a list of them."
            raise OptionError(
                f"source: {self.name}", expected="an iterable of dicts", got=show(given), advice=advice
            ) from None

    def _check_names(self, names: Iterable[object]) -> None:
        for name in names:
            if not isinstance(name, str):
                raise SourceError(f"key of a sample in {self.name}", expected="a str", got=show(name))

    def _check_keys(
        self, samples: list[Mapping[str, Any]], names: Mapping[str, None], first_row: int
    ) -> None:
        for row, sample in enumerate(samples, first_row):
            if sample.keys() <= names.keys():
                continue
            new = next(name for name in sample if name not in names)
            nearest = find_nearest(str(new), names)
            raise SourceError(
                "keys of the sample",
                row=row + 1,
                field=str(new),
                expected="the keys of the first samples",
                got=f"a new key {show(new)}",
                advice=f"Did you mean {show(nearest)}?"
                if nearest
                else "Add the key to every sample, with None for a missing value.",
            )


def _gather(samples: Iterator[Any], source: str) -> Iterator[list[Mapping[str, Any]]]:
    """Yield lists of samples, limited by their number and approximate size."""
    gathered: list[Mapping[str, Any]] = []
    num_bytes = 0
    for row, sample in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise SourceError(
                f"{source}: the sample",
                row=row + 1,
                expected="a dict of values by column",
                got=show(sample),
                advice="Yield {'name': value, …} for each row.",
            )
        copied = copy_sample(sample, row)
        size = sum(map(estimate_bytes, copied.values()))
        if gathered and (len(gathered) == BLOCK_ROWS or num_bytes + size > BLOCK_BYTES):
            yield gathered
            gathered, num_bytes = [], 0
        gathered.append(copied)
        num_bytes += size
    if gathered:
        yield gathered


def _keep_type(column: RawColumn, name: str, types: dict[str, pa.DataType]) -> RawColumn:
    if not isinstance(column, pa.Array):
        return column
    before = types.get(name)
    if before is not None and pa.types.is_null(column.type):
        missing: RawColumn = column.cast(before)
        return missing
    if before == pa.float64() and pa.types.is_integer(column.type):
        return column.cast(before, safe=False)
    if not pa.types.is_null(column.type):
        types[name] = column.type
    return column
