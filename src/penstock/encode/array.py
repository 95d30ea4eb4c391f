"""Encodes columns with one list or array per row: sequences and tensors.

In: raw columns with one list, tuple or array per row. Out: `Ragged` for sequences, `Dense` for tensors.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import Bytes, Dense, Mask, Ragged, make_offsets
from penstock.encode.number import cast_values, convert_numbers, fit_numbers
from penstock.encode.plain import (
    Report,
    as_objects,
    normalize_column,
    present_cells,
    present_objects,
    refuse_all,
    report_all,
    report_items,
    report_rows,
)
from penstock.encode.strings import convert_bytes, convert_text
from penstock.foundation.wording import count, show
from penstock.schema.array import Sequence, Tensor
from penstock.source.block import RawColumn

EXPECTED = "a list"


class Lists(NamedTuple):
    """One list per row: row i has the items from offsets[i] to offsets[i + 1]."""

    items: RawColumn
    offsets: NDArray[np.int64]
    present: Mask | None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of items of each row."""
        return np.diff(self.offsets)


def flatten_lists(raw: RawColumn, report: Report) -> Lists:
    """Return the items of lists; a row that is not a list is reported and has no items."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.ndim > 1:
            num_rows, num_items = column.shape[:2]
            items = column.reshape(num_rows * num_items, *column.shape[2:])
            return Lists(items, np.arange(num_rows + 1, dtype=np.int64) * num_items, None)
        if column.dtype.kind == "O":
            return _flatten_objects(column, report)
    elif is_list(column.type):
        return _flatten_cells(column)
    present = refuse_all(column, EXPECTED, report)
    return Lists(pa.nulls(0), np.zeros(len(column) + 1, np.int64), present)


def is_list(kind: pa.DataType) -> bool:
    """Return whether a normalized type contains lists."""
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def _flatten_cells(array: Any) -> Lists:
    lengths = pc.cast(pc.list_value_length(array).fill_null(0), pa.int64()).to_numpy()
    # flatten() leaves out the items of nulls, and those outside of a slice.
    return Lists(array.flatten(), make_offsets(lengths), present_cells(array))


def _flatten_objects(objects: NDArray[Any], report: Report) -> Lists:
    present = present_objects(objects)
    lengths = np.zeros(len(objects), np.int64)
    parts: list[Any] = []
    for row in range(len(objects)) if present is None else np.flatnonzero(present).tolist():
        cell = objects[row]
        if not isinstance(cell, (list, tuple, np.ndarray)) or (
            isinstance(cell, np.ndarray) and not cell.ndim
        ):
            report(row, EXPECTED, show(cell))
            continue
        lengths[row] = len(cell)
        parts.append(cell)
    return Lists(_chain(parts), make_offsets(lengths), present)


def _chain(parts: list[Any]) -> RawColumn:
    types = {(part.dtype, part.shape[1:]) if isinstance(part, np.ndarray) else None for part in parts}
    if len(types) == 1 and None not in types:
        return np.concatenate(parts)
    # NumPy would convert mixed types: ints to floats, and both to strings.
    return as_objects([item for part in parts for item in part])


def encode_sequence(field: Sequence, raw: RawColumn, report: Report) -> Ragged:
    """Return lists, or lists of steps."""
    lists = flatten_lists(raw, report)
    values: NDArray[Any] | Bytes | Ragged
    if field.shape == ():
        values = _convert_items(field, lists.items, report_items(report, lists.offsets))
    else:
        values = _convert_steps(field, lists.items, report_items(report, lists.offsets, "in step"))
    return Ragged(values, lists.offsets, lists.present)


def _convert_items(field: Sequence, items: RawColumn, report: Report) -> NDArray[Any] | Bytes:
    """Return the concatenated values of lists; missing values are reported."""
    if field.kind == "bytes":
        convert = convert_text if field.dtype == "string" else convert_bytes
        strings = convert(items, report)
        _report_nulls(strings.present, report)
        return Bytes(strings.arena, strings.starts, strings.stops)
    numbers = convert_numbers(items, field.dtype, report)
    _report_nulls(numbers.present, report)
    return numbers.values


def _convert_steps(field: Sequence, items: RawColumn, report: Report) -> NDArray[Any] | Ragged:
    steps = flatten_lists(items, report)
    _report_nulls(steps.present, report)
    values = _convert_items(field, steps.items, report_items(report, steps.offsets))
    per_step = field.num_step_values
    if per_step is None:
        return Ragged(values, steps.offsets)
    wrong = steps.lengths != per_step
    for step in np.flatnonzero(wrong).tolist():
        report(step, count(per_step, "value"), count(int(steps.lengths[step]), "value"))
    if not isinstance(values, np.ndarray):
        return Ragged(values, steps.offsets)
    return _stack(values, steps, per_step, wrong)


def _stack(values: NDArray[Any], steps: Lists, per_step: int, wrong: Mask) -> NDArray[Any]:
    """Return steps of one length as a matrix; steps of another length become zeros."""
    if not wrong.any():
        return values.reshape(-1, per_step)
    matrix = np.zeros((len(wrong), per_step), values.dtype)
    matrix[~wrong] = values[np.repeat(~wrong, steps.lengths)].reshape(-1, per_step)
    return matrix


def _report_nulls(present: Mask | None, report: Report) -> None:
    if present is not None:
        for position in np.flatnonzero(~present).tolist():
            report(position, "a value", "nothing", "A list cannot contain missing values; leave them out.")


def encode_tensor(field: Tensor, raw: RawColumn, report: Report) -> Dense:
    """Return arrays of the field's shape and type; elements that the type cannot represent are reported."""
    column = normalize_column(raw)
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
    """Return an array with one tensor per row in the field's type."""
    if column.dtype.kind not in "biuf" or not _fits(field, column.shape[1:]):
        got = f"an array of shape {column.shape[1:]} and type {column.dtype}"
        report_all(report, range(len(column)), _expect(field), got)
        return Dense(np.zeros((len(column), field.size), field.dtype))
    flat = Dense(column.reshape(len(column) * field.size))
    return fit_numbers(flat, field.dtype, report_items(report, _tensor_offsets(field, len(column))))


def _convert_objects(field: Tensor, objects: NDArray[Any], report: Report) -> Dense:
    """Return arrays, or nested lists, in the field's type; arrays of one type are converted together."""
    present = present_objects(objects)
    tensors = np.zeros((len(objects), field.size), field.dtype)
    rows_of: dict[np.dtype[Any], list[int]] = {}
    arrays: dict[int, NDArray[Any]] = {}
    for row in range(len(objects)) if present is None else np.flatnonzero(present).tolist():
        try:
            array = np.asarray(objects[row])
        except (ValueError, TypeError, OverflowError):  # nested lists of different lengths
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
    """Return flat lists of all elements, or lists nested like the shape, in the field's type."""
    lists = flatten_lists(column, report)
    items, offsets, present = lists.items, lists.offsets, lists.present
    levels = [(lists.lengths, np.arange(len(offsets) - 1))]  # lengths of lists, and their rows
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
    """Return tensors in the type that the record stores."""
    num_rows = tensors.values.size // field.size
    if field.kind != "bytes":
        kind = "float32" if field.kind == "float" else "int64"
        values, lost = cast_values(tensors.values.reshape(-1), kind)
        if lost is not None:
            inside = report_items(report, _tensor_offsets(field, num_rows))
            for position in np.flatnonzero(lost).tolist():
                value = tensors.values.flat[position].item()
                inside(position, "a whole number of 63 bits", show(value), "Store it with encoding='raw'.")
    else:
        values = tensors.values
    return Dense(np.ascontiguousarray(values.reshape(num_rows, *field.shape)), tensors.present)


def _fits(field: Tensor, shape: tuple[int, ...]) -> bool:
    """Return whether arrays of a shape fit the field, also flattened."""
    return shape == field.shape or (prod(shape) == field.size and (len(shape) <= 1 or field.size == 1))


def _tensor_offsets(field: Tensor, num_rows: int) -> NDArray[np.int64]:
    return np.arange(num_rows + 1, dtype=np.int64) * field.size


def _expect(field: Tensor) -> str:
    return f"an array of shape {field.shape} and type {field.dtype}"


def _describe(levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]], row: int) -> str:
    """Return a description of the lengths of the lists of a row, level by level."""
    words = []
    for lengths, rows in levels:
        found = sorted(set(lengths[rows == row].tolist()))
        words.append(str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}" if found else "0")
    return f"lists of {' x '.join(words)} values"
