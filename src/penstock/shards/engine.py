"""The engines of a conversion: where blocks are encoded, where their rows are stored, who writes the shards.

In: blocks of rows in the order of the source, then the split of every row. Out: encoded rows in the same
order, the digest of their content, and shards. `LocalEngine` uses threads of this process; another engine has
the same methods. The engine does not affect the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import BoundedSemaphore
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from penstock import _native
from penstock.encode.file_check import FileThreads
from penstock.encode.raw_rows import RowBlock
from penstock.foundation.process import count_cores
from penstock.foundation.thread_pool import OrderedResults
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import MAX_SPLITS, Splits
from penstock.shards.content import Content, ContentDigest
from penstock.shards.rejected_rows import Rejects
from penstock.shards.row_work import RowWork, WorkedRows
from penstock.shards.shard_work import (
    ResidentValues,
    ShardTask,
    ShardWork,
    WrittenShard,
    find_complete,
    group_shards,
)
from penstock.shards.sort.row_store import RowStore, limit_memory
from penstock.shards.splits.split import Assignment
from penstock.shards.staging.staging import Staging

# Shards that are written at the same time where rows are on disk: each takes about 60 MB of memory. All
# workers compose their frames.
_MAX_WRITERS: Final = 6
_MAX_FINISHING: Final = 2  # shards that wait for the disk at the same time
_BLOCKS_BETWEEN: Final = 32  # blocks after which freed memory is returned to the system, for large sources


class Engine(Protocol):
    """Encodes the blocks of one conversion, stores their rows, and writes its shards. One thread uses it."""

    def add(self, block: RowBlock) -> Iterator[WorkedRows]:
        """Add the next block, and yield the blocks that are due, in order, each with a wait for it."""

    def drain(self) -> Iterator[WorkedRows]:
        """Yield all blocks that are pending, in order."""

    def keep(self, worked: WorkedRows) -> None:
        """Store the rows of the next encoded block, and add them to the digest of the content."""

    def digest(self, rejects: Rejects, source: Sequence[Mapping[str, Any]]) -> Content:
        """Return the content of all rows; see `ContentDigest.finish`."""

    def write(self, assignment: Assignment, tasks: Sequence[ShardTask]) -> Iterator[WrittenShard]:
        """Write the shards that the staging folder lacks, and yield all of them, in any order.

        Args:
            assignment: Split of each row.
            tasks: Shards of all splits.
        """

    def close(self) -> None:
        """End the work and release the rows; shards that are complete are kept for a resumed run."""


MakeEngine: TypeAlias = Callable[[RowWork, Splits, ConvertOptions, Staging], Engine]


def count_splits(split: Splits) -> int:
    """Return the maximum number of splits that rows can have."""
    return len(split.shares) if split.split_by is None else MAX_SPLITS


def list_deferred_fields(work: RowWork) -> tuple[tuple[str, str], ...]:
    """Return the name and the key of each deferred field, in the order of their references."""
    return tuple((name, work.schema[name].wire_key(name)) for name in work.deferred_names)


class LocalEngine:
    """Threads of this process; rows are in memory, or on disk if there are many."""

    def __init__(self, work: RowWork, split: Splits, options: ConvertOptions, staging: Staging) -> None:
        self._work = work
        self._options = options
        self._staging = staging
        num_threads = options.num_threads or count_cores()
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="penstock")
        self._helpers = ThreadPoolExecutor(num_threads, thread_name_prefix="penstock-ahead")
        self._hashers = ThreadPoolExecutor(num_threads, thread_name_prefix="penstock-hash")
        self._finishers = ThreadPoolExecutor(_MAX_FINISHING, thread_name_prefix="penstock-sync")
        # The number of blocks in memory: enough to keep every thread busy while the caller reads the next.
        self._results = OrderedResults[WorkedRows](self._pool, num_threads + 1)
        self._store = RowStore(
            staging.scratch,
            seed=options.seed if options.shuffle else None,
            num_splits=count_splits(split),
            max_memory_bytes=limit_memory(options.memory_bytes),
            pool=self._helpers if num_threads > 1 else None,
        )
        self._residents = ResidentValues()
        self._content = ContentDigest(self._helpers if num_threads > 1 else None)
        self._file_threads = FileThreads(self._helpers, num_threads - 1) if num_threads > 1 else None
        self._num_blocks = 0

    def add(self, block: RowBlock) -> Iterator[WorkedRows]:
        """Add the next block, and yield the blocks that are due, in order."""
        return self._results.submit(self._work, block, self._file_threads)

    def drain(self) -> Iterator[WorkedRows]:
        """Yield all blocks that are pending, in order."""
        return self._results.drain()

    def keep(self, worked: WorkedRows) -> None:
        """Store the rows of the next encoded block, and add them to the digest of the content."""
        self._store.append(worked.rows, worked.columns, worked.tentative)
        self._residents.add(worked.block.first_row, worked.resident)
        self._content.add(worked)
        self._num_blocks += 1
        if self._store.is_on_disk and self._num_blocks % _BLOCKS_BETWEEN == 0:
            _release_memory()

    def digest(self, rejects: Rejects, source: Sequence[Mapping[str, Any]]) -> Content:
        """Return the content of all rows."""
        return self._content.finish(rejects, source)

    def write(self, assignment: Assignment, tasks: Sequence[ShardTask]) -> Iterator[WrittenShard]:
        """Write the shards that the staging folder lacks, and yield all of them."""
        self._store.finish(assignment.codes)
        is_on_disk = self._store.is_on_disk
        if is_on_disk:
            _native.empty_pool()  # writing does not use the buffers of reading
            _release_memory()
        num_threads = self._options.num_threads or count_cores()
        write = ShardWork(
            self._store,
            list_deferred_fields(self._work),
            self._residents,
            self._work.encoder.is_sequence,
            self._staging,
            self._options.compression,
            self._hashers,
            self._finishers,
            BoundedSemaphore(_MAX_WRITERS if is_on_disk else 2 * (num_threads + _MAX_FINISHING)),
            self._helpers if num_threads > 1 else None,
        )
        complete, missing = find_complete(tasks, self._staging.journal.shards, self._options.compression)
        yield from complete
        # Two shards at a time need the memory of both.
        groups = group_shards(missing, len(missing) if is_on_disk else num_threads)
        yield from chain.from_iterable(self._pool.map(_releasing(write) if is_on_disk else write, groups))
        # The rest of the conversion continues while the system takes back what a large file had cached.
        self._helpers.submit(self._store.close)

    def close(self) -> None:
        """Stop the threads and release the rows."""
        for pool in (self._pool, self._helpers, self._hashers):
            pool.shutdown(wait=True, cancel_futures=True)
        self._finishers.shutdown(wait=True)  # shards that are complete are kept for a resumed run
        self._store.close()


def _releasing(write: ShardWork) -> Callable[[Sequence[ShardTask]], list[WrittenShard]]:
    """Return a function that writes shards and then returns freed memory to the system."""

    def write_shards(tasks: Sequence[ShardTask]) -> list[WrittenShard]:
        written = write(tasks)
        _release_memory()
        return written

    return write_shards


def _release_memory() -> None:
    """Return freed memory to the system: allocators keep more of it the longer they run."""
    _native.trim_memory()
    pa.default_memory_pool().release_unused()
