"""Columns of some rows that are made when they are asked for.

In: what the core decoded, or columns in memory, and row numbers. Out: a mapping of columns, from which a
compiled pipeline reads without making Python objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, CodedColumns, Dense, Dictionary, Mask, Ragged

_NONE, _NUMBERS, _STRINGS, _CODES = range(4)
_NO_VIEW: Final = (_NONE, None, None, None, None, None)


class ColumnStorage(Protocol):
    """Columns in memory, as Python and as the core see them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    def native(self) -> _native.ColumnSet:
        """The columns in the order of the names, for the core."""

    def column(self, name: str) -> CodedColumn:
        """Return a column with all rows; raise KeyError for an unknown name."""


class DecodedFields(NamedTuple):
    """Properties of decoded columns that are known before any are decoded.

    Attributes:
        names: Names of the fields.
        makers: For each field, the function that makes its column of the arrays of the core.
    """

    names: tuple[str, ...]
    makers: tuple[Callable[[Any, Any, Mask | None], CodedColumn], ...]


class NativeRows(NamedTuple):
    """Rows that the core can read by itself.

    Attributes:
        names: Names of the columns.
        source: Reader of the files, or columns in memory.
        rows: Numbers of the rows.
        read: Returns the columns of some consecutive ones of these rows, from the first to an exclusive end;
            None if one has a fault. Given if the rows were taken out of buffers, where they are not found
            again.
    """

    names: tuple[str, ...]
    source: _native.RowReader | _native.ColumnSet
    rows: NDArray[np.int64]
    read: Callable[[int, int], CodedColumns | None] | None = None


class DecodedColumns:
    """Columns that the core decoded; a column is made when it is asked for."""

    __slots__ = ("_fields", "names", "native")

    def __init__(self, fields: DecodedFields, native: _native.ColumnSet) -> None:
        self._fields = fields
        self.names = fields.names
        self.native = native

    def column(self, name: str) -> CodedColumn:
        """Return a column, with all rows."""
        try:
            number = self.names.index(name)
        except ValueError:
            raise KeyError(name) from None
        return self._fields.makers[number](*self.native.arrays(number))

    def all_columns(self) -> dict[str, CodedColumn]:
        """Return all columns, which is faster than one by one."""
        fields = zip(self.names, self._fields.makers, self.native.all_arrays(), strict=True)
        return {name: make(*arrays) for name, make, arrays in fields}


class PlainColumns:
    """Columns in memory; their arrays must not change."""

    __slots__ = ("_columns", "names", "native")

    def __init__(self, columns: CodedColumns, num_rows: int) -> None:
        self._columns = columns
        self.names = tuple(columns)
        views = [_VIEWS.get(type(column), _view_nothing)(column) for column in columns.values()]
        self.native = _native.ColumnSet(num_rows, views)

    def column(self, name: str) -> CodedColumn:
        """Return a column, with all rows."""
        return self._columns[name]


class RowColumns(Mapping[str, CodedColumn]):
    """Some rows of columns, by field name; a column is made when it is asked for.

    Attributes:
        storage: All rows.
        rows: Numbers of the rows; None for all rows of the storage.
    """

    __slots__ = ("_made", "_replaced", "rows", "storage")

    def __init__(
        self,
        storage: ColumnStorage,
        rows: NDArray[np.int64] | None = None,
        replaced: CodedColumns | None = None,
    ) -> None:
        """Make the mapping; `replaced` are columns of these rows instead of, or beside, those stored."""
        self.storage = storage
        self.rows = rows
        self._replaced = replaced or {}
        self._made: dict[str, CodedColumn] = {}

    def __getitem__(self, name: str) -> CodedColumn:
        if name in self._replaced:
            return self._replaced[name]
        found = self._made.get(name)
        if found is None:
            found = self.storage.column(name)
            if self.rows is not None:
                found = found.take(self.rows)
            self._made[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self.storage.names
        yield from (name for name in self._replaced if name not in self.storage.names)

    def __len__(self) -> int:
        return len(self.storage.names) + sum(name not in self.storage.names for name in self._replaced)

    def __contains__(self, name: object) -> bool:
        return name in self.storage.names or name in self._replaced

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.storage.native.num_rows if self.rows is None else len(self.rows)

    def replace(self, columns: CodedColumns) -> RowColumns:
        """Return the same rows, with some columns replaced or added."""
        changed = RowColumns(self.storage, self.rows, {**self._replaced, **columns})
        changed._made = self._made
        return changed

    def take(self, rows: NDArray[np.int64]) -> RowColumns:
        """Return some of the rows, in the order of `rows`."""
        chosen = rows if self.rows is None else self.rows[rows]
        return RowColumns(
            self.storage, chosen, {name: column.take(rows) for name, column in self._replaced.items()}
        )


def count_rows(columns: CodedColumns) -> int:
    """Return the number of rows of columns; 0 without any."""
    if isinstance(columns, RowColumns):
        return columns.num_rows
    return len(next(iter(columns.values()))) if columns else 0


_View: TypeAlias = tuple[int, Any, Any, Any, Any, Any]


def _view_nothing(column: Any) -> _View:  # noqa: ARG001
    return _NO_VIEW


def _view_dense(column: Dense) -> _View:
    return _view_numbers(column.values, None, column.present)


def _view_numbers(values: NDArray[Any], offsets: Any, present: Mask | None) -> _View:
    if values.dtype.kind not in "biuf" or not values.dtype.isnative or values.ndim < 1:
        return _NO_VIEW
    items = _by_rows(values) if offsets is None else _contiguous(values)
    return _NUMBERS, items, None, None, offsets, _by_rows(present)


def _view_strings(column: Bytes, offsets: Any, present: Mask | None) -> _View:
    arrange = _by_rows if column.starts.strides == column.stops.strides else _contiguous
    spans = (_contiguous(column.arena), arrange(column.starts), arrange(column.stops))
    return _STRINGS, *spans, offsets, _by_rows(present)


def _view_lists(column: Ragged) -> _View:
    if isinstance(column.values, Ragged):
        return _NO_VIEW
    offsets = _contiguous(column.offsets)
    if isinstance(column.values, Bytes):
        return _view_strings(column.values, offsets, column.present)
    return _view_numbers(column.values, offsets, column.present)


def _contiguous(array: NDArray[Any] | None) -> NDArray[Any] | None:
    if array is None or (array.flags.c_contiguous and array.flags.aligned):
        return array
    return np.require(array, requirements=("C", "A"))


def _by_rows(array: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return an array whose rows are contiguous, but possibly far from each other."""
    if array is None or (array.flags.aligned and array.strides[0] >= 0 and array[:1].flags.c_contiguous):
        return array
    return _contiguous(array)


_VIEWS: Final[dict[type, Callable[[Any], _View]]] = {
    Dense: _view_dense,
    Bytes: lambda column: _view_strings(column, None, column.present),
    Ragged: _view_lists,
    Dictionary: lambda column: (
        _CODES,
        _by_rows(column.codes),
        None,
        None,
        None,
        _by_rows(column.present),
    ),
}
