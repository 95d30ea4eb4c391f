"""Columns into the bodies of records, and into hashes of rows, by the compiled core.

In: columns of a schema. Out: one body per row, which `shards/` frames; 64-bit hashes that decide the splits;
128-bit digests that decide which rows are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock import _native
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.types import Bytes, Column, Deferred, Dense, Mask, Ragged

_INTS, _FLOATS, _STRINGS, _RAW, _DEFERRED = range(5)
_LARGE: Final = frozenset({"bytes", "image"})
_PLAIN: Final[tuple[Literal["C", "A"], ...]] = ("C", "A")  # without gaps, aligned

EncodableColumns: TypeAlias = Mapping[str, Column | Deferred]


class Bodies(NamedTuple):
    """Bodies of records, one behind the other; row i is `arena[offsets[i]:offsets[i + 1]]`."""

    arena: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class RecordEncoder:
    """Encodes columns by a schema; any number of threads may use one.

    Attributes:
        is_sequence: Whether the records are SequenceExamples. Their bodies are whole messages, and no column
            of theirs may be deferred.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.is_sequence = any(field.is_feature_list for field in schema.values())
        self._numbers = {name: number for number, name in enumerate(schema)}
        self._encoders: dict[frozenset[str], _native.Encoder] = {}

    def encode(self, columns: EncodableColumns, num_rows: int) -> Bodies:
        """Return a body a row, without what is deferred."""
        return Bodies(*self._core(columns).encode(self._arrays(columns), num_rows))

    def hash_rows(
        self, columns: EncodableColumns, num_rows: int, names: Iterable[str], *, is_named: bool = True
    ) -> NDArray[np.uint64]:
        """Return a hash a row over some fields.

        It does not depend on the order of the fields, nor on those that a row lacks; and a whole number has
        the hash of the float that equals it.

        Args:
            columns: All columns of the schema.
            num_rows: How many rows they have.
            names: The fields that count.
            is_named: Whether the names of the fields count too.
        """
        numbers = [number for _, number in self._find(names)]
        return self._core(columns).hash_rows(self._arrays(columns), num_rows, numbers, is_named)

    def digest_rows(
        self, columns: EncodableColumns, num_rows: int, names: Iterable[str], *, is_named: bool = True
    ) -> NDArray[np.uint64]:
        """Return one digest per row over some fields, as two words: shape (num_rows, 2).

        Two rows have the same digest if, and only if, they have the same values in these fields. The order of
        the fields does not matter, and a field that is missing from a row is left out. As for `hash_rows`,
        0.0 equals -0.0.

        Args:
            columns: All columns of the schema.
            num_rows: How many rows they have.
            names: The fields that count.
            is_named: Whether the names of the fields count too.
        """
        # Values of these types are deferred in some blocks, where only their digests are known.
        fields = [(number, self.schema[name].type_name in _LARGE) for name, number in self._find(names)]
        words = self._core(columns).digest_rows(self._arrays(columns), num_rows, fields, is_named)
        return words.reshape(num_rows, 2)

    def _find(self, names: Iterable[str]) -> list[tuple[str, int]]:
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
                    _DEFERRED if name in deferred else _source(field),
                    field.is_feature_list,
                )
                for name, field in self.schema.items()
            ]
            self._encoders[deferred] = _native.Encoder(fields, self.is_sequence)
        return self._encoders[deferred]

    def _arrays(self, columns: EncodableColumns) -> list[_native.EncodeColumn]:
        return [_arrays(field, columns[name]) for name, field in self.schema.items()]


def _source(field: Field) -> int:
    """Return how the core finds the values of a field in its column."""
    if field.kind == "int64":
        return _INTS
    if field.kind == "float":
        return _FLOATS
    is_raw = isinstance(field, Tensor) or getattr(field, "dtype", None) == "float64"
    return _RAW if is_raw else _STRINGS


def _arrays(field: Field, column: Column | Deferred) -> _native.EncodeColumn:
    present = None if column.present is None else np.ascontiguousarray(column.present)
    if isinstance(column, Deferred):
        return column.hashes, column.digests.reshape(-1), None, None, None, 1, present
    if isinstance(column, Bytes):
        return column.arena, _ints(column.starts), _ints(column.stops), None, None, 1, present
    if isinstance(column, Dense):
        return _dense(field, column.values, present)
    if not isinstance(field, Sequence):
        raise TypeError(f"{field!r} has no column of lists")
    if field.is_feature_list:
        return _steps(field, column, present)
    values, starts, stops = _flat(field, column.values)
    return values, starts, stops, _ints(column.offsets), None, 1, present


def _dense(field: Field, values: NDArray[Any], present: Mask | None) -> _native.EncodeColumn:
    source = _source(field)
    count = int(np.prod(values.shape[1:], dtype=np.int64))
    if source == _RAW:
        is_number = not isinstance(field, Tensor)
        rows = _flat_array(values, field.dtype if isinstance(field, Tensor) else np.float64)
        mark = True if is_number else None
        return rows.view(np.uint8), None, None, None, mark, count * rows.dtype.itemsize, present
    dtype = np.int64 if source == _INTS else np.float32
    return _flat_array(values, dtype), None, None, None, None, count, present


def _steps(field: Sequence, column: Ragged, present: Mask | None) -> _native.EncodeColumn:
    steps = column.values
    count, step_offsets = 1, None
    if isinstance(steps, Ragged):
        step_offsets, steps = _ints(steps.offsets), steps.values
    elif isinstance(steps, np.ndarray) and steps.ndim > 1:
        count = int(steps.shape[1])
    values, starts, stops = _flat(field, steps)
    return values, starts, stops, _ints(column.offsets), step_offsets, count, present


def _flat(
    field: Field, values: NDArray[Any] | Bytes | Ragged
) -> tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | None]:
    if isinstance(values, Bytes):
        return values.arena, _ints(values.starts), _ints(values.stops)
    if isinstance(values, Ragged):
        raise TypeError(f"{field!r} has no lists of lists of lists")
    return _flat_array(values, np.int64 if _source(field) == _INTS else np.float32), None, None


def _flat_array(values: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return values as the core takes them: in the machine's byte order, without gaps, aligned."""
    return np.require(values, dtype, _PLAIN).reshape(-1)


def _ints(offsets: NDArray[Any]) -> NDArray[np.int64]:
    return np.require(offsets, np.int64, _PLAIN)
