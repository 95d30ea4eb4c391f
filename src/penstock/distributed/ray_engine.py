"""The engine of conversions on Ray: the driver reads the source and decides, workers encode and write shards.

In: blocks of rows. Out: what `LocalEngine` returns, byte for byte. Groups of blocks become tasks; their rows
stay in run files in the hidden folder beside the output, which all machines share, or in the object store of
the output. Only the driver moves a shard to the data set, or records one that was uploaded: once, however
often a task ran.
"""

from __future__ import annotations

import contextlib
import socket
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from penstock.distributed.ray_cluster import Cluster
from penstock.distributed.ray_tasks import (
    EncodedBlocks,
    EncodeJob,
    PackedBlock,
    WriteJob,
    digest_streams,
    encode_blocks,
    write_shards,
)
from penstock.encode.raw_rows import RawRows, RowBlock
from penstock.errors import PathError, StoreError
from penstock.foundation.wording import show
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import Splits
from penstock.shards.content import Content, ContentDigest
from penstock.shards.engine import count_splits, list_deferred_fields
from penstock.shards.rejected_rows import Rejects
from penstock.shards.row_work import RowWork, WorkedRows
from penstock.shards.shard_work import ShardTask, WrittenShard, find_complete, group_shards
from penstock.shards.sort.sorted_runs import RunFiles, SortedRun, join_runs
from penstock.shards.splits.assignment import RANK_BELOW
from penstock.shards.splits.split import Assignment
from penstock.shards.staging.staging import Staging
from penstock.storage.paths import locate

_TASK_BYTES: Final = 32 << 20
"""Bytes of the source that a task encodes, at most about: a second of work, beside which Ray's few
milliseconds per task do not count. Each task writes a run, and fewer runs are read faster."""
_MIN_TASK_BYTES: Final = 1 << 20
_TASKS_PER_WORKER: Final = 4  # of a small source, so that the last tasks end at about the same time
_TASK_BLOCKS: Final = 8


@dataclass
class _Pending:
    """A group of blocks that is being encoded: the references of its results, and its blocks."""

    encoded: Any
    streams: Any
    blocks: list[RowBlock]


class RayEngine:
    """Tasks on a Ray cluster; see `Engine` for its methods."""

    def __init__(
        self,
        cluster: Cluster,
        expected_bytes: int | None,
        work: RowWork,
        split: Splits,
        options: ConvertOptions,
        staging: Staging,
    ) -> None:
        """Begin a conversion.

        `expected_bytes`: size of the source, if known. `staging`: staging of the data set, in a folder that
        all machines share, or in an object store.
        """
        self._cluster = cluster
        self._work = work
        self._split = split
        self._options = options
        self._staging = staging
        self._folder = staging.publication.make_shared()
        seed = options.seed if options.shuffle else None
        job = EncodeJob(work, seed, self._folder, RANK_BELOW + options.max_skipped)
        self._shared = cluster.share(job, self._folder)
        share = (expected_bytes or 0) // (_TASKS_PER_WORKER * cluster.num_workers)
        self._task_bytes = min(_TASK_BYTES, max(_MIN_TASK_BYTES, share))
        self._group: list[RowBlock] = []
        self._group_bytes = 0
        self._writing: list[Any] = []
        self._pending: deque[_Pending] = deque()
        self._runs: list[SortedRun] = []
        self._content = ContentDigest()
        self._digests: deque[tuple[int, Any]] = deque()
        self._stream_bytes: Counter[str] = Counter()

    def add(self, block: RowBlock) -> Iterator[WorkedRows]:
        """Add the next block, and yield the blocks that are due, in order."""
        self._group.append(block)
        self._group_bytes += block.num_bytes
        if self._group_bytes >= self._task_bytes or len(self._group) >= _TASK_BLOCKS:
            self._encode_group()
        return self._take(2 * self._cluster.max_running)

    def drain(self) -> Iterator[WorkedRows]:
        """Yield all blocks that are pending, in order."""
        self._encode_group()
        return self._take(0)

    def _encode_group(self) -> None:
        """Begin the task of the blocks that were added."""
        if not self._group:
            return
        packed = self._cluster.put([PackedBlock.of(block) for block in self._group])
        encoded, streams = self._cluster.submit(encode_blocks, self._shared, packed, num_returns=2)
        self._pending.append(_Pending(encoded, streams, self._group))
        self._group, self._group_bytes = [], 0

    def _take(self, most: int) -> Iterator[WorkedRows]:
        while self._pending and (
            len(self._pending) > most or self._cluster.is_done(self._pending[0].encoded)
        ):
            pending = self._pending.popleft()
            encoded: EncodedBlocks = self._cluster.get(pending.encoded)
            self._runs.append(encoded.run)
            self._digest(encoded, pending.streams)
            for worked, block in zip(encoded.worked, pending.blocks, strict=True):
                found = replace(worked, block=block)
                self._check_paths(found, encoded.host)
                yield found

    def _digest(self, encoded: EncodedBlocks, streams: Any) -> None:
        """Begin to hash the streams of a group, where they are, as the offsets of their bytes are known."""
        offsets = {name: self._stream_bytes[name] for name in encoded.stream_bytes}
        self._stream_bytes.update(encoded.stream_bytes)
        self._digests.append((encoded.run.num_rows, self._cluster.submit(digest_streams, streams, offsets)))
        self._take_digests(self._cluster.max_running)

    def _take_digests(self, most: int) -> None:
        while len(self._digests) > most:
            num_rows, reference = self._digests.popleft()
            self._content.add_spans(num_rows, self._cluster.get(reference))

    def _check_paths(self, worked: WorkedRows, host: str) -> None:
        """Refuse rows that were rejected only because another machine does not see their files."""
        if not worked.faults or host == socket.gethostname() or not isinstance(worked.block, RawRows):
            return
        paths = {each.column for each in worked.block.plan.columns if each.form == "path"}
        if not any(fault.column in paths for fault in worked.faults):
            return
        here = {(fault.row, fault.column) for fault in self._work(worked.block).faults}
        for fault in worked.faults:
            if fault.column in paths and (fault.row, fault.column) not in here:
                raise PathError(
                    f"files of column {show(fault.column)} cannot be read on the machine {host} of the "
                    "cluster",
                    path=worked.block.path,
                    field=fault.column,
                    expected=fault.expected,
                    got=fault.got,
                    advice="All machines must see the files of the source, under the same paths.",
                )

    def keep(self, worked: WorkedRows) -> None:
        """Do nothing: the rows are in their run file, and their digest is computed by a worker."""

    def digest(self, rejects: Rejects, source: Sequence[Mapping[str, Any]]) -> Content:
        """Return the content of all rows."""
        self._take_digests(0)
        return self._content.finish(rejects, source)

    def write(self, assignment: Assignment, tasks: Sequence[ShardTask]) -> Iterator[WrittenShard]:
        """Write the shards that the staging folder lacks, and yield all of them."""
        complete, missing = find_complete(tasks, self._staging.journal.shards, self._options.compression)
        yield from complete
        if not missing:
            return
        rows = join_runs(
            RunFiles(locate(self._folder)),
            self._runs,
            assignment.codes,
            count_splits(self._split),
            is_shuffled=self._options.shuffle,
        )
        deferred = list_deferred_fields(self._work)
        by_name = {task.file_name(self._options.compression): task for task in missing}
        delivery = self._staging.make_delivery(self._folder)
        job = WriteJob(rows, deferred, self._work.encoder.is_sequence, self._options.compression, delivery)
        shared = self._cluster.share(job, self._folder)
        groups = deque(group_shards(missing, self._cluster.num_workers))
        while groups or self._writing:
            while groups and len(self._writing) < self._cluster.max_running:
                self._writing.append(self._cluster.submit(write_shards, shared, groups.popleft()))
            done, self._writing = self._cluster.wait(self._writing)
            for reference in done:
                for entry in self._staging.adopt(self._folder, self._cluster.get(reference)):
                    yield WrittenShard(by_name[entry.name], entry, None)

    def close(self) -> None:
        """End the tasks, and remove the runs."""
        self._cluster.cancel(
            [
                *self._writing,
                *(each.encoded for each in self._pending),
                *(reference for _, reference in self._digests),
            ]
        )
        self._pending.clear()
        self._digests.clear()
        with contextlib.suppress(StoreError):  # the error that ended the conversion matters more
            locate(self._folder).remove_folder()
