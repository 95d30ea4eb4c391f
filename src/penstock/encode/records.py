"""Encodes columns as the bodies of records, and hashes rows, in the compiled core.

In: columns of a schema. Out: one body per row, which `shards/` frames; 64-bit hashes that decide the splits;
128-bit digests that decide which rows are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock import _native
from penstock.columns import Bytes, Column, Dense, Mask, Ragged
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.storage.deferred import Deferred

_INTS, _FLOATS, _STRINGS, _RAW, _DEFERRED = range(5)
_LARGE: Final = frozenset({"bytes", "image"})
_INT64: Final = np.dtype(np.int64)
_FLOAT32: Final = np.dtype(np.float32)
_PLAIN: Final[tuple[Literal["C", "A"], ...]] = ("C", "A")  # without gaps, aligned

EncodableColumns: TypeAlias = Mapping[str, Column | Deferred]


class Bodies(NamedTuple):
    """Concatenated bodies of records; row i is `arena[offsets[i]:offsets[i + 1]]`."""

    arena: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class RecordEncoder:
    """Encodes columns by a schema; any number of threads can use one encoder.

    Attributes:
        schema: Schema of the columns.
        is_sequence: Whether the records are SequenceExamples. Their bodies are complete messages, and their
            columns cannot be deferred.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.is_sequence = any(field.is_feature_list for field in schema.values())
        self._fields = [(name, field, _source(field)) for name, field in schema.items()]
        self._numbers = {name: number for number, name in enumerate(schema)}
        self._encoders: dict[frozenset[str], _native.Encoder] = {}

    def prepare(self, columns: EncodableColumns, num_rows: int) -> EncodableRows:
        """Return rows to encode, hash and digest; their columns are checked once."""
        return EncodableRows(self, columns, num_rows, self._core(columns), self._arrays(columns))

    def encode(self, columns: EncodableColumns, num_rows: int) -> Bodies:
        """Return one body per row, without deferred fields."""
        return self.prepare(columns, num_rows).encode()

    def digest_rows(
        self, columns: EncodableColumns, num_rows: int, names: Iterable[str], *, is_named: bool = True
    ) -> NDArray[np.uint64]:
        """Return one digest per row; see `EncodableRows.digest_rows`."""
        return self.prepare(columns, num_rows).digest_rows(names, is_named=is_named)

    def find(self, names: Iterable[str]) -> list[tuple[str, int]]:
        """Return names of fields with their indices in the schema."""
        try:
            return [(name, self._numbers[name]) for name in names]
        except KeyError as error:
            raise ValueError(f"no field {error}") from None

    def _core(self, columns: EncodableColumns) -> _native.Encoder:
        deferred = frozenset(name for name, column in columns.items() if isinstance(column, Deferred))
        if deferred not in self._encoders:
            fields = [
                (
                    field.wire_key(name),
                    _DEFERRED if name in deferred else source,
                    field.is_feature_list,
                )
                for name, field, source in self._fields
            ]
            self._encoders[deferred] = _native.Encoder(fields, self.is_sequence)
        return self._encoders[deferred]

    def _arrays(self, columns: EncodableColumns) -> list[_native.EncodeColumn]:
        return [_arrays(field, source, columns[name]) for name, field, source in self._fields]


class EncodableRows:
    """Rows of columns, in the arrays that the compiled core expects.

    Attributes:
        columns: Columns by field name.
        num_rows: Number of rows.
    """

    def __init__(
        self,
        encoder: RecordEncoder,
        columns: EncodableColumns,
        num_rows: int,
        core: _native.Encoder,
        arrays: list[_native.EncodeColumn],
    ) -> None:
        self.columns = columns
        self.num_rows = num_rows
        self._encoder = encoder
        self._core = core
        self._arrays = arrays

    def encode(self) -> Bodies:
        """Return one body per row, without deferred fields."""
        return Bodies(*self._core.encode(self._arrays, self.num_rows))

    def hash_rows(self, names: Iterable[str], *, is_named: bool = True) -> NDArray[np.uint64]:
        """Return one hash per row over some fields.

        The hash does not depend on the order of the fields, nor on fields that are missing from a row. A
        whole number has the same hash as the float that equals it.
        """
        numbers = [number for _, number in self._encoder.find(names)]
        return self._core.hash_rows(self._arrays, self.num_rows, numbers, is_named)

    def digest_rows(self, names: Iterable[str], *, is_named: bool = True) -> NDArray[np.uint64]:
        """Return one digest per row over some fields, as two words: shape (num_rows, 2).

        Two rows have the same digest if, and only if, they have the same values in these fields. The order of
        the fields does not matter, and a field that is missing from a row is left out. As for `hash_rows`,
        0.0 equals -0.0.
        """
        # Values of these types are deferred in some blocks, where only their digests are known.
        schema = self._encoder.schema
        fields = [(number, schema[name].type_name in _LARGE) for name, number in self._encoder.find(names)]
        words = self._core.digest_rows(self._arrays, self.num_rows, fields, is_named)
        return words.reshape(self.num_rows, 2)


def _source(field: Field) -> int:
    """Return the code by which the core finds the values of a field in its column."""
    if field.kind == "int64":
        return _INTS
    if field.kind == "float":
        return _FLOATS
    is_raw = isinstance(field, Tensor) or getattr(field, "dtype", None) == "float64"
    return _RAW if is_raw else _STRINGS


def _arrays(field: Field, source: int, column: Column | Deferred) -> _native.EncodeColumn:
    present = None if column.present is None else np.ascontiguousarray(column.present)
    return _ARRAYS[type(column)](field, source, column, present)


def _deferred(field: Field, source: int, column: Deferred, present: Mask | None) -> _native.EncodeColumn:  # noqa: ARG001
    return column.hashes, column.digests.reshape(-1), None, None, None, 1, present


def _strings(field: Field, source: int, column: Bytes, present: Mask | None) -> _native.EncodeColumn:  # noqa: ARG001
    return column.arena, _ints(column.starts), _ints(column.stops), None, None, 1, present


def _lists(field: Field, source: int, column: Ragged, present: Mask | None) -> _native.EncodeColumn:  # noqa: ARG001
    if not isinstance(field, Sequence):
        raise TypeError(f"expected a sequence for a column of lists, got {field!r}")
    if field.is_feature_list:
        return _steps(field, column, present)
    values, starts, stops = _flat(field, column.values)
    return values, starts, stops, _ints(column.offsets), None, 1, present


def _dense(field: Field, source: int, column: Dense, present: Mask | None) -> _native.EncodeColumn:
    values = column.values
    count = math.prod(values.shape[1:])
    if source == _RAW:
        is_number = not isinstance(field, Tensor)
        rows = _flat_array(values, field.dtype if isinstance(field, Tensor) else np.float64)
        mark = True if is_number else None
        return rows.view(np.uint8), None, None, None, mark, count * rows.dtype.itemsize, present
    dtype = _INT64 if source == _INTS else _FLOAT32
    return _flat_array(values, dtype), None, None, None, None, count, present


def _steps(field: Sequence, column: Ragged, present: Mask | None) -> _native.EncodeColumn:
    steps, (offsets, *inner) = column.nested()
    count = int(steps.shape[1]) if isinstance(steps, np.ndarray) and steps.ndim > 1 else 1
    if len(inner) > 1 or (inner and count > 1):
        raise TypeError(f"expected lists of at most two levels, got {column!r}")
    values, starts, stops = _flat(field, steps)
    return values, starts, stops, _ints(offsets), _ints(inner[0]) if inner else None, count, present


def _flat(
    field: Field, values: NDArray[Any] | Bytes | Ragged
) -> tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | None]:
    if isinstance(values, np.ndarray):
        return _flat_array(values, np.int64 if _source(field) == _INTS else np.float32), None, None
    strings = Bytes.of(values)
    return strings.arena, _ints(strings.starts), _ints(strings.stops)


# The arrays that the core takes, by the class of the column.
_ARRAYS: dict[type, Callable[[Field, int, Any, Mask | None], _native.EncodeColumn]] = {
    Dense: _dense,
    Bytes: _strings,
    Ragged: _lists,
    Deferred: _deferred,
}


def _flat_array(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return values as the core expects them: in native byte order, contiguous and aligned."""
    flat = _require(values, dtype)
    return flat if flat.ndim == 1 else flat.reshape(-1)


def _ints(offsets: NDArray[Any]) -> NDArray[np.int64]:
    return _require(offsets, _INT64)


def _require(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    # Nearly all arrays pass this check, and a table can have 100,000 columns: np.require is ten times slower.
    flags = values.flags
    if values.dtype is dtype and flags.c_contiguous and flags.aligned:
        return values
    return np.require(values, dtype, _PLAIN)
