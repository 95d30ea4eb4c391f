"""The files of a data set: which rows go to which, and the writing of each, on any thread.

In: a finished store of rows. Out: shards under their names, each complete. Which rows a shard holds depends
on the rows alone.
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
"""How much is framed at once: it stays in the processor's cache until it is hashed and written."""


_PIECES_AHEAD: Final = 2

Frames: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Frames one behind the other, and the size of each."""


@dataclass(frozen=True)
class ShardTask:
    """One shard that is to be written.

    Attributes:
        name: Of the file.
        split: Number of its split.
        start: Its first row in the order of the split.
        stop: The row behind its last.
        num_bytes: What it will take, about.
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
        names: Of the splits.
        counts: How many rows each has; one of none has no shard.
        num_bytes: What all records take together.
        shard_bytes: What a shard should take.
        num_shards: How many shards the largest split should have instead.
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
    """Some rows of a shard: their numbers, their bodies, and what their late fields refer to."""

    rows: NDArray[np.uint64]
    bodies: ChunkColumn
    references: list[list[bytes]]


class ResidentValues:
    """Large values that are in memory, by the number of their row."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._blocks: list[dict[str, list[bytes | memoryview]]] = []

    def add(self, first_row: int, values: dict[str, list[bytes | memoryview]]) -> None:
        """Hold on to the values of a block."""
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
    """Writes shards; any number of threads may call it.

    Attributes:
        store: The rows.
        late: Name and key of each late field, in the order of their references.
        residents: Their values that are in memory.
        is_message: Whether a body is a whole message.
        staging: Where the files go.
        compression: How they are compressed.
        helpers: Threads that compose frames ahead of those that write them; None to do it in turn.
        turns: Entered while a shard is written, so that not too many are in memory at once.
    """

    store: RowStore
    late: tuple[tuple[str, str], ...]
    residents: ResidentValues
    is_message: bool
    staging: Staging
    compression: ManifestCompression
    helpers: ThreadPoolExecutor | None = None
    turns: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def __call__(self, task: ShardTask) -> ShardEntry:
        """Write a shard, or find that it is there already."""
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
        """Yield the frames of a shard; while some are hashed and written, the next are composed."""
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
        """Yield rows that take about so many bytes together, with their references."""
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
        late = []
        for (name, key), references in zip(self.late, piece.references, strict=True):
            pairs = zip(references, piece.rows.tolist(), strict=True)
            late.append((key, [find_value(each, self.residents.get(name, row)) for each, row in pairs]))
        frames, sizes, faults = _native.compose(*piece.bodies, late, self.is_message)
        for row, number, error in faults:
            raise refuse_file(late[number][1][row], error)
        if len(sizes) and int(sizes.max()) > MAX_TENSOR_BYTES:
            row = int(piece.rows[int(np.argmax(sizes))])
            raise FieldError(
                f"record of row {row + 1}",
                record=row,
                expected=f"at most {MAX_TENSOR_BYTES} bytes, what a protobuf message can hold",
                got=f"{int(sizes.max())} bytes",
            )
        return frames, sizes
