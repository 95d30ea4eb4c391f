"""The process of one contestant of `distributed.py`: makes itself ready, then times passes on request.

In: the contestant, the part and a number of workers or ranks as JSON on the command line, then one line on
standard input for each turn. Out: one line of JSON for each. Nothing is pinned: readers start threads,
and Ray starts other processes.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TextIO

from machine import read_tree_seconds
from range_server import Counts, read_counts
from worker import Job, run_worker

BUCKET = "benchmark"
DATASET = "blobs"
CSV_NAME = "rows.csv"
BATCH_SIZE = 64
# What the raw contestant tries before it is measured; it keeps the fastest.
RANGE_BYTES = tuple(size << 20 for size in (1, 2, 4, 8, 16))
NUM_THREADS = (4, 8, 16, 32)
SCRATCH_PREFIX = "scratch-"
RAY_VARIABLE = "PENSTOCK_BENCHMARK_RAY"
SERVER_VARIABLE = "PENSTOCK_BENCHMARK_SERVER"


class Contestant(Protocol):
    """One side of a comparison: `run` is a timed pass, and returns the number of records and more figures."""

    def run(self) -> dict[str, Any]: ...

    def describe(self) -> dict[str, Any]: ...


class Conversion:
    """Converts the table, in this process or on a separate Ray cluster, which is started before."""

    def __init__(self, job: Job) -> None:
        import penstock as ps  # noqa: PLC0415

        self._convert = ps.convert
        self._source = Path(job.folder) / CSV_NAME
        self._scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=job.folder))
        self._options = {"num_threads": job.num_cores, "engine": job.entry, "target": "kind"}
        if job.entry == "ray":
            start_ray(job.num_cores)
        self.run()

    def run(self) -> dict[str, Any]:
        out = self._scratch / "out"
        dataset = self._convert(self._source, out, **self._options)
        num_records = sum(len(dataset[name]) for name in dataset)
        num_bytes = sum(path.stat().st_size for path in out.glob("*.tfrecord"))
        shutil.rmtree(out)
        return {"num_records": num_records, "num_bytes": num_bytes}

    def describe(self) -> dict[str, Any]:
        return {}


def start_ray(num_workers: int) -> None:
    """Start a cluster on this machine, which ends with this process; the main process removes its files."""
    os.environ |= {
        "RAY_TMPDIR": tempfile.mkdtemp(dir=os.environ[RAY_VARIABLE]),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Workers have the priority that the threads of the local engine have.
        "RAY_worker_niceness": "0",
        # A busy machine starts them slowly.
        "RAY_raylet_start_wait_time_s": "300",
        "RAY_gcs_server_request_timeout_seconds": "300",
    }
    os.environ.pop("RAY_ADDRESS", None)
    import ray  # noqa: PLC0415

    ray.init(
        address="local",
        num_cpus=num_workers,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=512 << 20,
    )


class RawReader:
    """Reads all shards with parallel ranges of `obstore`, and does nothing with the bytes."""

    def __init__(self, job: Job) -> None:
        from obstore.store import S3Store  # noqa: PLC0415

        self._store = S3Store(BUCKET)
        shards = sorted((Path(job.folder) / BUCKET / DATASET).glob("*.tfrecord"))
        self._sizes = {f"{DATASET}/{shard.name}": shard.stat().st_size for shard in shards}
        self._num_records = _count_records(job)
        self._range_bytes, self._num_threads = RANGE_BYTES[-1], NUM_THREADS[-1]
        self._rates: dict[tuple[int, int], float] = {}
        self.run()
        for choice in [(size, threads) for size in RANGE_BYTES for threads in NUM_THREADS]:
            self._range_bytes, self._num_threads = choice
            start = time.perf_counter()
            self.run()
            self._rates[choice] = sum(self._sizes.values()) / (time.perf_counter() - start)
        self._range_bytes, self._num_threads = max(self._rates, key=self._rates.__getitem__)

    def run(self) -> dict[str, Any]:
        import obstore  # noqa: PLC0415

        step = self._range_bytes
        ranges = [
            (path, start, min(start + step, size))
            for path, size in self._sizes.items()
            for start in range(0, size, step)
        ]
        with ThreadPoolExecutor(self._num_threads) as pool:
            lengths = pool.map(
                lambda each: len(obstore.get_range(self._store, each[0], start=each[1], end=each[2])), ranges
            )
            return {"num_records": self._num_records, "num_bytes": sum(lengths)}

    def describe(self) -> dict[str, Any]:
        return {
            "range_bytes": self._range_bytes,
            "num_threads": self._num_threads,
            "tried": [[*choice, rate] for choice, rate in self._rates.items()],
        }


class LoaderReader:
    """Reads all batches of a loader from the store, in stored order or with a block shuffle."""

    def __init__(self, job: Job) -> None:
        import penstock as ps  # noqa: PLC0415

        before = _read_server_counts()
        split = ps.open(f"s3://{BUCKET}/{DATASET}")["train"]
        self._loader = split.loader(batch_size=BATCH_SIZE, shuffle=SHUFFLES[job.entry], seed=1)
        self._num_bytes = _count_bytes(job)
        self.run()
        # The manifest and the index: all other requests are ranges of shards.
        self._opening = _read_server_counts() - before

    def run(self) -> dict[str, Any]:
        return {"num_records": _consume(self._loader), "num_bytes": self._num_bytes}

    def describe(self) -> dict[str, Any]:
        return {"opening_requests": self._opening.other_requests}


SHUFFLES = {"in order": False, "block": "block"}


class Ranks:
    """Reads the share of each rank, one rank after the other, each with a separate loader."""

    def __init__(self, job: Job) -> None:
        import penstock as ps  # noqa: PLC0415

        self._is_local = job.dataset.startswith("local")
        path = str(Path(job.folder) / BUCKET / DATASET) if self._is_local else f"s3://{BUCKET}/{DATASET}"
        self._loaders = [
            ps.open(path)["train"].loader(
                batch_size=BATCH_SIZE, shuffle=SHUFFLES[job.entry], seed=1, shard=(rank, job.num_cores)
            )
            for rank in range(job.num_cores)
        ]
        # All records have the same size.
        self._frame_bytes = _count_bytes(job) // _count_records(job)
        self.run()

    def run(self) -> dict[str, Any]:
        ranks = []
        for loader in self._loaders:
            before = None if self._is_local else _read_server_counts()
            start = time.perf_counter_ns()
            num_records = _consume(loader)
            nanoseconds = time.perf_counter_ns() - start
            if before is None:  # local shards are mapped: a rank touches the pages of its records
                num_bytes, num_requests = num_records * self._frame_bytes, 0
            else:
                counts = _read_server_counts() - before
                num_bytes, num_requests = counts.shard_bytes, counts.shard_requests
            ranks.append([num_records, num_bytes, num_requests, nanoseconds])
        return {
            "num_records": sum(rank[0] for rank in ranks),
            "num_bytes": sum(rank[1] for rank in ranks),
            "steps": ranks,
        }

    def describe(self) -> dict[str, Any]:
        return {}


def _consume(loader: Any) -> int:
    """Take all batches of an epoch; return the number of records."""
    num_records = 0
    for inputs, _ in loader:
        num_records += len(inputs["blob"])
    return num_records


def _read_server_counts() -> Counts:
    return read_counts(int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2]))


def _read_description(job: Job) -> dict[str, int]:
    description: dict[str, int] = json.loads((Path(job.folder) / "parameters.json").read_text())
    return description


def _count_records(job: Job) -> int:
    return _read_description(job)["num_records"]


def _count_bytes(job: Job) -> int:
    folder = Path(job.folder) / BUCKET / DATASET
    return sum(shard.stat().st_size for shard in folder.glob("*.tfrecord"))


def find_contestant(job: Job) -> Callable[[Job], Contestant]:
    """Return the class of a contestant by its part, the first word of the data set."""
    match job.dataset.split()[0], job.entry:
        case "conversion", _:
            return Conversion
        case "reading", "raw":
            return RawReader
        case "reading", _:
            return LoaderReader
        case _:
            return Ranks


def time_turn(contestant: Contestant, seconds: float) -> dict[str, Any]:
    """Time passes until they fill a turn; the figures of ranks describe the last pass."""
    total: dict[str, Any] = {"num_records": 0, "num_bytes": 0, "seconds": 0.0}
    steps: list[list[int]] = []
    mine, all_before = os.getpid(), _read_all_seconds()
    before = read_tree_seconds(mine)
    while not total["num_records"] or total["seconds"] < seconds:
        start = time.perf_counter()
        figures = contestant.run()
        total["seconds"] += time.perf_counter() - start
        total["num_records"] += figures["num_records"]
        total["num_bytes"] += figures["num_bytes"]
        steps = figures.get("steps", [])
    return total | {
        "steps": steps,
        "timed_cpu_seconds": read_tree_seconds(mine) - before,
        "cpu_seconds": _read_all_seconds() - all_before,
    }


def _read_all_seconds() -> float:
    """Return the CPU time of this process, of those that it started, and of the server."""
    server = os.environ.get(SERVER_VARIABLE)
    return read_tree_seconds(os.getpid()) + (read_tree_seconds(int(server)) if server else 0.0)


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Make the contestant ready, which includes an untimed pass, then answer each line with a turn."""
    start = time.perf_counter()
    contestant = find_contestant(job)(job)
    opened = {"open_seconds": time.perf_counter() - start, "description": contestant.describe()}
    answers.write(json.dumps(opened) + "\n")
    for _ in commands:
        answers.write(json.dumps(time_turn(contestant, job.seconds)) + "\n")


if __name__ == "__main__":
    run_worker(serve, is_pinned=False)
