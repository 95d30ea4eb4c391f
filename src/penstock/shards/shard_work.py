"""Divides the rows of each split into shards, and writes them, on any thread.

In: a finished store of rows. Out: complete shards. The rows of a shard depend only on the rows of the source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.encode.deferred import find_value, referred_bytes, refuse_file
from penstock.errors import FieldError
from penstock.schema.field import MAX_TENSOR_BYTES
from penstock.shards.chunk import Chunk, ChunkColumn
from penstock.shards.entry import ShardEntry
from penstock.shards.manifest import ManifestCompression
from penstock.shards.row_store import RowStore
from penstock.shards.staging import Staging

_PIECE_BYTES: Final = 4 << 20
"""Bytes that are framed at once: they stay in the CPU cache until they are hashed and written."""


_PIECES_AHEAD: Final = 2

Frames: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Concatenated frames, and the size of each."""


@dataclass(frozen=True)
class ShardTask:
    """A shard to write.

    Attributes:
        name: Name of the file.
        split: Index of the split.
        start: First row, in split order.
        stop: Exclusive end of the rows.
        num_bytes: Approximate size.
    """

    name: str
    split: int
    start: int
    stop: int
    num_bytes: int


def plan_shards(
    names: Sequence[str], counts: Sequence[int], num_bytes: int, shard_bytes: int, num_shards: int | None
) -> list[ShardTask]:
    """Divide the rows of each split into shards of about equal numbers of rows.

    Args:
        names: Names of the splits.
        counts: Number of rows per split; an empty split has no shard.
        num_bytes: Size of all records together.
        shard_bytes: Desired size of a shard.
        num_shards: Desired number of shards of the largest split, instead of `shard_bytes`.
    """
    total, largest = sum(counts), max(counts)
    tasks = []
    for split, (name, count) in enumerate(zip(names, counts, strict=True)):
        if num_shards is None:
            wanted = num_bytes * count / total / shard_bytes
        else:
            wanted = num_shards * count / largest
        shards = max(1, min(count, round(wanted))) if count else 0
        for number in range(shards):
            start, stop = count * number // shards, count * (number + 1) // shards
            size = num_bytes * (stop - start) // total
            tasks.append(ShardTask(f"{name}-{number:05}-of-{shards:05}.tfrecord", split, start, stop, size))
    return tasks


class _Piece(NamedTuple):
    """Rows of a shard: their indices, their bodies, and the references of their deferred fields."""

    rows: NDArray[np.uint64]
    bodies: ChunkColumn
    references: list[list[bytes]]


class ResidentValues:
    """Large values in memory, by row index."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._blocks: list[dict[str, list[bytes | memoryview]]] = []

    def add(self, first_row: int, values: dict[str, list[bytes | memoryview]]) -> None:
        """Add the values of a block."""
        if values:
            self._firsts.append(first_row)
            self._blocks.append(values)

    def get(self, name: str, row: int) -> bytes | memoryview | None:
        """Return the value of a row, or None if it is not in memory."""
        at = bisect_right(self._firsts, row) - 1
        values = self._blocks[at].get(name) if at >= 0 else None
        offset = row - self._firsts[at] if at >= 0 else 0
        return values[offset] if values is not None and offset < len(values) else None


@dataclass(frozen=True)
class ShardWork:
    """Writes shards; any number of threads can call it.

    Attributes:
        store: Store of the rows.
        deferred_fields: Name and key of each deferred field, in the order of their references.
        residents: Values of deferred fields that are in memory.
        is_message: Whether a body is a complete message.
        staging: Staging folder of the data set.
        compression: Compression of the shards.
        helpers: Threads that compose frames in advance; None composes them in the writing thread.
        turns: Semaphore that limits the number of shards in memory.
    """

    store: RowStore
    deferred_fields: tuple[tuple[str, str], ...]
    residents: ResidentValues
    is_message: bool
    staging: Staging
    compression: ManifestCompression
    helpers: ThreadPoolExecutor | None = None
    turns: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def __call__(self, task: ShardTask) -> ShardEntry:
        """Write a shard, unless an earlier run completed it."""
        name = f"{task.name}.gz" if self.compression == "gzip" else task.name
        done = self.staging.journal.shards.get(name)
        if done is not None:
            return done
        with (
            self.turns,
            self.staging.shard(name, self.compression, planned_bytes=task.num_bytes) as file,
        ):
            for frames, sizes in self._frames(task):
                file.write(frames, sizes)
            return self.staging.finish(file)

    def _frames(self, task: ShardTask) -> Iterator[Frames]:
        """Yield the frames of a shard; while the caller writes them, the next ones are composed."""
        pieces = (
            piece
            for chunk in self.store.chunks(task.split, task.start, task.stop)
            for piece in self._cut(chunk)
        )
        if self.helpers is None:
            yield from map(self._compose, pieces)
            return
        ahead: deque[Future[Frames]] = deque()
        for piece in pieces:
            ahead.append(self.helpers.submit(self._compose, piece))
            if len(ahead) > _PIECES_AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def _cut(self, chunk: Chunk) -> Iterator[_Piece]:
        """Yield pieces of about `_PIECE_BYTES` with their references."""
        bodies, *columns = chunk.columns
        references = [[column.value(row) for row in range(len(chunk.rows))] for column in columns]
        sizes = bodies.sizes.copy()
        for each in references:
            sizes += list(map(referred_bytes, each))
        ends = np.cumsum(sizes)
        start = 0
        while start < len(ends):
            limit = (int(ends[start - 1]) if start else 0) + _PIECE_BYTES
            stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            rows = slice(start, stop)
            yield _Piece(chunk.rows[rows], bodies.take(rows), [each[rows] for each in references])
            start = stop

    def _compose(self, piece: _Piece) -> Frames:
        deferred = []
        for (name, key), references in zip(self.deferred_fields, piece.references, strict=True):
            pairs = zip(references, piece.rows.tolist(), strict=True)
            deferred.append((key, [find_value(each, self.residents.get(name, row)) for each, row in pairs]))
        frames, sizes, faults = _native.compose(*piece.bodies, deferred, self.is_message)
        for row, number, error in faults:
            raise refuse_file(deferred[number][1][row], error)
        if len(sizes) and int(sizes.max()) > MAX_TENSOR_BYTES:
            row = int(piece.rows[int(np.argmax(sizes))])
            raise FieldError(
                f"record of row {row + 1}",
                record=row,
                expected=f"at most {MAX_TENSOR_BYTES} bytes, the maximum of a protobuf message",
                got=f"{int(sizes.max())} bytes",
            )
        return frames, sizes
