"""The tasks of a conversion on Ray, as the workers run them.

In: blocks of rows, or shards to write. Out: encoded rows in a run file and their small parts for the driver;
digests; shards in a separate folder, which the driver moves to the data set, or in the object store. All
files are below one folder that all machines share. A task can be repeated: it writes files with new names, or
shards whose bytes are the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import BoundedSemaphore
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.distributed.ray_cluster import Shared
from penstock.encode.raw_rows import RawRows, RowBlock
from penstock.format.entry import ShardEntry
from penstock.format.manifest import ManifestCompression
from penstock.shards.content import HashedSpan
from penstock.shards.row_work import MeasurableRows, RowWork, Stream, WorkedRows
from penstock.shards.shard_work import ResidentValues, ShardTask, ShardWork
from penstock.shards.sort.sorted_runs import SortedRun, write_run
from penstock.shards.sort.spill import SpilledRows
from penstock.shards.staging.publication import Delivery, NewShards, ShardFolder
from penstock.source.block import Block, RawColumn
from penstock.storage.deferred import Deferred
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath, make_absolute

_NUM_THREADS = 2  # that compose frames ahead, or sync shards: their work is short or waits for the disk
Streams: TypeAlias = dict[str, "np.ndarray[Any, Any]"]


@dataclass(frozen=True)
class EncodeJob:
    """What all tasks of a conversion need to encode blocks; a worker process loads it once.

    Attributes:
        work: Encodes blocks.
        seed: Seed of the shuffle, or None.
        folder: Folder of the runs, on a disk or in an object store.
        held_below: Index of a row; for blocks that start before it, statistics may be computed again later.
    """

    work: RowWork
    seed: int | None
    folder: AnyPath
    held_below: int


@dataclass(frozen=True)
class EncodedBlocks:
    """The small parts of encoded blocks.

    Attributes:
        worked: Encoded blocks without their blocks, columns and streams.
        run: The run that has their columns.
        stream_bytes: Number of bytes of each stream of all blocks.
        host: Name of the machine that encoded them.
    """

    worked: list[WorkedRows]
    run: SortedRun
    stream_bytes: dict[str, int]
    host: str


def encode_blocks(shared: Shared, packed: Sequence[PackedBlock]) -> tuple[EncodedBlocks, Streams]:
    """Encode consecutive blocks and write their rows as one run."""
    job: EncodeJob = shared.load()
    worked = [job.work(each.unpack()) for each in packed]
    run = write_run(locate(job.folder), worked, job.work.deferred_names, job.seed)
    names = dict.fromkeys(name for each in worked for name in each.streams)
    streams = {name: _join([each.streams[name] for each in worked if name in each.streams]) for name in names}
    small = [_strip(each, keeps_columns=each.block.first_row < job.held_below) for each in worked]
    sizes = {name: stream.nbytes for name, stream in streams.items()}
    return EncodedBlocks(small, run, sizes, os.uname().nodename), streams


def _join(parts: Sequence[Stream]) -> np.ndarray[Any, Any]:
    arrays = [
        np.frombuffer(part, np.uint8)
        if isinstance(part, bytes)
        else np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        for part in parts
    ]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _strip(worked: WorkedRows, *, keeps_columns: bool) -> WorkedRows:
    """Remove what the driver has, or does not need."""
    measurable = worked.measurable
    if keeps_columns:
        columns = {name: _own_values(column) for name, column in measurable.columns.items()}
        measurable = replace(measurable, columns=columns)
    else:
        measurable = MeasurableRows({}, None, np.empty(0, np.uint64))
    return replace(
        worked,
        block=_Missing(worked.block.first_row, worked.block.num_rows),
        columns=[],
        resident={},
        streams={},
        measurable=measurable,
    )


def _own_values(column: Any) -> Any:
    """Return a column without views of memory, which cannot be pickled."""
    if not isinstance(column, Deferred) or column.values is None:
        return column
    pixels = None if column.widths is None or column.heights is None else (column.widths, column.heights)
    values: list[bytes | memoryview] = [bytes(value or b"") for value in column.values]
    return Deferred(column.sizes, column.hashes, column.digests, column.paths, values, pixels, column.present)


def digest_streams(
    streams: Mapping[str, NDArray[np.uint8]], offsets: Mapping[str, int]
) -> dict[str, HashedSpan]:
    """Hash the streams of blocks, whose offsets are known when all earlier blocks are encoded."""
    return {
        name: HashedSpan.of(stream.data.cast("B") if stream.size else memoryview(b""), offsets[name])
        for name, stream in streams.items()
    }


@dataclass(frozen=True)
class WriteJob:
    """What all tasks of a conversion need to write shards; a worker process loads it once.

    Attributes:
        rows: Rows of all splits.
        deferred_fields: Name and key of each deferred field.
        is_message: Whether a body is a complete message.
        compression: Compression of the shards.
        delivery: How the shards are added to the data set.
    """

    rows: SpilledRows
    deferred_fields: tuple[tuple[str, str], ...]
    is_message: bool
    compression: ManifestCompression
    delivery: Delivery


def write_shards(shared: Shared, tasks: Sequence[ShardTask]) -> NewShards:
    """Write shards to a new folder, or to the object store."""
    job: WriteJob = shared.load()
    return job.delivery.write(partial(_write, job, tasks))


def _write(job: WriteJob, tasks: Sequence[ShardTask], target: ShardFolder) -> list[ShardEntry]:
    """Write shards to a folder, and return their entries."""
    with (
        ThreadPoolExecutor(1) as hashers,
        ThreadPoolExecutor(_NUM_THREADS) as finishers,
        ThreadPoolExecutor(_NUM_THREADS) as helpers,
    ):
        work = ShardWork(
            job.rows,
            job.deferred_fields,
            ResidentValues(),
            job.is_message,
            target,
            job.compression,
            hashers,
            finishers,
            BoundedSemaphore(2 * _NUM_THREADS),
            helpers,
        )
        written = work(tasks)
        for each in written:
            if each.finishing is not None:
                each.finishing.result()
    return [each.entry for each in written]


@dataclass(frozen=True)
class PackedBlock:
    """A block of rows in a form that is sent to other processes.

    Attributes:
        block: The block; a block of raw rows is without its Arrow columns.
        names: Names of all columns of raw rows, in their order.
        tables: Arrow columns of raw rows, by name, each as an IPC stream: an array that is a slice would be
            sent with the whole memory that it is a slice of.
    """

    block: RowBlock
    names: tuple[str, ...] = ()
    tables: Mapping[str, pa.Buffer] | None = None

    @classmethod
    def of(cls, block: RowBlock) -> PackedBlock:
        """Pack a block."""
        if not isinstance(block, RawRows):
            return cls(block)
        columns: dict[str, RawColumn] = {}
        tables: dict[str, pa.Buffer] = {}
        for name, column in block.block.columns.items():
            if isinstance(column, pa.Array):
                tables[name] = _pack(column)
            else:
                columns[name] = _own_objects(column)
        raw = block.block
        files_from = tuple(map(make_absolute, raw.files_from))
        bare = replace(raw, columns=columns, folder=make_absolute(raw.folder or ""), files_from=files_from)
        return cls(replace(block, block=bare), tuple(block.block.columns), tables)

    def unpack(self) -> RowBlock:
        """Return the block."""
        if self.tables is None or not isinstance(self.block, RawRows):
            return self.block
        bare: Block = self.block.block
        columns: dict[str, RawColumn] = {
            name: _unpack(self.tables[name]) if name in self.tables else bare.columns[name]
            for name in self.names
        }
        return replace(self.block, block=replace(bare, columns=columns))


def _pack(column: pa.Array[Any]) -> pa.Buffer:
    batch = pa.RecordBatch.from_arrays([column], names=["0"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _unpack(table: pa.Buffer) -> pa.Array[Any]:
    with pa.ipc.open_stream(table) as reader:
        return reader.read_next_batch().column(0)


def _own_objects(column: Any) -> Any:
    """Return a column without views of memory, which cannot be pickled."""
    if column.dtype != object or not any(isinstance(value, memoryview) for value in column.flat):
        return column
    owned = np.empty(column.shape, object)
    owned[:] = [bytes(value) if isinstance(value, memoryview) else value for value in column]
    return owned


@dataclass(frozen=True)
class _Missing:
    """Stands for the block of encoded rows until the driver puts its own block there."""

    first_row: int
    num_rows: int
    num_bytes: int = 0
    path: str | None = None

    def encode(self, threads: Any = None) -> Any:
        """Raise an error."""
        raise NotImplementedError

    def refuse(self, fault: Any) -> Any:
        """Raise an error."""
        raise NotImplementedError

    def show(self, row: int) -> Any:
        """Raise an error."""
        raise NotImplementedError
