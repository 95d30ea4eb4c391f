"""Raw columns without their wrappers, so that each kind of field has few types to know.

In: raw columns of any type. Out: Arrow arrays of plain types, NumPy arrays of numbers and times, and arrays
of objects where these share no type.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.encode.missing import present_objects
from penstock.source.block import RawColumn
from penstock.source.column import write_names

# Arrow would take these for lists, in an order that changes from run to run.
_UNORDERED = (set, frozenset)


def settle(raw: RawColumn) -> RawColumn:
    """Return the same values in a plain type.

    Dictionaries, runs, extensions and views are undone. Strings, and objects of one type that Arrow knows,
    become Arrow arrays. What comes back as an array of objects is mixed, or nothing that Arrow knows.
    """
    if isinstance(raw, np.ndarray):
        return _settle_numpy(raw)
    if isinstance(raw, pa.ExtensionArray):
        return _write_uuids(raw) if isinstance(raw.type, pa.UuidType) else settle(raw.storage)
    if isinstance(raw, pa.DictionaryArray):
        return settle(raw.dictionary_decode())
    if isinstance(raw, pa.RunEndEncodedArray):
        return settle(pc.call_function("run_end_decode", [raw]))
    kind = raw.type
    if pa.types.is_string_view(kind):
        return pc.cast(raw, pa.large_string())
    is_odd = pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind)
    return pc.cast(raw, pa.large_binary()) if is_odd else raw


def group_objects(objects: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], RawColumn | None]]:
    """Yield mixed objects by type: their rows, and the values as a plain column.

    The column is None for an object that no column holds. Missing values are in no group.
    """
    present = present_objects(objects)
    rows_of: dict[type, list[int]] = {}
    for row in range(len(objects)) if present is None else np.flatnonzero(present).tolist():
        rows_of.setdefault(type(objects[row]), []).append(row)
    for found in rows_of.values():
        rows = np.array(found, np.int64)
        column = unify(objects[rows])
        if column is not None or len(rows) == 1:
            yield rows, column
            continue
        for i in range(len(rows)):  # one that does not fit must not spoil the others
            yield rows[i : i + 1], unify(objects[rows[i : i + 1]])


def unify(objects: NDArray[Any]) -> RawColumn | None:
    """Return objects of one type as a typed column with nulls, or None where they are no such."""
    present = present_objects(objects)
    there = objects if present is None else objects[present]
    kinds = set(map(type, there))
    if not kinds:
        return pa.nulls(len(objects))
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    if issubclass(kind, _UNORDERED):
        return None
    if issubclass(kind, (np.datetime64, np.timedelta64)) or hasattr(kind, "to_datetime64"):
        return _unify_times(there, present)
    if issubclass(kind, (os.PathLike, uuid.UUID)):
        objects = as_objects(write_names(objects))
    try:
        array = pa.array(objects, mask=None if present is None else ~present)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return array if isinstance(array, pa.Array) else None


def as_objects(values: Sequence[object]) -> NDArray[Any]:
    """Return values as an array of objects with one dimension, also where they are lists of one length."""
    objects = np.empty(len(values), object)
    for row, value in enumerate(values):
        objects[row] = value
    return objects


def _write_uuids(array: Any) -> RawColumn:
    # Sixteen bytes may by chance be text; what people mean by a UUID is its 36 characters.
    return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.string())


def _unify_times(there: NDArray[Any], present: NDArray[np.bool_] | None) -> RawColumn | None:
    # Arrow cuts a pandas.Timestamp to microseconds without a word, and takes no NumPy scalar.
    scalars = [value.to_datetime64() if hasattr(value, "to_datetime64") else value for value in there]
    if len({scalar.dtype for scalar in scalars}) > 1:
        return None
    if present is None:
        return np.array(scalars)
    times = np.full(len(present), "NaT", scalars[0].dtype)
    times[present] = scalars
    return times


def _settle_numpy(raw: NDArray[Any]) -> RawColumn:
    if isinstance(raw, np.ma.MaskedArray):
        return _settle_numpy(as_objects(raw.tolist()))  # masked elements become None, at any depth
    if raw.ndim != 1:
        return raw
    if raw.dtype.kind in "UST":
        text: pa.Array[Any] = pa.array(raw if raw.dtype.isnative else raw.astype(raw.dtype.newbyteorder()))
        return text
    if raw.dtype.kind == "O":
        column = unify(raw)
        return raw if column is None else settle(column)
    return raw
