"""Tensors: an array of one shape a row.

In: raw columns of arrays or lists. Out: `Dense`, in the type of the list that holds the elements, or in the
field's own where they are stored raw.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.encode.fault import Report, report_all, report_items, report_rows
from penstock.encode.lists import flatten_lists, is_list
from penstock.encode.number import cast_values, convert_numbers, fit_numbers
from penstock.encode.plain import present_objects, refuse_all, settle
from penstock.foundation.wording import show
from penstock.schema.array import Tensor
from penstock.source.block import RawColumn
from penstock.types import Dense


def encode_tensor(field: Tensor, raw: RawColumn, report: Report) -> Dense:
    """Return arrays of the field's shape; elements of another type must survive the change."""
    column = settle(raw)
    if isinstance(column, np.ndarray) and column.dtype.kind == "O" and column.ndim == 1:
        tensors = _convert_objects(field, column, report)
    elif isinstance(column, np.ndarray):
        tensors = _convert_array(field, column, report)
    elif is_list(column.type):
        tensors = _convert_lists(field, column, report)
    elif field.size == 1:
        tensors = convert_numbers(column, field.dtype, report)
    else:
        present = refuse_all(column, _expect(field), report)
        tensors = Dense(np.zeros((len(column), field.size), field.dtype), present)
    return _store(field, tensors, report)


def _convert_array(field: Tensor, column: NDArray[Any], report: Report) -> Dense:
    """Return one array with a row for each tensor in the field's type."""
    if column.dtype.kind not in "biuf" or not _fits(field, column.shape[1:]):
        got = f"an array of shape {column.shape[1:]} and type {column.dtype}"
        report_all(report, range(len(column)), _expect(field), got)
        return Dense(np.zeros((len(column), field.size), field.dtype))
    flat = Dense(column.reshape(len(column) * field.size))
    return fit_numbers(flat, field.dtype, report_items(report, _offsets(field, len(column))))


def _convert_objects(field: Tensor, objects: NDArray[Any], report: Report) -> Dense:
    """Return arrays, or what NumPy makes arrays of, in the field's type; those of one type go together."""
    present = present_objects(objects)
    tensors = np.zeros((len(objects), field.size), field.dtype)
    rows_of: dict[np.dtype[Any], list[int]] = {}
    arrays: dict[int, NDArray[Any]] = {}
    for row in range(len(objects)) if present is None else np.flatnonzero(present).tolist():
        try:
            array = np.asarray(objects[row])
        except (ValueError, TypeError, OverflowError):  # lists of lists that have several lengths
            report(row, _expect(field), show(objects[row]))
            continue
        if array.dtype.kind not in "biuf":
            report(row, _expect(field), show(objects[row]))
        elif not _fits(field, array.shape):
            report(row, _expect(field), f"an array of shape {array.shape}")
        else:
            arrays[row] = array.reshape(field.size)
            rows_of.setdefault(array.dtype, []).append(row)
    for found in rows_of.values():
        rows = np.array(found, np.int64)
        part = _convert_array(field, np.stack([arrays[row] for row in found]), report_rows(report, rows))
        tensors[rows] = part.values.reshape(len(rows), field.size)
    return Dense(tensors, present)


def _convert_lists(field: Tensor, column: RawColumn, report: Report) -> Dense:
    """Return flat lists of all elements, or lists nested as deep as the shape, in the field's type."""
    lists = flatten_lists(column, report)
    items, offsets, present = lists.items, lists.offsets, lists.present
    levels = [(lists.lengths, np.arange(len(offsets) - 1))]  # lengths of lists, and whose they are
    while not isinstance(items, np.ndarray) and is_list(items.type):
        inner = flatten_lists(items, report)
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        levels.append((inner.lengths, rows))
        items, offsets = inner.items, inner.offsets[offsets]
    dims = (field.size,) if len(levels) == 1 else field.shape
    wrong = np.full(len(offsets) - 1, len(dims) != len(levels))
    for dim, (lengths, rows) in zip(dims, levels, strict=False):
        wrong[rows[lengths != dim]] = True
    if present is not None:
        wrong &= present
    for row in np.flatnonzero(wrong).tolist():
        report(row, _expect(field), _describe(levels, row))
    numbers = convert_numbers(items, field.dtype, report_items(report, offsets))
    if numbers.present is not None:
        for position in np.flatnonzero(~numbers.present).tolist():
            report_items(report, offsets)(position, "a number", "nothing")
    counts = np.diff(offsets)
    is_whole = ~wrong & (counts == field.size)
    tensors = np.zeros((len(wrong), field.size), field.dtype)
    tensors[is_whole] = numbers.values[np.repeat(is_whole, counts)].reshape(-1, field.size)
    return Dense(tensors, present)


def _store(field: Tensor, tensors: Dense, report: Report) -> Dense:
    """Return tensors as the record holds them."""
    num_rows = tensors.values.size // field.size
    if field.kind != "bytes":
        kind = "float32" if field.kind == "float" else "int64"
        values, lost = cast_values(tensors.values.reshape(-1), kind)
        if lost is not None:
            inside = report_items(report, _offsets(field, num_rows))
            for position in np.flatnonzero(lost).tolist():
                value = tensors.values.flat[position].item()
                inside(position, "a whole number of 63 bits", show(value), "Store it with encoding='raw'.")
    else:
        values = tensors.values
    return Dense(np.ascontiguousarray(values.reshape(num_rows, *field.shape)), tensors.present)


def _fits(field: Tensor, shape: tuple[int, ...]) -> bool:
    """Return whether arrays of a shape are the field's, maybe flat."""
    return shape == field.shape or (prod(shape) == field.size and (len(shape) <= 1 or field.size == 1))


def _offsets(field: Tensor, num_rows: int) -> NDArray[np.int64]:
    return np.arange(num_rows + 1, dtype=np.int64) * field.size


def _expect(field: Tensor) -> str:
    return f"an array of shape {field.shape} and type {field.dtype}"


def _describe(levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]], row: int) -> str:
    """Say of what lengths the lists of a row are, level by level."""
    words = []
    for lengths, rows in levels:
        found = sorted(set(lengths[rows == row].tolist()))
        words.append(str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else "0")
    return f"lists of {' x '.join(words)} values"
