"""A data set of many shards: the size of its manifest, opening it, reading it, and requests of a shuffle.

The shards have few and equal records, so that 100,000 of them are made in seconds: what is measured depends
on the number of shards. `--requests` counts the ranges that ranks read of a data set of a billion records, by
its order alone: nothing is read.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import penstock as ps
from penstock import _native
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_scattered
from penstock.format.entry import ShardEntry, SplitEntry
from penstock.format.index import encode_index, index_name
from penstock.format.manifest import MANIFEST_NAME, dump, load_manifest
from penstock.read import dataset_files
from penstock.read.opened_files import open_files
from penstock.read.order import SplitOrder, shard_slice
from penstock.read.range_buffers import GAP_BYTES
from penstock.read.scatter import Scatter
from penstock.settings.groups import ReadOptions

BATCH_SIZE = 256
NUM_BATCHES = 40
NUM_STEPS = 8  # batches that are read ahead together, of `--requests`
LARGEST_GAP = GAP_BYTES  # ranges that are closer are read in one request


def write_dataset(folder: Path, num_shards: int, num_records: int) -> None:
    """Write a data set whose shards have the same records."""
    with tempfile.TemporaryDirectory() as scratch:
        columns = {"x": np.arange(num_records, dtype=np.int64), "y": np.arange(num_records) % 2}
        small = ps.convert(columns, Path(scratch) / "small", target="y", split="train=1.0")
        shard = b"".join(_frame(payload) for payload in small["train"].records())
        sizes = [len(_frame(payload)) for payload in small["train"].records()]
        manifest = small.manifest
    if manifest is None:
        raise RuntimeError("the data set has no manifest")
    digest = hashlib.sha256(shard).hexdigest()
    index = encode_index(np.array(sizes), "none", (len(shard), digest))
    entries = [
        ShardEntry(f"train-{i:05}-of-{num_shards:05}.tfrecord", num_records, len(shard), digest)
        for i in range(num_shards)
    ]
    (folder / "index").mkdir(parents=True)
    for entry in entries:
        (folder / entry.name).write_bytes(shard)
        (folder / index_name(entry.name)).write_bytes(index)
    (folder / MANIFEST_NAME).write_bytes(
        dump(replace(manifest, splits={"train": SplitEntry(tuple(entries))}))
    )


def _frame(payload: bytes) -> bytes:
    length = len(payload).to_bytes(8, "little")
    parts = (length, payload)
    return b"".join(part + _native.masked_crc32c(part).to_bytes(4, "little") for part in parts)


class Watch:
    """Time and memory since this object was made."""

    def __init__(self) -> None:
        self._wall, self._cpu, self._memory = time.perf_counter(), time.process_time(), _resident_bytes()

    def show(self, what: str, count: int = 1, unit: str = "s") -> None:
        """Print the time, divided by `count`, and the memory that was added."""
        factor = {"s": 1.0, "µs": 1e6}[unit] / count
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        added = (_resident_bytes() - self._memory) / 2**20
        print(f"{what:44} {wall * factor:8.2f} {unit} wall {cpu * factor:8.2f} {unit} CPU {added:+8.0f} MiB")


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(folder: Path) -> None:
    """Open the data set, and read batches of records from all over it."""
    print(f"open files: at most {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}")
    print(f"manifest: {(folder / MANIFEST_NAME).stat().st_size:,} bytes")
    watch = Watch()
    load_manifest(folder)
    watch.show("load the manifest")
    open_dataset = ps.open  # loads the modules, which is not measured
    watch = Watch()
    split = open_dataset(folder)["train"]
    watch.show("ps.open, with a status of every shard")
    measure_store(folder)
    watch = Watch()
    split.loader(batch_size=BATCH_SIZE, shuffle=True)
    watch.show("make a loader")
    scatter, plan = Scatter(split._rows, num_threads=2), DecodePlan(split.schema)
    watch = Watch()
    scatter.check(is_strict=True)
    watch.show("check all shards, as each epoch does")
    rows = _native.permute(1, 0, 1, len(split), np.arange(min(len(split), BATCH_SIZE * NUM_BATCHES)))
    watch = Watch()
    for start in range(0, len(rows), BATCH_SIZE):
        scatter.learn(rows[start : start + BATCH_SIZE])
    watch.show("load the indexes of random rows, per row", len(rows), "µs")
    for turn in ("first", "second"):
        watch = Watch()
        for start in range(0, len(rows), BATCH_SIZE):
            read_scattered(scatter, plan, Losses("raise", 0), rows[start : start + BATCH_SIZE])
        watch.show(f"read random rows, {turn} time, per row", len(rows), "µs")


def measure_store(folder: Path) -> None:
    """Open the data set as if it were in an object store: its manifest is read from the disk."""
    manifest = load_manifest(folder)
    with patch.object(dataset_files, "load_manifest", lambda _: manifest):
        open_files("s3://none/warm-up", ReadOptions())  # loads the modules, which is not measured
        watch = Watch()
        rows = open_files("s3://none/data", ReadOptions()).splits["train"]
        watch.show("open in a store, without the manifest")
    watch = Watch()
    Scatter(rows).check(is_strict=True)
    watch.show("make a reader of it, and check all shards")


def count_ranges(
    order: SplitOrder, record_bytes: int, world: int, batch_size: int, num_steps: int
) -> tuple[int, int]:
    """Return how many rows rank 0 reads in the first steps, and in how many ranges."""
    parts: list[NDArray[np.int64]] = []
    for step in range(num_steps):
        mine = shard_slice(range(step * batch_size, (step + 1) * batch_size), 0, world)
        parts.append(order.pick(0, mine.start, mine.stop).rows)
    rows = np.sort(np.concatenate(parts))
    gaps = (np.diff(rows) - 1) * record_bytes
    return len(rows), 1 + int(np.count_nonzero(gaps > LARGEST_GAP))


def print_requests(num_records: int, record_bytes: int, batch_size: int) -> None:
    """Print in how many ranges ranks read their rows of eight batches, for several shuffles."""
    print(f"{num_records:,} records of {record_bytes:,} bytes, {NUM_STEPS} global batches of {batch_size:,}")
    print(f"{'shuffle':24} {'ranks':>6} {'rows of rank 0':>16} {'ranges':>8}")
    orders = {
        "none": SplitOrder(num_records),
        "global": SplitOrder(num_records, shuffle="global", seed=1),
        **{
            f"block of {size >> 20} MiB": SplitOrder(
                num_records, shuffle="block", seed=1, block_records=size // record_bytes
            )
            for size in (1 << 20, 16 << 20)
        },
    }
    for name, order in orders.items():
        for world in (1, 8, 64, 256):
            num_rows, num_ranges = count_ranges(order, record_bytes, world, batch_size, NUM_STEPS)
            print(f"{name:24} {world:6} {num_rows:16,} {num_ranges:8,}")


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=10, help="number of records per shard")
    parser.add_argument("--open-files", type=int, nargs="*", default=[1024], help="limits of open files")
    parser.add_argument("--data", type=Path, help="folder of the data set; made if it does not exist")
    parser.add_argument("--requests", action="store_true", help="count requests instead")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.requests:
        print_requests(10**9, 10_000, 8192)
        return 0
    if arguments.measure is not None:
        measure(arguments.measure)
        return 0
    scratch = None if arguments.data else Path(tempfile.mkdtemp())
    folder = arguments.data or scratch / "data"
    try:
        if not folder.exists():
            write_dataset(folder, arguments.shards, arguments.records)
        for limit in arguments.open_files:  # each in a new process, which has opened nothing before
            command = f'ulimit -n {limit} && exec "$@"'
            program = [sys.executable, __file__, "--measure", str(folder)]
            subprocess.run(["bash", "-c", command, "bash", *program], check=True)
    finally:
        if scratch is not None:
            shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
