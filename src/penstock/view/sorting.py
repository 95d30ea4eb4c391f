"""Rows in the order of a field: one value per selected record is read, and nothing else is kept.

In: rows, which of them are selected, and what to sort by. Out: `SortedRows`. The number of records is
limited, so that memory is, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, Column, Columns, Dense
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.errors import OptionError, PenstockError
from penstock.filter.operand import count_bytes, count_values
from penstock.filter.scan import scan
from penstock.foundation.wording import show
from penstock.read.bitmap import Bitmap
from penstock.read.rows import Rows
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema
from penstock.view.opened_data import SCAN_BYTES, BoundedRows
from penstock.view.scan_jobs import Watch

MAX_SORTED: Final = 4_000_000
"""Largest number of records that are sorted: their values then take at most about 100 MB while sorting."""

_STRING_BYTES: Final = 48 << 20  # of all strings together while they are sorted
_LONGEST_PREFIX: Final = 64

_ReadKey: TypeAlias = Callable[[Column], NDArray[Any]]


class SortedRows(NamedTuple):
    """Row numbers in a sorted order; `prefix` is the number of compared bytes if texts are longer."""

    rows: NDArray[Any]
    prefix: int = 0

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.rows.nbytes


class _Key(NamedTuple):
    read: _ReadKey
    dtype: Any
    meaning: str


def describe_key(field: Field) -> str | None:
    """Return what a field is sorted by, such as "value" or "number of values"; None if it cannot be."""
    key = _make_key(field, 1)
    return None if key is None else key.meaning


def check_count(num_records: int) -> None:
    """Refuse to sort too many records."""
    if num_records > MAX_SORTED:
        raise OptionError(
            "sort",
            field="sort",
            expected=f"at most {MAX_SORTED:,} records",
            got=f"{num_records:,}",
            advice="Select fewer records with a filter, a search or one file, then sort those.",
        )


def sort_by_field(
    rows: BoundedRows,
    schema: Schema,
    name: str,
    selected: Bitmap | None,
    watch: Watch,
    *,
    descending: bool = False,
    strict: bool = False,
) -> SortedRows:
    """Return the selected rows sorted by a field; those without a value, and bad records, come last."""
    num_records = len(rows) if selected is None else len(selected)
    check_count(num_records)
    key = _make_key(schema[name], num_records)
    if key is None:
        got = f"a {schema[name].type_name}"
        raise OptionError(
            f"sort by {show(name)}", field="sort", expected="a field that has an order", got=got
        )
    dtype = np.dtype([("key", key.dtype), ("has", np.bool_), ("cut", np.bool_)])

    def measure(columns: Columns, num_rows: int) -> NDArray[Any]:
        column = columns[name]
        made = np.zeros(num_rows, dtype)
        values = key.read(column)
        made["key"] = values
        made["has"] = column.mask() if schema[name].default is None else True
        if values.dtype.kind == "f":
            made["has"] &= ~np.isnan(values)
        if isinstance(column, Bytes) and made["key"].dtype.kind == "S":
            made["cut"] = column.sizes > made["key"].dtype.itemsize
        return made

    plan = DecodePlan(schema.select(name), strict=strict)
    keys, numbers, has = (
        np.empty(num_records, kind) for kind in (key.dtype, _row_dtype(len(rows)), np.bool_)
    )
    at, is_cut = 0, False
    with closing(scan(rows, plan, CountedLosses(), measure, rows.num_threads, SCAN_BYTES)) as blocks:
        for start, mask, values in _select(blocks, selected):
            watch.report(start, len(rows))
            end = at + len(values)
            keys[at:end], has[at:end] = values["key"], values["has"]
            numbers[at:end] = start + np.flatnonzero(mask)
            is_cut = is_cut or bool(values["cut"].any())
            at = end
    ordered = sort_by_keys(keys, numbers, has, descending=descending)
    return SortedRows(ordered, np.dtype(key.dtype).itemsize if is_cut else 0)


def sort_by_keys(
    keys: NDArray[Any], rows: NDArray[Any], has: NDArray[np.bool_], *, descending: bool
) -> NDArray[Any]:
    """Return rows sorted by their keys; equal ones stay in order, and those without a key come last."""
    keyed, known = keys[has], rows[has]
    if descending:
        order = len(keyed) - 1 - np.argsort(keyed[::-1], kind="stable")[::-1]
    else:
        order = np.argsort(keyed, kind="stable")
    return np.concatenate([known[order], rows[~has]])


def sort_by_size(
    rows: Rows, selected: Bitmap | None, _: Watch | None = None, *, descending: bool = False
) -> SortedRows:
    """Return the selected rows sorted by the size of their records, which the indexes hold."""
    num_records = len(rows) if selected is None else len(selected)
    check_count(num_records)
    sizes = np.empty(num_records, np.int64)
    numbers = np.empty(num_records, _row_dtype(len(rows)))
    at = 0
    for number, shard in enumerate(rows.shards):
        start = rows.starts[number]
        mask = np.ones(len(shard), np.bool_)
        if selected is not None:
            mask = selected.to_mask(start, start + len(shard))
        end = at + int(mask.sum())
        sizes[at:end] = np.diff(shard.index.offsets.astype(np.int64))[mask]
        numbers[at:end] = start + np.flatnonzero(mask)
        at = end
    has = np.ones(num_records, np.bool_)
    return SortedRows(sort_by_keys(sizes, numbers, has, descending=descending))


class CountedLosses(Losses):
    """Counts bad records without keeping their errors."""

    def __init__(self) -> None:
        super().__init__("collect", 0)
        self.count = 0

    def add(self, row: int, error: PenstockError) -> None:  # noqa: ARG002 - as of every policy
        """Count a bad record."""
        self.count += 1


def _select(
    blocks: Iterator[Any], selected: Bitmap | None
) -> Iterator[tuple[int, NDArray[np.bool_], NDArray[Any]]]:
    for start, values in blocks:
        if selected is None:
            yield start, np.ones(len(values), np.bool_), values
        else:
            mask = selected.to_mask(start, start + len(values))
            yield start, mask, values[mask]


def _row_dtype(num_rows: int) -> Any:
    return np.uint32 if num_rows <= np.iinfo(np.uint32).max else np.int64


def _make_key(field: Field, num_records: int) -> _Key | None:
    return KEYS[type(field)](field, num_records)


def _read_numbers(column: Column) -> NDArray[Any]:
    return Dense.of(column).values


def _string_key(num_records: int) -> _Key:
    width = max(8, min(_LONGEST_PREFIX, _STRING_BYTES // max(1, num_records)))

    def read(column: Column) -> NDArray[Any]:
        strings = Bytes.of(column)
        view = strings.arena.data
        spans = zip(strings.starts.tolist(), strings.stops.tolist(), strict=True)
        return np.array([bytes(view[a : min(b, a + width)]) for a, b in spans], f"S{width}")

    return _Key(read, f"S{width}", "value")


def _category_key(field: Category, num_records: int) -> _Key:
    return _Key(_read_numbers, np.int64, "value") if field.dtype == "int64" else _string_key(num_records)


_SIZE: Final = _Key(count_bytes, np.int64, "number of bytes")

# What the records are sorted by, for each type of field; None for a type without an order.
KEYS: Final[dict[type[Field], Callable[[Any, int], _Key | None]]] = {
    Number: lambda field, _: _Key(_read_numbers, field.dtype, "value"),
    Category: _category_key,
    Date: lambda _, __: _Key(_read_numbers, np.int64, "date"),
    Text: lambda _, num_records: _string_key(num_records),
    Image: lambda _, __: _SIZE,
    BytesField: lambda _, __: _SIZE,
    Sequence: lambda _, __: _Key(count_values, np.int64, "number of values"),
    Tensor: lambda _, __: None,
}
