"""Columns from columns: some of their rows in any order, or several one behind the other.

In: columns, row numbers. Out: columns in memory that is aligned and used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, CodedColumns, Dense, Dictionary, Mask, Pictures, Ragged


def take_columns(columns: CodedColumns, rows: NDArray[np.int64]) -> dict[str, CodedColumn]:
    """Return some rows of columns, in the order of `rows`."""
    return {name: take_column(column, rows) for name, column in columns.items()}


def take_column(column: CodedColumn, rows: NDArray[np.int64]) -> CodedColumn:
    """Return some rows of a column, in the order of `rows`."""
    present = None if column.present is None else _take(column.present, rows)
    if isinstance(column, Dense):
        return Dense(_take(column.values, rows), present)
    if isinstance(column, Dictionary):
        return Dictionary(_take(column.codes, rows), column.values, present)
    if isinstance(column, Bytes):
        return Bytes.from_offsets(*_take_strings(column, rows), present)
    if isinstance(column, Pictures):
        encoded = None if column.encoded is None else cast("Bytes", take_column(column.encoded, rows))
        return Pictures([column.images[row] for row in rows.tolist()], present, encoded)
    values = column.values
    if isinstance(values, np.ndarray):
        return Ragged(*_native.take_lists(values, column.offsets, rows), present)
    # Lists of what has no fixed size: first which items, then the items.
    lengths = np.diff(column.offsets)[rows]
    offsets = _offsets(lengths)
    starts = column.offsets[:-1][rows]
    items = np.arange(int(offsets[-1]), dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
    return Ragged(cast("Bytes | Ragged", take_column(values, items)), offsets, present)


def join_columns(pieces: Sequence[CodedColumns]) -> dict[str, CodedColumn]:
    """Return the rows of several columns one behind the other."""
    if len(pieces) == 1:
        return dict(pieces[0])
    return {name: join_column([piece[name] for piece in pieces]) for name in pieces[0]}


def join_column(pieces: Sequence[CodedColumn]) -> CodedColumn:
    """Return the rows of several columns of one kind, one behind the other."""
    first = pieces[0]
    present = _join_masks(pieces)
    if any(isinstance(each, Pictures) for each in pieces):
        return _join_pictures(pieces, present)
    if isinstance(first, Dense):
        return Dense(_join([cast("Dense", each).values for each in pieces]), present)
    if isinstance(first, Dictionary):
        return Dictionary(_join([cast("Dictionary", each).codes for each in pieces]), first.values, present)
    if isinstance(first, Bytes):
        packed = [cast("Bytes", each).pack() for each in pieces]
        arena = _join([each.arena[: each.stops[-1] if len(each) else 0] for each in packed])
        lengths = np.concatenate([each.stops - each.starts for each in packed])
        return Bytes.from_offsets(arena, _offsets(lengths), present)
    lists = [cast("Ragged", each) for each in pieces]
    lengths = np.concatenate([np.diff(each.offsets) for each in lists])
    values: Any
    if isinstance(lists[0].values, np.ndarray):
        values = _join([cast("NDArray[Any]", each.values)[: each.offsets[-1]] for each in lists])
    else:
        values = join_column([cast("Bytes | Ragged", each.values) for each in lists])
    return Ragged(values, _offsets(lengths), present)


def _join_pictures(pieces: Sequence[CodedColumn], present: Mask | None) -> Pictures:
    """Return images one behind the other, those held and those that are not."""
    images: list[NDArray[np.uint8] | None] = []
    encoded: list[Bytes | None] = []
    for each in pieces:
        is_held = isinstance(each, Pictures)
        images += cast("Pictures", each).images if is_held else [None] * len(each)
        encoded.append(cast("Pictures", each).encoded if is_held else cast("Bytes", each))
    if all(each is None for each in encoded):
        return Pictures(images, present)
    empty = np.empty(0, np.uint8)
    filled = [
        Bytes.from_offsets(empty, np.zeros(len(piece) + 1, np.int64)) if each is None else each
        for piece, each in zip(pieces, encoded, strict=True)
    ]
    return Pictures(images, present, cast("Bytes", join_column(filled)))


def column_bytes(column: CodedColumn) -> int:
    """Return about how much memory a column takes."""
    mask = 0 if column.present is None else column.present.nbytes
    if isinstance(column, Dense):
        return mask + column.values.nbytes
    if isinstance(column, Dictionary):
        return mask + column.codes.nbytes
    if isinstance(column, Bytes):
        return mask + int((column.stops - column.starts).sum()) + 16 * len(column)
    if isinstance(column, Pictures):
        encoded = 0 if column.encoded is None else column_bytes(column.encoded)
        return mask + encoded + sum(image.nbytes for image in column.images if image is not None)
    values = column.values
    held = values.nbytes if isinstance(values, np.ndarray) else column_bytes(values)
    return mask + held + column.offsets.nbytes


def _take(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    if values.dtype.char in "SUO":
        return values[rows]
    out = _native.empty((len(rows), *values.shape[1:]), values.dtype.name)
    np.take(values, rows, axis=0, out=out, mode="clip")  # "raise" would make a copy first; rows are ours
    return out


def _take_strings(column: Bytes, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    starts, stops = np.ascontiguousarray(column.starts), np.ascontiguousarray(column.stops)
    return _native.take_strings(column.arena, starts, stops, rows)


def _join(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if arrays[0].dtype.char in "SUO":
        return np.concatenate(arrays)
    count = sum(map(len, arrays))
    out = _native.empty((count, *arrays[0].shape[1:]), arrays[0].dtype.name)
    return np.concatenate(arrays, out=out)


def _join_masks(pieces: Sequence[CodedColumn]) -> Mask | None:
    if all(each.present is None for each in pieces):
        return None
    masks = [np.ones(len(each), np.bool_) if each.present is None else each.present for each in pieces]
    return np.concatenate(masks)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
