"""Rows into columns or payloads, with the policy for bad records applied.

In: a range of rows, or rows in any order, and a plan. Out: columns without the bad rows, and the rows that
are in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumns, Columns
from penstock.decode.losses import INDEX_IS_WRONG, Losses, make_error
from penstock.decode.plan import DecodePlan
from penstock.decode.row_columns import NativeRows
from penstock.errors import ChangedFileError, PathError, PenstockError
from penstock.read.rows import Rows, naming_largest
from penstock.read.scatter import Scatter

_T = TypeVar("_T")
_Read: TypeAlias = "Callable[[Sequence[_native.Segment]], tuple[_T, list[_native.Fault]]]"

BLOCK_ROWS = 1024
BLOCK_BYTES = 4 << 20


class ColumnBlock(NamedTuple):
    """Consecutive records of a split as columns.

    Attributes:
        columns: Values of the records: one column per field.
        num_rows: Number of records; a schema without fields has no column to count.
        num_bytes: Size of the records in the file, framing included.
    """

    columns: Columns
    num_rows: int
    num_bytes: int


def read_columns(
    rows: Rows,
    plan: DecodePlan,
    losses: Losses,
    start: int,
    stop: int,
    chosen: NDArray[np.int64] | None = None,
) -> tuple[Columns, int]:
    """Return columns and number of rows of a range, or of `chosen` rows; bad ones are raised or skipped."""
    return _read_range(rows, plan.decode, losses, plan.names, (start, stop), chosen)


def read_payloads(rows: Rows, losses: Losses, start: int, stop: int) -> Iterator[bytes]:
    """Yield the payloads of a range of rows; bad ones are raised or skipped."""
    (arena, offsets), _ = _read_range(rows, _fetch, losses, (), (start, stop))
    view = arena.data
    with naming_largest(rows, np.arange(start, stop)):
        for begin, end in pairwise(offsets.tolist()):
            yield bytes(view[begin:end])


def read_scattered(
    scatter: Scatter, plan: DecodePlan, losses: Losses, wanted: NDArray[np.int64]
) -> tuple[CodedColumns, NDArray[np.bool_] | None]:
    """Return columns in the order of `wanted`, and a mask of their rows; bad rows are raised or skipped."""
    reader = _find_reader(scatter, plan, wanted)
    if reader is not None:
        with naming_largest(scatter.rows, wanted):
            decoded = reader.read(wanted)
        if decoded is not None:
            return plan.as_columns(decoded), None
    known = scatter.rows.damaged(wanted)
    errors: dict[int, PenstockError] = {
        int(wanted[index]): damage.error(shard.path) for index, shard, damage in known
    }
    left_out = {index for index, _, _ in known}
    while True:
        for index, error in scatter.lost(wanted).items():
            errors[int(wanted[index])] = error
            left_out.add(index)
        # Most batches have no bad rows, and other threads wait for every microsecond here.
        kept = _keep_rest(len(wanted), left_out) if left_out else None
        rows = wanted if kept is None else wanted[kept]
        try:
            segments = scatter.segments(rows)
        except (PathError, ChangedFileError) as error:
            if losses.on_error == "raise" or not scatter.lose(error):
                raise
            continue
        with naming_largest(scatter.rows, rows):
            columns, faults = plan.decode_coded(segments)
        if not faults and not errors:
            return columns, None
        indexes = np.arange(len(wanted)) if kept is None else np.flatnonzero(kept)
        bad = set()
        for fault in faults:
            row = int(rows[fault[0]])
            left_out.add(int(indexes[fault[0]]))
            if row in bad:
                continue
            bad.add(row)
            errors[row] = _make_row_error(scatter.rows, row, fault, plan.names)
        # In the order of the batch, so that the first error is the same however the rows were read.
        for row in dict.fromkeys(wanted.tolist()):
            if row in errors:
                losses.add(row, errors[row])
        if not bad:
            return columns, kept


def find_native_rows(scatter: Scatter, plan: DecodePlan, wanted: NDArray[np.int64]) -> NativeRows | None:
    """Return rows that the core can read: in plain files, none known to be bad, all arrived from a store."""
    if scatter.rows.is_remote:
        return _take_arrived(scatter, plan, wanted)
    reader = _find_reader(scatter, plan, wanted)
    return None if reader is None else NativeRows(plan.names, reader, wanted)


def _take_arrived(scatter: Scatter, plan: DecodePlan, wanted: NDArray[np.int64]) -> NativeRows | None:
    """Take all rows of a batch out of the buffers of an object store, which is faster than slice by slice."""
    buffers = None if scatter.rows.damaged(wanted) else scatter.take_arrived(wanted)
    if buffers is None:
        return None
    reader = plan.buffer_reader(buffers)
    numbers = np.arange(len(wanted))

    def read(first: int, stop: int) -> CodedColumns | None:
        with naming_largest(scatter.rows, wanted[first:stop]):
            decoded = reader.read(numbers[first:stop])
        return None if decoded is None else plan.as_columns(decoded)

    return NativeRows(plan.names, reader, numbers, read)


def _find_reader(scatter: Scatter, plan: DecodePlan, wanted: NDArray[np.int64]) -> _native.RowReader | None:
    files = scatter.files
    if files is None or scatter.rows.damaged(wanted):
        return None
    scatter.learn(wanted)
    return plan.reader(files)


def _keep_rest(num_rows: int, left_out: Collection[int]) -> NDArray[np.bool_]:
    kept = np.ones(num_rows, np.bool_)
    kept[list(left_out)] = False
    return kept


def each_block(rows: Rows, losses: Losses, read: Callable[[int, int, Losses], Iterator[_T]]) -> Iterator[_T]:
    """Yield what `read` yields for all rows, by blocks, up to the first error."""
    for start, stop in rows.blocks(BLOCK_ROWS, BLOCK_BYTES):
        if losses.on_error != "raise":
            yield from read(start, stop, losses)
            continue
        trial = Losses("collect", stop - start)
        items = list(read(start, stop, trial))
        if trial:
            row, error = trial.items()[0]
            yield from items[: row - start]
            raise error
        yield from items


def _fetch(
    segments: Sequence[_native.Segment],
) -> tuple[tuple[NDArray[np.uint8], NDArray[np.int64]], list[_native.Fault]]:
    arena, offsets, faults = _native.fetch(segments)
    return (arena, offsets), faults


def _read_range(
    rows: Rows,
    read: _Read[_T],
    losses: Losses,
    names: Sequence[str],
    span: tuple[int, int],
    chosen: NDArray[np.int64] | None = None,
) -> tuple[_T, int]:
    start, stop = span
    damages = {row: damage.error(shard.path) for row, shard, damage in rows.damages(start, stop)}
    wanted = chosen  # None: the whole range
    if damages:
        among = range(start, stop) if chosen is None else chosen.tolist()
        wanted = np.array([row for row in among if row not in damages], np.int64)
        damages = {row: damages[row] for row in among if row in damages}
    errors: dict[int, PenstockError] = dict(damages)
    while True:
        num_rows = stop - start if wanted is None else len(wanted)
        with naming_largest(rows, np.arange(start, stop) if wanted is None else wanted):
            segments = rows.segments(start, stop) if wanted is None else rows.select(wanted)
            result, faults = read(segments)
        if not faults and not errors:
            return result, num_rows
        bad = {}
        for fault in faults:
            row = start + fault[0] if wanted is None else int(wanted[fault[0]])
            if row not in bad:
                bad[row] = _make_row_error(rows, row, fault, names)
        errors.update(bad)
        for row in sorted(errors):
            losses.add(row, errors[row])
        if not bad:
            return result, num_rows
        everything = np.arange(start, stop) if wanted is None else wanted
        wanted = np.array([row for row in everything.tolist() if row not in bad], np.int64)
        errors = {}


def _make_row_error(rows: Rows, row: int, fault: _native.Fault, names: Sequence[str]) -> PenstockError:
    shard, record = rows.locate(row)
    if fault[1] in INDEX_IS_WRONG:
        shard.index.distrust()
    return make_error(shard.path, record, int(shard.index.offsets[record]), fault, names)
