"""The schema as a plan for the core, and the core's arrays as columns.

In: a schema and segments of records. Out: `Columns`, and the faults of records that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

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
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema

_KINDS = {"bytes": 1, "float": 2, "int64": 3}
_SCALAR, _FIXED, _LIST, _STRING, _STRINGS, _RAW, _STEPS, _CODED = range(8)


class _Arrays(NamedTuple):
    """The result of one call of the core for the fields that are not scalars."""

    offsets: NDArray[np.int64]  # one row per field
    values: list[Any]  # one entry per field


_Make: TypeAlias = Callable[[_Arrays, Mask | None], CodedColumn]


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
        fields = list(schema.values())
        coded = dictionaries or {}
        specs = [_spec(name, field, coded.get(name)) for name, field in schema.items()]
        self._decoder = _native.Decoder(specs, strict)
        self._is_coded = bool(coded)
        # Scalars of a kind share a matrix with one row per field; so do presence masks and row offsets.
        self._optional = [i for i, field in enumerate(fields) if field.optional]
        scalars = [i for i, spec in enumerate(specs) if spec[2] == _SCALAR]
        self._ints = [i for i in scalars if fields[i].kind == "int64"]
        self._floats = [i for i in scalars if fields[i].kind == "float"]
        self._others: list[tuple[int, _Make]] = []
        num_offsets = 0
        for i, (field, spec) in enumerate(zip(fields, specs, strict=True)):
            if spec[2] == _CODED:
                self._others.append((i, _coded(spec[-1], i)))
            elif spec[2] in (_FIXED, _RAW):
                self._others.append((i, _tensor(field, i)))
            elif spec[2] != _SCALAR:
                self._others.append((i, _variable(field, spec[2], i, num_offsets)))
                num_offsets += 1

    @property
    def bytes_read(self) -> int:
        """Number of bytes that all calls so far have read."""
        return self._decoder.bytes_read

    @property
    def read_seconds(self) -> float:
        """Seconds that all calls so far spent on reading and checking frames, without decoding."""
        return self._decoder.read_seconds

    def decode(self, segments: Sequence[_native.Segment]) -> tuple[Columns, list[_native.Fault]]:
        """Decode all records of the segments into columns as they are stored; see `decode_coded`.

        Raises:
            TypeError: The plan has dictionaries, whose columns are codes instead of the stored strings.
        """
        columns, faults = self.decode_coded(segments)
        if self._is_coded:
            raise TypeError("a plan with dictionaries gives coded columns: call decode_coded()")
        return cast("Columns", columns), faults

    def decode_coded(
        self, segments: Sequence[_native.Segment] | Sequence[_native.MixedSegment]
    ) -> tuple[CodedColumns, list[_native.Fault]]:
        """Decode all records of the segments.

        Returns:
            The columns, with one row per record, and the faults in the order of rows. The values of a row
            with a fault are undefined.
        """
        num_rows = sum(len(segment[3]) for segment in segments)
        ints, floats, offsets, present, values, faults = self._decoder.decode(segments)
        # Rows of the matrices are longer than needed, for alignment. A batch of a wide table makes dozens of
        # columns, so this is written to be quick: iterating a matrix is the cheapest way to get its rows.
        masks: list[Mask | None] = [None] * len(self.names)
        for i, mask in zip(self._optional, present[:, :num_rows], strict=True):
            masks[i] = mask
        columns: dict[str, CodedColumn] = dict.fromkeys(self.names, _NOTHING)
        for i, row in zip(self._ints, ints[:, :num_rows], strict=True):
            columns[self.names[i]] = Dense(row, masks[i])
        for i, row in zip(self._floats, floats[:, :num_rows], strict=True):
            columns[self.names[i]] = Dense(row, masks[i])
        arrays = _Arrays(offsets[:, : num_rows + 1], values)
        for i, make in self._others:
            columns[self.names[i]] = make(arrays, masks[i])
        return columns, faults


# Reserves a column's position in the order of fields until it is made.
_NOTHING = Dense(np.empty(0))


def _layout(field: Field) -> tuple[int, int]:
    """Return the core's layout for a field, and the count that goes with it."""
    return LAYOUTS[type(field)](field)


def _lay_out_sequence(field: SequenceField) -> tuple[int, int]:
    if field.is_feature_list:
        per_step = field.num_step_values
        return _STEPS, -1 if per_step is None else per_step
    return (_STRINGS if field.kind == "bytes" else _LIST), -1


def _lay_out_tensor(field: Tensor) -> tuple[int, int]:
    return (_RAW, field.num_bytes) if field.kind == "bytes" else (_FIXED, field.size)


def _lay_out_number(field: Number) -> tuple[int, int]:
    return (_RAW, 8) if field.dtype == "float64" else (_SCALAR, 1)


def _lay_out_category(field: Category) -> tuple[int, int]:
    return (_STRING if field.kind == "bytes" else _SCALAR), 1


# The core's layout of each type of field, and the count that goes with it.
LAYOUTS: dict[type[Field], Callable[[Any], tuple[int, int]]] = {
    Number: _lay_out_number,
    Category: _lay_out_category,
    Text: lambda _: (_STRING, 1),
    Image: lambda _: (_STRING, 1),
    BytesField: lambda _: (_STRING, 1),
    SequenceField: _lay_out_sequence,
    Tensor: _lay_out_tensor,
}


def _spec(name: str, field: Field, dictionary: _native.Vocabulary | None) -> _native.FieldSpec:
    layout, count = _layout(field)
    if dictionary is not None:
        if layout != _STRING:
            raise TypeError(f"{field!r} has no strings that could be coded")
        layout = _CODED
    default = None if field.default is None else _wire_values(field)
    spec = field.wire_key(name), _KINDS[field.kind], layout, count, not field.optional, default
    return spec if dictionary is None else (*spec, dictionary)


def _wire_values(field: Field) -> list[Any]:
    """Return the default as the values that a record would hold."""
    return WIRE_DEFAULTS[type(field)](field)


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
    Text: _scalar_default,
    Image: _scalar_default,
    BytesField: _scalar_default,
    SequenceField: _sequence_default,
    Tensor: _tensor_default,
}


def _encode(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _coded(dictionary: Any, number: int) -> _Make:
    values = dictionary.values()

    def make(arrays: _Arrays, present: Mask | None) -> CodedColumn:
        return Dictionary(arrays.values[number], values, present)

    return make


def _tensor(field: Field, number: int) -> _Make:
    if not isinstance(field, Tensor | Number):
        raise TypeError(f"{field!r} has no fixed shape")
    shape, dtype = field.shape if isinstance(field, Tensor) else (), np.dtype(field.dtype)

    def make(arrays: _Arrays, present: Mask | None) -> Column:
        flat: NDArray[Any] = arrays.values[number]
        values = flat.view(dtype) if field.kind == "bytes" else flat.astype(dtype, copy=False)
        return Dense(values.reshape((len(flat), *shape)), present)

    return make


def _variable(field: Field, layout: int, number: int, offset_row: int) -> _Make:
    per_step = field.num_step_values if isinstance(field, SequenceField) else None

    def make_string(arrays: _Arrays, present: Mask | None) -> Column:
        values = arrays.values[number]
        offsets = arrays.offsets[offset_row]
        if isinstance(values, tuple):  # large values are not copied
            kept, stops = values
            return Bytes(kept, offsets[:-1], stops, present)
        return Bytes(values, offsets[:-1], offsets[1:], present)

    def make_list(arrays: _Arrays, present: Mask | None) -> Column:
        return Ragged(arrays.values[number], arrays.offsets[offset_row], present)

    def make_strings(arrays: _Arrays, present: Mask | None) -> Column:
        strings = Bytes.from_offsets(*arrays.values[number])
        return Ragged(strings, arrays.offsets[offset_row], present)

    def make_steps(arrays: _Arrays, present: Mask | None) -> Column:
        flat, value_offsets, step_offsets = arrays.values[number]
        values: Any = flat if value_offsets is None else Bytes.from_offsets(flat, value_offsets)
        steps: Any = Ragged(values, step_offsets)
        if isinstance(field, SequenceField) and field.shape == ():
            steps = values
        elif per_step is not None and isinstance(values, np.ndarray):
            steps = values.reshape(len(step_offsets) - 1, per_step)
        return Ragged(steps, arrays.offsets[offset_row], present)

    return {_STRING: make_string, _LIST: make_list, _STRINGS: make_strings, _STEPS: make_steps}[layout]
