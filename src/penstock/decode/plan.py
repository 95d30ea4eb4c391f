"""The schema as a plan for the core, and the core's arrays as columns.

In: a schema and segments of records. Out: `Columns`, and the faults of records that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from penstock import _native
from penstock.columns import (
    Bytes,
    CodedColumn,
    CodedColumns,
    Column,
    Columns,
    Dense,
    Dictionary,
    Mask,
    Ragged,
)
from penstock.decode.row_columns import DecodedColumns, DecodedFields, RowColumns
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema

_KINDS = {"bytes": 1, "float": 2, "int64": 3}
_SCALAR, _FIXED, _LIST, _STRING, _STRINGS, _RAW, _STEPS, _CODED = range(8)


# Makes a column of the values of a field, its row offsets and its mask, as the core returns them.
_Make: TypeAlias = Callable[[Any, Any, Mask | None], CodedColumn]


class DecodePlan:
    """Decodes records into columns by a schema; any number of threads may use one plan.

    Strings of the fields in `dictionaries` are decoded to codes: their columns are `Dictionary`.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        strict: bool = False,
        dictionaries: Mapping[str, _native.Vocabulary] | None = None,
    ) -> None:
        self.names = tuple(schema)
        coded = dictionaries or {}
        specs = [_spec(name, field, coded.get(name)) for name, field in schema.items()]
        self._decoder = _native.Decoder(specs, strict)
        self._is_coded = bool(coded)
        self._reader: tuple[_native.RowFiles, _native.RowReader] | None = None  # of the files read last
        pairs = zip(schema.values(), specs, strict=True)
        self._fields = DecodedFields(self.names, tuple(_maker(field, spec) for field, spec in pairs))

    @property
    def bytes_read(self) -> int:
        """Number of bytes that all calls so far have read."""
        return self._decoder.bytes_read

    @property
    def read_seconds(self) -> float:
        """Seconds that all calls so far spent on reading and checking frames, without decoding."""
        return self._decoder.read_seconds

    def reader(self, files: _native.RowFiles) -> _native.RowReader:
        """Return a reader that decodes any rows of files by this plan."""
        known = self._reader
        if known is None or known[0] is not files:
            made = _native.RowReader(files, self._decoder)
            known = self._reader = (files, made)
        return known[1]

    def buffer_reader(self, buffers: _native.RowBuffers) -> _native.RowReader:
        """Return a reader that decodes rows in memory by this plan."""
        return _native.RowReader(buffers, self._decoder)

    def as_columns(self, decoded: _native.ColumnSet) -> CodedColumns:
        """Return what the core decoded by this plan as columns; each is made when it is asked for."""
        return RowColumns(DecodedColumns(self._fields, decoded))

    def decode(self, segments: Sequence[_native.Segment]) -> tuple[Columns, list[_native.Fault]]:
        """Decode all records of the segments into columns as they are stored; see `decode_coded`."""
        if self._is_coded:
            raise TypeError("a plan with dictionaries gives coded columns: call decode_coded()")
        columns, faults = self._decoder.decode(segments)
        return cast("Columns", DecodedColumns(self._fields, columns).all_columns()), faults

    def decode_coded(
        self, segments: Sequence[_native.Segment] | Sequence[_native.MixedSegment]
    ) -> tuple[CodedColumns, list[_native.Fault]]:
        """Return columns of all records, each made on first use, and the faults in the order of rows.

        The values of a row with a fault are undefined.
        """
        columns, faults = self._decoder.decode(segments)
        return self.as_columns(columns), faults


def _lay_out_sequence(field: SequenceField) -> tuple[int, int]:
    if field.is_feature_list:
        per_step = field.num_step_values
        return _STEPS, -1 if per_step is None else per_step
    return (_STRINGS if field.kind == "bytes" else _LIST), -1


# The core's layout of each type of field, and the count that goes with it.
LAYOUTS: dict[type[Field], Callable[[Any], tuple[int, int]]] = {
    Number: lambda field: (_RAW, 8) if field.dtype == "float64" else (_SCALAR, 1),
    Category: lambda field: (_STRING if field.kind == "bytes" else _SCALAR, 1),
    Date: lambda _: (_SCALAR, 1),
    Text: lambda _: (_STRING, 1),
    Image: lambda _: (_STRING, 1),
    BytesField: lambda _: (_STRING, 1),
    SequenceField: _lay_out_sequence,
    Tensor: lambda field: (_RAW, field.num_bytes) if field.kind == "bytes" else (_FIXED, field.size),
}


def _spec(name: str, field: Field, dictionary: _native.Vocabulary | None) -> _native.FieldSpec:
    layout, count = LAYOUTS[type(field)](field)
    if dictionary is not None:
        if layout != _STRING:
            raise TypeError(f"{field!r} has no strings that could be coded")
        layout = _CODED
    default = None if field.default is None else WIRE_DEFAULTS[type(field)](field)
    spec = field.wire_key(name), _KINDS[field.kind], layout, count, not field.optional, default
    return spec if dictionary is None else (*spec, dictionary)


def _tensor_default(field: Tensor) -> list[Any]:
    array = np.asarray(field.default, field.dtype)
    if field.kind == "bytes":
        return [np.ascontiguousarray(array).astype(np.dtype(field.dtype).newbyteorder("<")).tobytes()]
    return [int(value) if field.kind == "int64" else float(value) for value in array.ravel()]


def _number_default(field: Number) -> list[Any]:
    is_double = field.dtype == "float64"
    return [np.float64(field.default).astype("<f8").tobytes() if is_double else field.default]


def _scalar_default(field: Field) -> list[Any]:
    return [_encode(field.default)]


def _sequence_default(field: SequenceField) -> list[Any]:
    values: Any = field.default
    if not field.is_feature_list:
        return [_encode(value) for value in values]
    steps = [[value] for value in values] if field.shape == () else values
    return [[_encode(value) for value in step] for step in steps]


# The default of each type of field as the values that a record would hold.
WIRE_DEFAULTS: dict[type[Field], Callable[[Any], list[Any]]] = {
    Number: _number_default,
    Category: _scalar_default,
    Date: _scalar_default,
    Text: _scalar_default,
    Image: _scalar_default,
    BytesField: _scalar_default,
    SequenceField: _sequence_default,
    Tensor: _tensor_default,
}


def _encode(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _maker(field: Field, spec: _native.FieldSpec) -> _Make:
    """Return the function that makes the column of a field."""
    layout = spec[2]
    if layout == _SCALAR:
        return _make_dense
    if layout == _CODED:
        return _coded(spec[-1])
    if layout in (_FIXED, _RAW):
        return _tensor(field)
    return _variable(field, layout)


def _make_dense(values: Any, offsets: Any, present: Mask | None) -> Column:  # noqa: ARG001
    return Dense(values, present)


def _coded(dictionary: Any) -> _Make:
    values = dictionary.values()

    def make(codes: Any, offsets: Any, present: Mask | None) -> CodedColumn:  # noqa: ARG001
        return Dictionary(codes, values, present)

    return make


def _tensor(field: Field) -> _Make:
    if not isinstance(field, Tensor | Number):
        raise TypeError(f"{field!r} has no fixed shape")
    shape, dtype = field.shape if isinstance(field, Tensor) else (), np.dtype(field.dtype)

    def make(flat: Any, offsets: Any, present: Mask | None) -> Column:  # noqa: ARG001
        values = flat.view(dtype) if field.kind == "bytes" else flat.astype(dtype, copy=False)
        return Dense(values.reshape((len(flat), *shape)), present)

    return make


def _variable(field: Field, layout: int) -> _Make:
    per_step = field.num_step_values if isinstance(field, SequenceField) else None

    def make_string(values: Any, offsets: Any, present: Mask | None) -> Column:
        if isinstance(values, tuple):  # large values are not copied
            kept, stops = values
            return Bytes(kept, offsets[:-1], stops, present)
        return Bytes(values, offsets[:-1], offsets[1:], present)

    def make_list(values: Any, offsets: Any, present: Mask | None) -> Column:
        return Ragged(values, offsets, present)

    def make_strings(values: Any, offsets: Any, present: Mask | None) -> Column:
        return Ragged(Bytes.from_offsets(*values), offsets, present)

    def make_steps(values: Any, offsets: Any, present: Mask | None) -> Column:
        flat, value_offsets, step_offsets = values
        items: Any = flat if value_offsets is None else Bytes.from_offsets(flat, value_offsets)
        steps: Any = Ragged(items, step_offsets)
        if isinstance(field, SequenceField) and field.shape == ():
            steps = items
        elif per_step is not None and isinstance(items, np.ndarray):
            steps = items.reshape(len(step_offsets) - 1, per_step)
        return Ragged(steps, offsets, present)

    return {_STRING: make_string, _LIST: make_list, _STRINGS: make_strings, _STEPS: make_steps}[layout]
