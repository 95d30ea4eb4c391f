"""Pieces of new data into the arrays that a model takes, made ahead by several threads, in order.

In: pieces, and the pipeline of the inputs. Out: `ModelBatch`es, in the order of the data; how many threads
there are changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from penstock.columns import take_rows
from penstock.errors import FieldError
from penstock.jobs.predict.pieces import Piece, Refusal, cut_batches
from penstock.model.finite import find_faults
from penstock.transform.assembly import Faults
from penstock.transform.pipeline import Pipeline

_T = TypeVar("_T")

_PIECES_AHEAD: Final = 2
_TARGET_BYTES: Final = 4 << 20
_FEWEST, _MOST = 32, 1024
_USUAL_LENGTH: Final = 256  # of what varies: texts and lists


@dataclass(frozen=True)
class ModelBatch:
    """Some rows, ready.

    Attributes:
        inputs: What the model takes, by name; None where no row is left.
        num_rows: How many rows.
        carried: What goes into the output as it is.
        refusals: Rows that were left out.
        num_bytes: How much of the data it stands for.
    """

    inputs: dict[str, Any] | None
    num_rows: int
    carried: pa.RecordBatch
    refusals: tuple[Refusal, ...]
    num_bytes: int


def choose_batch_size(inputs: Pipeline) -> int:
    """Return how many rows take about 4 MiB as a model sees them: a power of two from 32 to 1,024."""
    row_bytes = sum(
        np.dtype(output.dtype).itemsize * int(np.prod([dim or _USUAL_LENGTH for dim in output.shape]))
        for output in inputs.inputs.values()
        if output.dtype not in ("string", "bytes")
    )
    size = _FEWEST
    while size < _MOST and 2 * size * row_bytes <= _TARGET_BYTES:
        size *= 2
    return size


class BatchMaker:
    """Makes batches of pieces; any number of threads may call it.

    Args:
        inputs: The pipeline of the inputs.
        most_refusals: How many rows of a batch are looked for that do not fit: where one is too many, the
            first is enough.
    """

    def __init__(self, inputs: Pipeline, most_refusals: int) -> None:
        self._inputs = inputs
        self._most = most_refusals

    def __call__(self, piece: Piece) -> ModelBatch:
        """Return the arrays of the rows, but for those that a transform refuses."""
        columns, faults = self._inputs.prepare(piece.columns)
        num_known = len(piece.refusals)
        # A model answers NaN with NaN, or with a number that means nothing: some kernels turn NaN into 0.
        faults = {**find_faults(columns, self._inputs), **faults}
        piece = leave_out(replace(piece, columns=columns), faults)
        while len(piece.rows) and len(piece.refusals) - num_known <= self._most:
            try:
                inputs = self._inputs.apply(piece.columns, len(piece.rows))[0]
            except FieldError as error:
                if error.record is None or not 0 <= error.record < len(piece.rows):
                    raise
                piece = leave_out(piece, {error.record: error})
            else:
                return ModelBatch(inputs, len(piece.rows), piece.carried, piece.refusals, piece.num_bytes)
        return ModelBatch(None, 0, piece.carried.slice(0, 0), piece.refusals, piece.num_bytes)


def leave_out(piece: Piece, faults: Faults) -> Piece:
    """Return a piece without the rows that have a fault, which become refusals."""
    if not faults:
        return piece
    found = [
        Refusal(int(piece.rows[at]), partial(piece.locate, int(piece.rows[at]), faults[at]))
        for at in sorted(faults)
    ]
    rest = np.delete(np.arange(len(piece.rows), dtype=np.int64), sorted(faults))
    return replace(
        piece,
        columns=take_rows(piece.columns, rest),
        rows=piece.rows[rest],
        carried=piece.carried.take(rest),
        refusals=tuple(sorted([*piece.refusals, *found], key=lambda each: each.row)),
    )


def make_batches(
    makers: Iterator[Callable[[], Piece]], make: BatchMaker, batch_size: int, num_workers: int
) -> Generator[ModelBatch, None, None]:
    """Yield the batches in order; to be closed, which ends the threads.

    The caller's thread reads the data; others encode and transform, while the caller asks the model.
    """
    pool = ThreadPoolExecutor(num_workers, thread_name_prefix="penstock")
    try:
        pieces = _run_ahead(pool, makers, _PIECES_AHEAD)
        yield from _run_ahead(
            pool, (partial(make, piece) for piece in cut_batches(pieces, batch_size)), num_workers + 1
        )
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_ahead(pool: ThreadPoolExecutor, calls: Iterator[Callable[[], _T]], num_ahead: int) -> Iterator[_T]:
    """Yield what calls return, in order; so many are under way before they are asked for."""
    pending: deque[Future[_T]] = deque()
    failure: Exception | None = None
    while True:
        try:
            call = next(calls)
        except StopIteration:
            break
        except Exception as error:  # comes behind what goes wrong in the rows before
            failure = error
            break
        pending.append(pool.submit(call))
        if len(pending) > num_ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
    if failure is not None:
        raise failure
