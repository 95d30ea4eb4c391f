"""Divides the rows of each split into shards, and writes them, on any thread.

In: a finished store of rows. Out: shards; other threads hash them while they are written, and sync and name
them while the next ones are written. The rows of a shard depend only on the rows of the source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from threading import BoundedSemaphore
from typing import Final, NamedTuple

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
from penstock.shards.shard_file import Frames, ShardFile, write_frames
from penstock.shards.staging import Staging

_PIECE_BYTES: Final = 4 << 20
"""Bytes that are framed at once: they stay in the CPU cache until they are hashed and written."""


_PIECES_AHEAD: Final = 2


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


def pair_shards(tasks: Sequence[ShardTask], num_workers: int) -> list[tuple[ShardTask, ...]]:
    """Group shards of the same split, and so of the same size, into pairs that one thread writes together.

    Two shards are hashed in the time of one. With less than two shards per worker there are no pairs, because
    some workers would have nothing to do.
    """
    if len(tasks) < 2 * num_workers:
        return [(task,) for task in tasks]
    groups: list[tuple[ShardTask, ...]] = []
    for _, same_split in groupby(tasks, lambda task: task.split):
        shards = list(same_split)
        groups += [tuple(shards[first : first + 2]) for first in range(0, len(shards), 2)]
    return groups


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


class WrittenShard(NamedTuple):
    """A shard with its bytes in the file, and the future that is done when it is on the disk.

    Attributes:
        task: Rows of the shard.
        entry: Entry for the manifest.
        finishing: Future of the thread that syncs and names the shard; None if an earlier run completed it.
    """

    task: ShardTask
    entry: ShardEntry
    finishing: Future[None] | None


def _note_complete(task: ShardTask, entry: ShardEntry | None) -> WrittenShard:
    if entry is None:
        raise ValueError(f"{task.name} is neither written nor complete")
    return WrittenShard(task, entry, None)


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
        hashers: Threads that compute the SHA-256 of shards, one per thread that writes.
        finishers: Threads that sync complete shards to the disk and name them.
        slots: Limits the number of shards that are open, and thus the memory that they take.
        helpers: Threads that compose frames in advance; None composes them in the writing thread.
    """

    store: RowStore
    deferred_fields: tuple[tuple[str, str], ...]
    residents: ResidentValues
    is_message: bool
    staging: Staging
    compression: ManifestCompression
    hashers: ThreadPoolExecutor
    finishers: ThreadPoolExecutor
    slots: BoundedSemaphore
    helpers: ThreadPoolExecutor | None = None

    def __call__(self, tasks: Sequence[ShardTask]) -> list[WrittenShard]:
        """Write shards together, except those that an earlier run completed.

        A shard is on the disk under its name when the future of its entry is done.
        """
        done = {task.name: self.staging.journal.shards.get(self._name_file(task)) for task in tasks}
        missing = [task for task in tasks if done[task.name] is None]
        written = self._write(missing) if missing else {}
        return [written.get(task.name) or _note_complete(task, done[task.name]) for task in tasks]

    def _name_file(self, task: ShardTask) -> str:
        return f"{task.name}.gz" if self.compression == "gzip" else task.name

    def _write(self, tasks: Sequence[ShardTask]) -> dict[str, WrittenShard]:
        with ExitStack() as stack:
            files: list[ShardFile] = []
            for task in tasks:
                self.slots.acquire()
                stack.callback(self.slots.release)
                name = self._name_file(task)
                file = self.staging.shard(name, self.compression, planned_bytes=task.num_bytes)
                files.append(stack.enter_context(file))
            rest = [(file, self._frames(task)) for file, task in zip(files, tasks, strict=True)]
            while rest:
                heads = [(file, frames, next(frames, None)) for file, frames in rest]
                rest = [(file, frames) for file, frames, head in heads if head is not None]
                found = [head for _, _, head in heads if head is not None]
                write_frames([file for file, _ in rest], found, self.hashers)
            entries = [file.seal() for file in files]
            finishing = self.finishers.submit(self._finish, files, stack.pop_all())
        return {
            task.name: WrittenShard(task, entry, finishing)
            for task, entry in zip(tasks, entries, strict=True)
        }

    def _finish(self, files: Sequence[ShardFile], stack: ExitStack) -> None:
        """Sync complete shards, and record them; without a name, they are removed."""
        with stack:
            for file in files:
                self.staging.finish(file)

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
