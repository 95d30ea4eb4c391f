"""Columns built from plain values, encoded and framed by the core; and what their records must hold.

A cell is what one row has of one field: an array for numbers and tensors, bytes for strings, a list for lists
of strings and for steps, None where the row lacks the field.
"""

import struct
from array import array
from typing import Any, NamedTuple

import numpy as np

from oracle_protobuf import Value
from penstock import _native
from penstock import fields as f
from penstock.columns import Bytes, Column, Columns, Dense, Ragged
from penstock.encode.records import RecordEncoder
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from wire.example import Feature

Cells = dict[str, list[Any]]
NUMPY_DTYPES = {"int64": np.int64, "float32": np.float32}


class Frames(NamedTuple):
    """Framed records, and the payload of each."""

    data: bytes
    segment: Any
    payloads: list[bytes]


def frames_of(data: Any, sizes: Any, faults: Any) -> Frames:
    """Take apart what `compose` returned."""
    assert faults == []
    whole, ends = data.tobytes(), np.cumsum(sizes)
    begins = (ends - sizes).astype(np.uint64)
    payloads = [whole[b + 12 : e - 4] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
    return Frames(whole, (-1, whole, 0, begins, sizes.astype(np.uint64), None), payloads)


def encode_frames(schema: Schema, columns: Columns, num_rows: int) -> Frames:
    """Encode columns, and frame the bodies in the order of rows."""
    encoder = RecordEncoder(schema)
    arena, offsets = encoder.encode(columns, num_rows)
    rows = np.zeros(num_rows, np.uint32)
    return frames_of(*_native.compose([arena], rows, offsets[:-1], np.diff(offsets), [], encoder.is_sequence))


def strings_of(values: list[bytes], gap: bytes = b"") -> Bytes:
    """Return byte strings with something between them."""
    arena = np.frombuffer(b"".join(value + gap for value in values), np.uint8)
    sizes = np.array([len(value) for value in values], np.int64)
    starts = np.cumsum(sizes + len(gap)) - sizes - len(gap)
    return Bytes(arena, starts, starts + sizes)


def _offsets(cells: list[Any], first: int = 0) -> Any:
    return np.cumsum([first, *map(len, cells)]).astype(np.int64)


def _values(field: f.Sequence, parts: list[Any], gap: bytes) -> Any:
    """Return the concatenated values of lists."""
    if field.kind == "bytes":
        return strings_of([value for part in parts for value in part], gap)
    return np.concatenate([np.empty(0, NUMPY_DTYPES[field.dtype]), *parts])


def column_of(field: Field, cells: list[Any], gap: bytes = b"") -> Column:
    """Return cells as a column; what stands in a row without a value must not matter."""
    present = None if not field.optional else np.array([cell is not None for cell in cells], bool)
    filled = [placeholder_of(field) if cell is None else cell for cell in cells]
    if not isinstance(field, f.Sequence):
        if field.kind == "bytes" and not isinstance(field, f.Tensor | f.Number):
            strings = strings_of(filled, gap)
            return Bytes(strings.arena, strings.starts, strings.stops, present)
        like = placeholder_of(field)
        return Dense(np.array(filled, like.dtype).reshape((len(cells), *like.shape)), present)
    if not field.is_feature_list:
        # The first list does not begin at 0: so it is in a slice of a longer column.
        junk = [placeholder_of(field)] if gap else []
        offsets = _offsets(filled, len(junk))
        return Ragged(_values(field, [*junk, *filled], gap), offsets, present)
    steps = [step for cell in filled for step in cell]
    values = _values(field, steps, gap)
    offsets = _offsets(filled)
    if field.shape == ():
        return Ragged(values, offsets, present)
    if field.shape is not None and isinstance(values, np.ndarray):
        return Ragged(values.reshape(len(steps), *field.shape), offsets, present)
    return Ragged(Ragged(values, _offsets(steps)), offsets, present)


def placeholder_of(field: Field) -> Any:
    """Return a cell of the field's form."""
    if isinstance(field, f.Tensor):
        return np.ones(field.shape, field.dtype)
    if isinstance(field, f.Sequence):
        count = field.num_step_values or 1
        values = [b"?"] * count if field.kind == "bytes" else np.ones(count, NUMPY_DTYPES[field.dtype])
        return [values] if field.is_feature_list else values
    if isinstance(field, f.Number):
        return np.ones((), field.dtype)
    return np.ones((), np.int64) if field.kind == "int64" else b"?"


def cell_at(field: Field, column: Column, row: int) -> Any:
    """Return what a decoded column has in a row, as a cell."""
    if column.present is not None and not column.present[row]:
        return None
    if isinstance(column, Dense):
        return column.values[row]
    if isinstance(column, Bytes):
        return column[row]
    value = column[row]
    if not field.is_feature_list or isinstance(value, list):
        # Steps of one value are decoded as a flat list.
        return [[step] for step in value] if field.is_feature_list and field.shape == () else value
    return [np.atleast_1d(step) for step in value]


def bits(cell: Any) -> Any:
    """Return a cell in a form that is equal only if every bit is."""
    if isinstance(cell, list):
        return [bits(each) for each in cell]
    if isinstance(cell, np.ndarray | np.generic):
        return cell.dtype.str, cell.shape, cell.tobytes()
    return cell


def features_of(schema: Schema, cells: Cells, row: int, *, in_lists: bool = False) -> dict[str, Any]:
    """Return what a record must hold: a Feature by key, or a list of them for feature lists."""
    found = {}
    for name, field in schema.items():
        cell = cells[name][row]
        if cell is None or field.is_feature_list != in_lists:
            continue
        steps = [_feature(field, step) for step in (cell if in_lists else [cell])]
        found[field.wire_key(name)] = steps if in_lists else steps[0]
    return found


def _feature(field: Field, cell: Any) -> Feature:
    if field.kind == "bytes":
        if isinstance(cell, np.ndarray | np.generic):
            return Feature("bytes", [cell.tobytes()])
        return Feature("bytes", cell if isinstance(cell, list) else [cell])
    flat = np.asarray(cell).reshape(-1)
    if field.kind == "int64":
        return Feature("int64", flat.astype(np.int64).tolist())
    return Feature("float", array("f", flat.astype(np.float32).tobytes()))


def value_of(feature: Feature) -> Value:
    """Return a feature in the form in which the oracle reads one."""
    if feature.kind != "float":
        return feature.kind, list(feature.values)
    return "float", list(struct.unpack(f"={len(feature.values)}I", array("f", feature.values).tobytes()))
