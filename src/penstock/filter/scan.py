"""One pass over a few columns of a split: which rows a filter takes, how long rows are.

In: rows, a decode plan, and a function of a block of columns. Out: one value per row, block by block in the
order of rows, for any number of threads. Only the named fields are read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from threading import Event
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Column, Columns
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.errors import OptionError
from penstock.filter.expression import Expression
from penstock.filter.operand import count_bytes, count_values
from penstock.foundation.thread_pool import OrderedResults
from penstock.foundation.wording import show
from penstock.read.bitmap import Bitmap
from penstock.read.rows import Rows
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.schema.scalar import Text
from penstock.schema.schema import Schema

Measure: TypeAlias = Callable[[Columns, int], NDArray[Any]]
"""Makes an array with one entry per row from the columns of that many rows."""
MeasureLengths: TypeAlias = Callable[[Column], NDArray[Any]]

_BLOCK_ROWS = 1 << 14
_BLOCK_BYTES = 16 << 20
# Tasks per thread that may be finished before their results are taken.
_LOOK_AHEAD = 2
_MAX_LENGTH = np.iinfo(np.int32).max
_LENGTHS: dict[type[Field], MeasureLengths] = {Sequence: count_values, Text: count_bytes}


class ScannedBlock(NamedTuple):
    """The results for consecutive rows.

    Attributes:
        start: The first row.
        values: One entry per row; zero for skipped records.
    """

    start: int
    values: NDArray[Any]


# Bad records of a block are collected; `scan` decides in the order of rows whether to skip them.
_BlockResult: TypeAlias = tuple[ScannedBlock, Losses]


def filter_rows(
    rows: Rows,
    schema: Schema,
    expression: Expression,
    losses: Losses,
    strict: bool = False,
    num_threads: int = 1,
) -> Bitmap:
    """Return the rows for which an expression is true, without those that are skipped.

    `losses`: what to do with bad records: those that are damaged, and those with a bad value in a field that
    the expression names. `strict`: whether to refuse what protobuf accepts but no correct writer makes.
    `num_threads`: number of threads that read; the result does not depend on it.
    """
    plan = DecodePlan(schema.select(expression.names), strict=strict)
    evaluate = expression.evaluate
    with closing(scan(rows, plan, losses, lambda columns, _: evaluate(columns), num_threads)) as blocks:
        return Bitmap.from_masks((values for _, values in blocks), len(rows))


def find_empty_fields(rows: Rows, schema: Schema, names: Iterable[str], strict: bool = False) -> list[str]:
    """Return the fields that no row has; bad records do not count.

    Only fields that may be missing are read, each up to the first block that has a value of it. A field with
    a default is never empty.

    `strict`: whether to refuse what protobuf accepts but no correct writer makes.
    """
    empty = [name for name in names if schema[name].optional and schema[name].default is None]
    for start, stop in rows.in_order().blocks(_BLOCK_ROWS, _BLOCK_BYTES):
        if not empty:
            break
        plan = DecodePlan(schema.select(empty), strict=strict)
        columns, _ = read_columns(rows.in_order(), plan, Losses("collect", stop - start), start, stop)
        masks = {name: columns[name].present for name in empty}
        empty = [name for name, mask in masks.items() if mask is not None and not mask.any()]
    return empty


def row_lengths(
    rows: Rows,
    schema: Schema,
    field: str,
    losses: Losses,
    strict: bool = False,
    num_threads: int = 1,
    measure: MeasureLengths | None = None,
) -> NDArray[np.int32]:
    """Return the length of each row: 0 where the field is missing or the record is skipped.

    `strict`: whether to refuse what protobuf accepts but no correct writer makes. `num_threads`: number of
    threads that read; the result does not depend on it. `measure`: returns the length of each row of a
    column, such as the number of tokens. By default the length of a sequence is its number of values or
    steps, the length of a text its number of bytes.
    """
    declared = schema[field]
    count = measure or _LENGTHS.get(type(declared))
    if count is None:
        raise OptionError(
            f"length of field {show(field)}",
            expected="a sequence or a text",
            got=f"{'an' if declared.type_name[0] in 'aeiou' else 'a'} {declared.type_name}",
            advice="Name a field whose length varies.",
        )

    def measure_block(columns: Columns, _: int) -> NDArray[Any]:
        column = columns[field]
        lengths = np.minimum(count(column), _MAX_LENGTH)
        if column.present is not None and declared.default is None:
            lengths = lengths * column.present
        return lengths

    plan = DecodePlan(schema.select(field), strict=strict)
    result = np.zeros(len(rows), np.int32)
    with closing(scan(rows, plan, losses, measure_block, num_threads)) as blocks:
        for start, lengths in blocks:
            result[start : start + len(lengths)] = lengths
    return result


def scan(
    rows: Rows,
    plan: DecodePlan,
    losses: Losses,
    measure: Measure,
    num_threads: int = 1,
    block_bytes: int = _BLOCK_BYTES,
) -> Generator[ScannedBlock]:
    """Yield the results of `measure` for all rows, in order.

    Use `contextlib.closing` where the caller may stop early, so that the threads end.

    `block_bytes`: bytes of records that a thread decodes together, unless one record has more.
    """
    forward = rows.in_order()
    is_closed = Event()
    with ThreadPoolExecutor(max(1, num_threads), "penstock-scan") as pool:
        results = OrderedResults[list[_BlockResult]](pool, _LOOK_AHEAD * num_threads)
        try:
            for blocks in _make_tasks(forward, block_bytes):
                for result in results.submit(_run_task, forward, plan, measure, blocks, is_closed):
                    yield from _report_losses(result, losses)
            for result in results.drain():
                yield from _report_losses(result, losses)
        finally:
            is_closed.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _make_tasks(rows: Rows, block_bytes: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the blocks of each task, in order; a compressed file is one task, read from its start."""
    blocks = rows.blocks(_BLOCK_ROWS, block_bytes)
    for shard, its_blocks in groupby(blocks, lambda block: rows.locate(block[0])[0]):
        if shard.index.compression != "none":
            yield list(its_blocks)
        else:
            yield from ([block] for block in its_blocks)


def _run_task(
    rows: Rows, plan: DecodePlan, measure: Measure, blocks: list[tuple[int, int]], is_closed: Event
) -> list[_BlockResult]:
    results = []
    for start, stop in blocks:
        if is_closed.is_set():
            break
        losses = Losses("collect", stop - start)
        columns, num_rows = read_columns(rows, plan, losses, start, stop)
        values = measure(columns, num_rows)
        if losses:
            is_kept = np.ones(stop - start, np.bool_)
            is_kept[[row - start for row, _ in losses.items()]] = False
            padded = np.zeros((stop - start, *values.shape[1:]), values.dtype)
            padded[is_kept] = values
            values = padded
        results.append((ScannedBlock(start, values), losses))
    return results


def _report_losses(results: list[_BlockResult], losses: Losses) -> Iterator[ScannedBlock]:
    for block, found in results:
        for row, error in found.items():
            losses.add(row, error)
        yield block
