"""The schema as a plan for the core, and the core's arrays as columns.

In: a schema and segments of records. Out: `Columns`, and the faults of records that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.types import Bytes, Column, Columns, Dense, Mask, Ragged

_KINDS = {"bytes": 1, "float": 2, "int64": 3}
_SCALAR, _FIXED, _LIST, _STRING, _STRINGS, _RAW, _STEPS = range(7)


class _Arrays(NamedTuple):
    """What one call of the core returned, cut to its number of rows."""

    ints: NDArray[np.int64]
    floats: NDArray[np.float32]
    offsets: NDArray[np.int64]
    present: Mask
    values: list[Any]


_Assemble = Callable[[_Arrays], Column]


class DecodePlan:
    """Decodes records into columns by a schema; any number of threads may use one plan."""

    def __init__(self, schema: Schema, *, strict: bool = False) -> None:
        self.names = tuple(schema)
        specs = [_spec(name, field) for name, field in schema.items()]
        self._decoder = _native.Decoder(specs, strict)
        self._assemble = _assemblers(schema, specs)

    def decode(self, segments: Sequence[_native.Segment]) -> tuple[Columns, list[_native.Fault]]:
        """Decode all records of the segments.

        Returns:
            The columns, with a row for each record, and the faults in the order of rows. A row with a fault holds
            nothing of use.
        """
        num_rows = sum(len(segment[3]) for segment in segments)
        ints, floats, offsets, present, values, faults = self._decoder.decode(segments)
        arrays = _Arrays(
            ints[:, :num_rows], floats[:, :num_rows], offsets[:, : num_rows + 1], present[:, :num_rows], values
        )
        return {name: make(arrays) for name, make in zip(self.names, self._assemble, strict=True)}, faults


def _layout(field: Field) -> tuple[int, int]:
    """Return the core's layout for a field, and the count that goes with it."""
    if isinstance(field, SequenceField):
        if field.is_feature_list:
            per_step = field.num_step_values
            return _STEPS, -1 if per_step is None else per_step
        return (_STRINGS if field.kind == "bytes" else _LIST), -1
    if isinstance(field, Tensor):
        return (_RAW, field.num_bytes) if field.kind == "bytes" else (_FIXED, field.size)
    return (_STRING if field.kind == "bytes" else _SCALAR), 1


def _spec(name: str, field: Field) -> _native.FieldSpec:
    layout, count = _layout(field)
    default = None if field.default is None else _wire_values(field)
    return field.wire_key(name), _KINDS[field.kind], layout, count, not field.optional, default


def _wire_values(field: Field) -> list[Any]:
    """Return the default as the values that a record would hold."""
    default = field.default
    if isinstance(field, Tensor):
        array = np.asarray(default, field.dtype)
        if field.kind == "bytes":
            return [np.ascontiguousarray(array).astype(np.dtype(field.dtype).newbyteorder("<")).tobytes()]
        return [int(value) if field.kind == "int64" else float(value) for value in array.ravel()]
    values = default if isinstance(field, SequenceField) else [default]
    return [value.encode() if isinstance(value, str) else value for value in values]


def _assemblers(schema: Schema, specs: Sequence[_native.FieldSpec]) -> list[_Assemble]:
    """Return for each field how to make its column; matrix rows are counted here as the core counts them."""
    makers: list[_Assemble] = []
    num_ints = num_floats = num_offsets = num_optional = 0
    for number, (field, spec) in enumerate(zip(schema.values(), specs, strict=True)):
        _, kind, layout, _, required, _ = spec
        mask_row = None if required else num_optional
        num_optional += not required
        if layout == _SCALAR and kind == _KINDS["int64"]:
            makers.append(_scalar("ints", num_ints, mask_row))
            num_ints += 1
        elif layout == _SCALAR:
            makers.append(_scalar("floats", num_floats, mask_row))
            num_floats += 1
        elif layout in (_FIXED, _RAW):
            makers.append(_tensor(field, number, mask_row))
        else:
            makers.append(_variable(field, layout, number, num_offsets, mask_row))
            num_offsets += 1
    return makers


def _mask(arrays: _Arrays, row: int | None) -> Mask | None:
    return None if row is None else arrays.present[row]


def _scalar(matrix: str, row: int, mask_row: int | None) -> _Assemble:
    if matrix == "ints":
        return lambda arrays: Dense(arrays.ints[row], _mask(arrays, mask_row))
    return lambda arrays: Dense(arrays.floats[row], _mask(arrays, mask_row))


def _tensor(field: Field, number: int, mask_row: int | None) -> _Assemble:
    if not isinstance(field, Tensor):
        raise TypeError(f"{field!r} has no fixed shape")
    shape, dtype = field.shape, np.dtype(field.dtype)

    def make(arrays: _Arrays) -> Column:
        flat: NDArray[Any] = arrays.values[number]
        values = flat.view(dtype) if field.kind == "bytes" else flat.astype(dtype, copy=False)
        return Dense(values.reshape((len(flat), *shape)), _mask(arrays, mask_row))

    return make


def _variable(field: Field, layout: int, number: int, offset_row: int, mask_row: int | None) -> _Assemble:
    per_step = field.num_step_values if isinstance(field, SequenceField) else None

    def make_string(arrays: _Arrays) -> Column:
        if isinstance(arrays.values[number], tuple):  # large values stay where they were read
            kept, stops = arrays.values[number]
            return Bytes(kept, arrays.offsets[offset_row][:-1], stops, _mask(arrays, mask_row))
        return Bytes.from_offsets(arrays.values[number], arrays.offsets[offset_row], _mask(arrays, mask_row))

    def make_list(arrays: _Arrays) -> Column:
        return Ragged(arrays.values[number], arrays.offsets[offset_row], _mask(arrays, mask_row))

    def make_strings(arrays: _Arrays) -> Column:
        strings = Bytes.from_offsets(*arrays.values[number])
        return Ragged(strings, arrays.offsets[offset_row], _mask(arrays, mask_row))

    def make_steps(arrays: _Arrays) -> Column:
        flat, value_offsets, step_offsets = arrays.values[number]
        values: Any = flat if value_offsets is None else Bytes.from_offsets(flat, value_offsets)
        steps: Any = Ragged(values, step_offsets)
        if per_step == 1 and isinstance(field, SequenceField) and field.shape == ():
            steps = values
        elif per_step is not None and isinstance(values, np.ndarray):
            steps = values.reshape(len(step_offsets) - 1, per_step)
        return Ragged(steps, arrays.offsets[offset_row], _mask(arrays, mask_row))

    return {_STRING: make_string, _LIST: make_list, _STRINGS: make_strings, _STEPS: make_steps}[layout]
