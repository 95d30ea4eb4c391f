"""Divides the rows of each split into shards, and writes them, on any thread.

In: a finished store of rows. Out: shards; other threads hash them while they are written, and sync and name
them while the next ones are written. The rows of a shard depend only on the rows of the source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from threading import BoundedSemaphore
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.encode.deferred import (
    IN_MEMORY,
    IN_STORE,
    ReferredValues,
    fetch_value,
    find_value,
    refuse_file,
)
from penstock.errors import FieldError
from penstock.format.entry import ShardEntry
from penstock.format.manifest import ManifestCompression
from penstock.schema.field import MAX_TENSOR_BYTES
from penstock.shards.shard_file import Frames, ShardFile, write_frames
from penstock.shards.sort.chunk import Chunk, ChunkColumn
from penstock.storage.request_threads import request_threads, wait

_PIECE_BYTES: Final = 4 << 20
"""Bytes that are framed at once: they stay in the CPU cache until they are hashed and written."""


_PIECES_AHEAD: Final = 2
_FETCHED_PIECES: Final = 4  # 16 MiB of requests that are under way, per open shard
_NUM_TOGETHER: Final = 2
"""Number of shards that one thread writes at a time: they are hashed in the time of one."""


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

    def file_name(self, compression: ManifestCompression) -> str:
        """Return the name of the file, with the suffix of its compression."""
        return f"{self.name}.gz" if compression == "gzip" else self.name


def find_complete(
    tasks: Sequence[ShardTask], complete: Mapping[str, ShardEntry], compression: ManifestCompression
) -> tuple[list[WrittenShard], list[ShardTask]]:
    """Divide shards into those that an earlier run completed, and those to write."""
    found, missing = [], []
    for task in tasks:
        entry = complete.get(task.file_name(compression))
        if entry is None:
            missing.append(task)
        else:
            found.append(WrittenShard(task, entry, None))
    return found, missing


def plan_shards(
    names: Sequence[str], counts: Sequence[int], num_bytes: int, shard_bytes: int, num_shards: int | None
) -> list[ShardTask]:
    """Divide the rows of each split into shards of about equal numbers of rows.

    `counts`: number of rows per split; an empty split has no shard. `num_shards`: desired number of shards of
    the largest split, instead of `shard_bytes`.
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


def group_shards(tasks: Sequence[ShardTask], num_workers: int) -> list[tuple[ShardTask, ...]]:
    """Group shards, each group for one thread, which writes two shards at a time.

    Two shards are hashed in the time of one. Where each worker has two shards or more, shards of the same
    split, and so of the same size, are pairs. The other shards are divided into groups of about equal size,
    one per worker, so that no worker has nothing to do.
    """
    groups: list[tuple[ShardTask, ...]] = []
    others = list(tasks)
    if len(tasks) >= 2 * num_workers:
        others = []
        for _, same_split in groupby(tasks, lambda task: task.split):
            shards = list(same_split)
            num_paired = len(shards) // 2 * 2
            groups += [tuple(shards[first : first + 2]) for first in range(0, num_paired, 2)]
            others += shards[num_paired:]
    rest: list[list[ShardTask]] = [[] for _ in range(min(num_workers, len(others)))]
    for task in sorted(others, key=lambda task: -task.num_bytes):  # stable
        min(rest, key=lambda group: sum(each.num_bytes for each in group)).append(task)
    return groups + [tuple(group) for group in rest]


class DatasetRows(Protocol):
    """The rows of a conversion, in the order of their splits."""

    def chunks(self, split: int, start: int, stop: int) -> Iterator[Chunk]:
        """Yield the rows of a split from position `start` to `stop`."""


class ShardTarget(Protocol):
    """Where shards are written."""

    def shard(
        self, name: str, compression: ManifestCompression = "none", *, planned_bytes: int = 0
    ) -> ShardFile:
        """Create a shard."""

    def finish(self, shard: ShardFile) -> ShardEntry:
        """Commit a shard."""


class _Piece(NamedTuple):
    """Rows of a shard: their indices, their bodies, and the references of their deferred fields.

    `kinds` has what the references refer to. `values` has the values of deferred fields, if they are stored
    with the rows; `fetched` has those that are in an object store, where they were requested already.
    """

    rows: NDArray[np.uint64]
    bodies: ChunkColumn
    references: list[ChunkColumn]
    kinds: list[NDArray[np.uint8]]
    values: list[ChunkColumn]
    fetched: list[list[Future[bytes] | None]]

    @property
    def is_remote(self) -> bool:
        """Whether a value is in an object store."""
        return any((kinds == IN_STORE).any() for kinds in self.kinds)

    def cancel(self) -> None:
        """Give up the values that were requested."""
        for future in (each for column in self.fetched for each in column):
            if future is not None:
                future.cancel()


class _OpenShard(NamedTuple):
    """A shard that is being written: its frames that are not yet written, and what closes its file."""

    task: ShardTask
    file: ShardFile
    frames: Iterator[Frames]
    closing: ExitStack


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

    def take(self, name: str, rows: NDArray[np.uint64]) -> list[bytes | memoryview | None]:
        """Return the values of rows; None for a row whose value is not in memory."""
        at = np.searchsorted(self._firsts, rows.astype(np.int64), side="right") - 1
        blocks = [values.get(name) for values in self._blocks]
        firsts = [*self._firsts, 0]  # the last is for rows before the first block
        found: list[bytes | memoryview | None] = []
        for number, row in zip(at.tolist(), rows.tolist(), strict=True):
            values = blocks[number] if number >= 0 else None
            offset = row - firsts[number]
            found.append(values[offset] if values is not None and offset < len(values) else None)
        return found


class WrittenShard(NamedTuple):
    """A shard with its bytes in the file, and the future that is done when it is on the disk.

    Attributes:
        task: Rows of the shard.
        entry: Entry for the manifest.
        finishing: Future of the thread that syncs and names the shard; None if that is done.
    """

    task: ShardTask
    entry: ShardEntry
    finishing: Future[None] | None


@dataclass(frozen=True)
class ShardWork:
    """Writes shards; any number of threads can call it.

    Attributes:
        store: Store of the rows.
        deferred_fields: Name and key of each deferred field, in the order of their references.
        residents: Values of deferred fields that are in memory.
        is_message: Whether a body is a complete message.
        target: Where the shards are written.
        compression: Compression of the shards.
        hashers: Threads that compute the SHA-256 of shards, one per thread that writes.
        finishers: Threads that sync complete shards to the disk and name them.
        slots: Limits the number of shards that are open, and thus the memory that they take.
        helpers: Threads that compose frames in advance; None composes them in the writing thread.
    """

    store: DatasetRows
    deferred_fields: tuple[tuple[str, str], ...]
    residents: ResidentValues
    is_message: bool
    target: ShardTarget
    compression: ManifestCompression
    hashers: ThreadPoolExecutor
    finishers: ThreadPoolExecutor
    slots: BoundedSemaphore
    helpers: ThreadPoolExecutor | None = None

    def __call__(self, tasks: Sequence[ShardTask]) -> list[WrittenShard]:
        """Write shards, two at a time.

        A shard is on the disk under its name when the future of its entry is done.
        """
        waiting = deque(tasks)
        written: list[WrittenShard] = []
        with ExitStack() as stack:
            opened: list[_OpenShard] = []
            while waiting or opened:
                while waiting and len(opened) < _NUM_TOGETHER:
                    opened.append(self._open(waiting.popleft(), stack))
                heads = [next(shard.frames, None) for shard in opened]
                pairs = list(zip(opened, heads, strict=True))
                found = [(shard.file, head) for shard, head in pairs if head is not None]
                if found:
                    write_frames([file for file, _ in found], [head for _, head in found], self.hashers)
                for shard, head in pairs:
                    if head is None:
                        opened.remove(shard)
                        entry = shard.file.seal()
                        finishing = self.finishers.submit(self._finish, shard.file, shard.closing.pop_all())
                        written.append(WrittenShard(shard.task, entry, finishing))
        return written

    def _open(self, task: ShardTask, stack: ExitStack) -> _OpenShard:
        """Begin a shard; the end of `stack` removes it unless it is complete."""
        closing = stack.enter_context(ExitStack())
        self.slots.acquire()
        closing.callback(self.slots.release)
        name = task.file_name(self.compression)
        file = self.target.shard(name, self.compression, planned_bytes=task.num_bytes)
        return _OpenShard(task, closing.enter_context(file), self._frames(task), closing)

    def _finish(self, file: ShardFile, closing: ExitStack) -> None:
        """Sync a complete shard, and record it; without a name, it is removed."""
        with closing:
            self.target.finish(file)

    def _frames(self, task: ShardTask) -> Iterator[Frames]:
        """Yield the frames of a shard; while the caller writes them, the next ones are composed."""
        pieces = _fetch_ahead(
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
        num_deferred = len(self.deferred_fields)
        references, values = columns[:num_deferred], columns[num_deferred:]
        referred = [ReferredValues(*_native.read_references(*column)) for column in references]
        sizes = bodies.sizes.copy()
        for each in referred:
            sizes += each.sizes
        ends = np.cumsum(sizes)
        start = 0
        while start < len(ends):
            limit = (int(ends[start - 1]) if start else 0) + _PIECE_BYTES
            stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            rows = slice(start, stop)
            yield _Piece(
                chunk.rows[rows],
                bodies.take(rows),
                [column.take(rows) for column in references],
                [each.kinds[rows] for each in referred],
                [column.take(rows) for column in values],
                [],
            )
            start = stop

    def _compose(self, piece: _Piece) -> Frames:
        deferred = [(key, self._find_values(piece, i)) for i, (_, key) in enumerate(self.deferred_fields)]
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

    def _find_values(self, piece: _Piece, number: int) -> list[_native.LateValue]:
        """Return the values of a deferred field in the form that the core expects."""
        kinds = piece.kinds[number]
        in_memory = kinds == IN_MEMORY
        values: Sequence[bytes | memoryview | None]
        if piece.values:
            stored = zip(piece.values[number].values(), in_memory.tolist(), strict=True)
            values = [value if is_stored else None for value, is_stored in stored]
        else:
            values = self.residents.take(self.deferred_fields[number][0], piece.rows)
        if in_memory.all() and all(value is not None for value in values):
            return list(values)
        if piece.fetched:
            pending = zip(values, piece.fetched[number], strict=True)
            values = [value if future is None else wait(future) for value, future in pending]
        return list(map(find_value, piece.references[number].values(), values))


def _fetch_ahead(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """Yield pieces in order; values in object stores are requested a few pieces ahead."""
    ahead: deque[_Piece] = deque()
    try:
        for piece in pieces:
            ahead.append(piece._replace(fetched=_request(piece)) if piece.is_remote else piece)
            while len(ahead) > (_FETCHED_PIECES if piece.is_remote else 0):
                yield ahead.popleft()
        while ahead:
            yield ahead.popleft()
    finally:
        for piece in ahead:
            piece.cancel()


def _request(piece: _Piece) -> list[list[Future[bytes] | None]]:
    threads = request_threads()
    found: list[list[Future[bytes] | None]] = []
    for column, kinds in zip(piece.references, piece.kinds, strict=True):
        each = zip(column.values(), (kinds == IN_STORE).tolist(), strict=True)
        found.append(
            [
                threads.submit(partial(fetch_value, reference)) if is_remote else None
                for reference, is_remote in each
            ]
        )
    return found
