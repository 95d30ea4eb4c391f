"""The files of a data set: which rows go to which, and the writing of each, on any thread.

In: a finished store of rows. Out: shards under their names, each complete. Which rows a shard holds depends
on the rows alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.encode.late import fetch, referred_bytes
from penstock.errors import FieldError
from penstock.schema.dtype import MAX_TENSOR_BYTES
from penstock.shards.chunk import Chunk
from penstock.shards.entry import ShardEntry
from penstock.shards.manifest import ManifestCompression
from penstock.shards.staging import Staging
from penstock.shards.store import RowStore

_PIECE_BYTES: Final = 4 << 20
"""How much is framed at once: it stays in the processor's cache until it is hashed and written."""


@dataclass(frozen=True)
class ShardTask:
    """One shard that is to be written.

    Attributes:
        name: Of the file.
        split: Number of its split.
        start: Its first row in the order of the split.
        stop: The row behind its last.
    """

    name: str
    split: int
    start: int
    stop: int


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
            tasks.append(ShardTask(f"{name}-{number:05}-of-{shards:05}.tfrecord", split, start, stop))
    return tasks


class Residents:
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
    """

    store: RowStore
    late: tuple[tuple[str, str], ...]
    residents: Residents
    is_message: bool
    staging: Staging
    compression: ManifestCompression

    def __call__(self, task: ShardTask) -> ShardEntry:
        """Write a shard, or find that it is there already."""
        name = f"{task.name}.gz" if self.compression == "gzip" else task.name
        done = self.staging.journal.shards.get(name)
        if done is not None:
            return done
        with self.staging.shard(name, self.compression) as file:
            for chunk in self.store.chunks(task.split, task.start, task.stop):
                for start, stop in self._pieces(chunk):
                    file.write(*self._compose(chunk, start, stop))
            return self.staging.finish(file)

    def _pieces(self, chunk: Chunk) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows that take about so many bytes together."""
        sizes = chunk.columns[0].sizes.copy()
        for column in chunk.columns[1:]:
            sizes += [referred_bytes(column.value(row)) for row in range(len(chunk.rows))]
        ends = np.cumsum(sizes)
        start = 0
        while start < len(ends):
            limit = (int(ends[start - 1]) if start else 0) + _PIECE_BYTES
            stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            yield start, stop
            start = stop

    def _compose(self, chunk: Chunk, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        bodies, *references = chunk.columns
        late = []
        for (name, key), column in zip(self.late, references, strict=True):
            rows = chunk.rows[start:stop].tolist()
            values = [
                fetch(column.value(start + i), self.residents.get(name, row)) for i, row in enumerate(rows)
            ]
            late.append((key, values))
        frames, sizes = _native.compose(
            bodies.arenas,
            bodies.arena_of[start:stop],
            bodies.begins[start:stop],
            bodies.sizes[start:stop],
            late,
            self.is_message,
        )
        if len(sizes) and int(sizes.max()) > MAX_TENSOR_BYTES:
            row = int(chunk.rows[start + int(np.argmax(sizes))])
            raise FieldError(
                f"record of row {row + 1}",
                record=row,
                expected=f"at most {MAX_TENSOR_BYTES} bytes, what a protobuf message can hold",
                got=f"{int(sizes.max())} bytes",
            )
        return frames, sizes
