"""The rows of a split: the records of its files, concatenated.

In: shards. Out: the location of a row (file and record number), and segments of any rows for the core.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OutOfMemoryError
from penstock.foundation.process import usable_memory
from penstock.read.damage import Damage
from penstock.read.shard import Access, Shard
from penstock.read.shard_list import ShardList

# A call that uses more files reads them into memory one by one: the number of descriptors is limited.
_MOST_OPEN = 64

# Records are copied from where the kernel keeps their file, without a system call each. With decoding, those
# of 715 bytes take 0.32 µs of CPU instead of 0.39; blobs of 40 KB take 5.0 µs instead of 8.2 in order,
# and 6.1 instead of 10.7 in random order. The pages that are read through a mapping count as memory of this
# process, so that they must not be too many. Larger records were not measured.
_LARGEST_MAPPED = 64 << 10
_MOST_MAPPED = 0.125

_MOST_OFFSETS = 1024


class Rows:
    """Rows 0 … n−1 of several shards.

    Args:
        shards: The files, in order.
        can_map: Whether files may be mapped into memory, where their pages count as memory of this process.
    """

    def __init__(self, shards: Sequence[Shard], *, can_map: bool = True) -> None:
        self.shards = shards if isinstance(shards, ShardList) else ShardList(shards)
        self._can_map = can_map
        self._starts = [0, *accumulate(self.shards.num_records)]
        self._damaged = self.shards.has_damage

    def __len__(self) -> int:
        return self._starts[-1]

    def locate(self, row: int) -> tuple[Shard, int]:
        """Return the shard of a row and the record's number in it."""
        at = bisect_right(self._starts, row) - 1
        return self.shards[at], row - self._starts[at]

    def damages(self, start: int, stop: int) -> Iterator[tuple[int, Shard, Damage]]:
        """Yield the rows of a range that are known to be damaged, in order."""
        if not self._damaged:
            return
        for shard, first, begin, end in self._parts(start, stop):
            numbers = shard.index.damaged
            for number in numbers[bisect_left(numbers, begin) : bisect_left(numbers, end)]:
                yield first + number - begin, shard, shard.index.damages[number]

    @cached_property
    def is_mapped(self) -> bool:
        """Whether to map the files into memory: their records are small, as is their total size."""
        if not self._can_map:
            return False
        num_bytes = self.shards.num_bytes
        is_small = num_bytes <= _LARGEST_MAPPED * len(self)
        return is_small and num_bytes <= usable_memory() * _MOST_MAPPED

    @property
    def is_remote(self) -> bool:
        """Whether the files are in an object store, where each random read is a request."""
        return self.shards.is_remote

    @property
    def starts(self) -> list[int]:
        """The first row of each shard, and one more for the end."""
        return self._starts

    def damaged(self, rows: NDArray[np.int64]) -> list[tuple[int, Shard, Damage]]:
        """Return which of some rows are known to be damaged: (place in `rows`, shard, damage)."""
        if not self._damaged:
            return []
        found = []
        for at, row in enumerate(rows.tolist()):
            shard, record = self.locate(row)
            if record in shard.index.damages:
                found.append((at, shard, shard.index.damages[record]))
        return found

    def segments(self, start: int, stop: int) -> list[_native.Segment]:
        """Return where the frames of a range of rows are."""
        parts = list(self._parts(start, stop))
        way = self._choose_way(len(parts))
        return [shard.segment(slice(begin, end), way) for shard, _, begin, end in parts]

    def select(self, rows: NDArray[np.int64]) -> list[_native.Segment]:
        """Return where the frames of some rows are; they must be in order."""
        # Only the shards of these rows: there may be many others.
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        chosen = [
            (self.shards[int(numbers[begin])], rows[begin:end] - self._starts[int(numbers[begin])])
            for begin, end in pairwise(bounds)
            if begin < end
        ]
        way = self._choose_way(len(chosen))
        return [shard.segment(numbers, way) for shard, numbers in chosen]

    def _choose_way(self, num_files: int) -> Access:
        if num_files > _MOST_OPEN:
            return "load"
        return "map" if self.is_mapped else "read"

    def in_order(self) -> Rows:
        """Return the same rows, to be read once from the first to the last."""
        return Rows(self.shards.in_order(), can_map=self._can_map)

    def frame_bytes(self, start: int, stop: int) -> int:
        """Return the number of inflated bytes that the frames of a range take."""
        return sum(
            int(shard.index.offsets[end] - shard.index.offsets[begin])
            for shard, _, begin, end in self._parts(start, stop)
        )

    def blocks(
        self, most_rows: int, most_bytes: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield ranges that cover rows, each in one file, of at most `most_rows` and about `most_bytes`."""
        for shard, first, begin, last in self._parts(start, len(self) if stop is None else stop):
            offsets = shard.index.offsets
            at = begin
            while at < last:
                limit = int(offsets[at]) + most_bytes
                fitting = int(np.searchsorted(offsets, np.uint64(limit), side="right")) - 1
                end = min(max(at + 1, fitting), at + most_rows, last)
                yield first - begin + at, first - begin + end
                at = end

    def _parts(self, start: int, stop: int) -> Iterator[tuple[Shard, int, int, int]]:
        """Yield (shard, row of its first record wanted, first record, end) of each shard in a range."""
        if start >= stop:
            return
        at = bisect_right(self._starts, start) - 1
        while at < len(self.shards) and self._starts[at] < stop:
            offset = self._starts[at]
            begin, end = max(start - offset, 0), min(stop - offset, len(self.shards[at]))
            if begin < end:
                yield self.shards[at], offset + begin, begin, end
            at += 1


@contextmanager
def naming_largest(rows: Rows, wanted: NDArray[np.int64]) -> Iterator[None]:
    """Turn a `MemoryError` into one that names the largest record of the rows that are read."""
    try:
        yield
    except MemoryError:
        raise name_largest(rows, wanted) from None


def name_largest(rows: Rows, wanted: NDArray[np.int64]) -> OutOfMemoryError:
    """Return the error for rows that do not fit into memory together."""
    sizes = [rows.frame_bytes(row, row + 1) for row in wanted.tolist()]
    largest = int(np.argmax(sizes))
    shard, record = rows.locate(int(wanted[largest]))
    size = f"{sizes[largest]:,} bytes: payload"
    return OutOfMemoryError(
        f"a record does not fit into memory; it has {size}"
        if len(wanted) == 1
        else f"{len(wanted):,} records read together do not fit into memory; the largest has {size}",
        path=shard.path,
        record=record,
        offset=int(shard.index.offsets[record]),
        advice="Use a machine with more memory."
        if len(wanted) == 1
        else "Use smaller batches, or a machine with more memory.",
    )


def fingerprint_rows(rows: Rows, digests: Mapping[str, str]) -> str:
    """Return the fingerprint of a split.

    It uses the digest of a file, if there is one; otherwise its name, size, record count and some offsets,
    which do not distinguish files that differ only in values.
    """
    parts: list[object] = []
    for number, (name, num_records) in enumerate(
        zip(rows.shards.names, rows.shards.num_records, strict=True)
    ):
        if name in digests:
            parts.append([name, num_records, digests[name]])
            continue
        shard = rows.shards[number]
        offsets = shard.index.offsets
        chosen = np.linspace(0, len(offsets) - 1, min(len(offsets), _MOST_OFFSETS)).astype(np.int64)
        digest = hashlib.sha256(offsets[chosen].astype("<u8").tobytes()).hexdigest()
        parts.append([name, len(shard), shard.index.identity.size, digest])
    text = json.dumps(parts, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
