"""Measures work beyond one process: conversion on Ray, reading from an object store, loaders of ranks.

In: data that is made when it is missing. Out: one table per part as soon as it is measured, and every figure
in results/distributed.json. The object store is a server on loopback, without and with a latency.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from distributed_worker import RAY_VARIABLE, SCRATCH_PREFIX, SERVER_VARIABLE, SHUFFLES
from machine import describe_machine
from range_server import make_environment, running
from rounds import Results, Turn, compare, find_rate, pick_turns, run_rounds
from tables import add_load_warning, draw, format_ratio
from worker import Job

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "distributed_worker.py"
PARTS = ("conversion", "reading", "ranks")
ENGINES = ("local", "ray")
READERS = ("raw", *SHUFFLES)
NEEDS = {"ray": "ray", "raw": "obstore"}
NOTES = {
    "conversion": """\
Conversion: rows per second of a CSV, from the call of `convert` to the complete data set. Ray was started,
and its workers had converted the file once, before the clock started. Ray is compared with the local engine
with the same number of workers, round by round: median (lowest - highest). The process that calls `convert`
is not counted as a worker.""",
    "reading": """\
Reading: bytes of the shards per second. `raw obstore` requests ranges of all shards in parallel, with the
size and the number of threads that were fastest of those that it tried before, and does nothing with the
bytes: its rate is also the highest that the server reached. Loaders verify the CRC of every record and make
batches. Opening is not on the clock; the table has its requests, before the first range of a shard.""",
    "ranks": """\
Ranks: an epoch of each rank, one after the other, as if each had its own machine. Records, bytes and
requests are the largest of all ranks; bytes are also given relative to an equal share. Local shards
are mapped into memory: their bytes are the bytes of the rank's records. Time is the time of the slowest rank,
relative to the time of a single one: at best 1 / ranks.""",
}


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, help="turns of each contestant (default 5, quick 1)")
    parser.add_argument("--workers", default="1,2", help="of conversions (default: %(default)s)")
    parser.add_argument("--ranks", default="1,2,4,8", help="default: %(default)s")
    parser.add_argument("--latency", default="0,20", help="milliseconds (default: %(default)s)")
    parser.add_argument("--link", type=int, default=0, help="Mbit per second (default: no limit)")
    parser.add_argument("--rows", type=int, help="of the CSV (default 1,000,000, quick 20,000)")
    parser.add_argument("--megabytes", type=int, help="of the shards (default 512, quick 16)")
    parser.add_argument("--record-bytes", type=int, default=40_000, help="default: %(default)s")
    parser.add_argument(
        "--data", type=Path, default=HERE / "data" / "distributed", help="default: %(default)s"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="little data: a smoke test, not a measurement")
    given = parser.parse_args()
    given.parts = given.parts.split(",")
    for name in given.parts:
        if name not in PARTS:
            parser.error(f"unknown part {name!r}: expected some of {', '.join(PARTS)}")
    for name in ("workers", "ranks", "latency"):
        values = getattr(given, name).split(",")
        if not all(text.isdecimal() and (int(text) or name == "latency") for text in values):
            parser.error(f"--{name}: expected positive numbers with commas, got {getattr(given, name)}")
        setattr(given, name, [int(text) for text in values])
    given.rounds = given.rounds or (1 if given.quick else 5)
    given.rows = given.rows or (20_000 if given.quick else 1_000_000)
    given.megabytes = given.megabytes or (16 if given.quick else 512)
    if given.quick:
        given.data /= "quick"
    return given


def ensure_data(given: argparse.Namespace) -> None:
    """Make the data, unless it was made from the same parameters."""
    wanted = {"num_rows": given.rows, "megabytes": given.megabytes, "record_bytes": given.record_bytes}
    try:
        found = json.loads((given.data / "parameters.json").read_text())
    except (OSError, ValueError):
        found = {}
    if wanted.items() <= found.items():
        return
    print(f"making data at {given.data}", flush=True)
    command = [sys.executable, str(HERE / "distributed_data.py"), str(given.data), *map(str, wanted.values())]
    subprocess.run(command, check=True)


@contextmanager
def store(given: argparse.Namespace, milliseconds: int) -> Iterator[None]:
    """Serve the data with a latency; the processes that are started meanwhile find the server."""
    with running(given.data, milliseconds / 1000, given.link * 1e6 / 8) as (port, process):
        changed = {**make_environment(port), SERVER_VARIABLE: str(process)}
        before = {name: os.environ.get(name) for name in changed}
        os.environ |= changed
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def measure(given: argparse.Namespace, jobs: Sequence[Job]) -> Results:
    """Run the contestants that can take part; what they leave behind is removed."""
    jobs = [job for job in jobs if find_spec(NEEDS.get(job.entry, "json")) is not None]
    # Short, because sockets are in it; and not Ray's own, where other drivers look for a cluster.
    with tempfile.TemporaryDirectory(prefix="b", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ[RAY_VARIABLE] = folder
        try:
            return run_rounds(jobs, given.rounds, 1, SCRIPT)
        finally:
            for scratch in given.data.glob(f"{SCRATCH_PREFIX}*"):
                shutil.rmtree(scratch, ignore_errors=True)


def make_jobs(
    given: argparse.Namespace, dataset: str, entries: Sequence[str], numbers: Sequence[int], seconds: float
) -> list[Job]:
    """Return one job per number and contestant."""
    length = 0.0 if given.quick else seconds
    return [
        Job(entry, dataset, number, given.quick, str(given.data), length)
        for number in numbers
        for entry in entries
    ]


def measure_conversion(given: argparse.Namespace) -> Results:
    """Convert the table with both engines."""
    score = measure(given, make_jobs(given, "conversion", ENGINES, given.workers, 0.0))
    rows = []
    for number in given.workers:
        local = pick_turns(score, "local", "conversion", number)
        for engine in ENGINES:
            turns = pick_turns(score, engine, "conversion", number)
            rate, cpu = find_rate(turns), find_rate(turns, lambda turn: turn.timed_cpu_seconds)
            if rate is None or cpu is None:
                continue
            ratio = None if engine == "local" else compare(turns, local)
            start = score.openings[engine, "conversion", number]
            speed = [f"{rate:,.0f}", f"{rate / number:,.0f}", f"{cpu:.1f} s"]
            rows.append([engine, str(number), *speed, format_ratio(ratio), f"{start:.1f} s"])
    megabytes = (given.data / "rows.csv").stat().st_size / 1e6
    heads = ["engine", "workers", "rows/s", "per worker", "CPU time", "over local", "start, first conversion"]
    _show(f"conversion: CSV of {given.rows:,} rows, {megabytes:,.0f} MB", heads, rows)
    return score


def measure_reading(given: argparse.Namespace) -> Results:
    """Read the data set from the server, with each latency."""
    total = Results()
    rows = []
    for latency in given.latency:
        dataset = f"reading {latency} ms"
        with store(given, latency):
            score = measure(given, make_jobs(given, dataset, READERS, [1], 1.5))
        raw = pick_turns(score, "raw", dataset, 1)
        for reader in READERS:
            turns = pick_turns(score, reader, dataset, 1)
            rate = find_rate(turns, _byte_rate)
            if rate is None:
                continue
            ratio = None if reader == "raw" else compare(turns, raw, _byte_rate)
            cpu = median(turn.timed_cpu_seconds / turn.num_bytes for turn in turns.values()) * 2**30
            speed = [f"{rate / 2**20:,.0f}", f"{cpu:.2f} s", format_ratio(ratio)]
            opening = score.descriptions[reader, dataset, 1].get("opening_requests", "")
            rows.append([_name_reader(score, reader, dataset), f"{latency} ms", *speed, str(opening)])
        _add(total, score)
    heads = ["reader", "latency", "MiB/s", "CPU per GiB", "over raw", "requests to open"]
    title = f"reading: {given.megabytes:,} MB in records of {given.record_bytes:,} bytes"
    if given.link:
        title += f", over a link of {given.link:,} Mbit/s"
    _show(title, heads, rows)
    return total


def _byte_rate(turn: Turn) -> float:
    return turn.num_bytes / turn.seconds


def _name_reader(score: Results, reader: str, dataset: str) -> str:
    if reader != "raw":
        return f"Penstock, {reader}" + ("" if reader == "in order" else " shuffle")
    found = score.descriptions[reader, dataset, 1]
    return f"raw obstore, {found['range_bytes'] >> 20} MiB, {found['num_threads']} threads"


def measure_ranks(given: argparse.Namespace) -> Results:
    """Read the shares of ranks, of the local data set and from the server with the highest latency."""
    total = Results()
    rows = []
    latency = max(given.latency)
    for where in ("local", f"store, {latency} ms"):
        if where != "local" and find_spec("obstore") is None:
            continue
        dataset = f"{where.split(',')[0]} ranks"
        with store(given, latency):
            score = measure(given, make_jobs(given, dataset, list(SHUFFLES), given.ranks, 0.0))
        for shuffle in SHUFFLES:
            single = pick_turns(score, shuffle, dataset, 1)
            for number in given.ranks:
                turns = pick_turns(score, shuffle, dataset, number)
                if turns:
                    rows.append([where, shuffle, str(number), *_format_ranks(turns, single)])
        _add(total, score)
    heads = ["data set", "order", "ranks", "records", "MB", "of equal share", "requests", "time of a rank"]
    _show(f"ranks: {given.megabytes:,} MB in records of {given.record_bytes:,} bytes", heads, rows)
    return total


def _format_ranks(turns: Mapping[int, Turn], single: Mapping[int, Turn]) -> list[str]:
    last = turns[max(turns)]
    records, num_bytes, requests = (max(rank[i] for rank in last.steps) for i in range(3))
    shown = [f"{records:,}", f"{num_bytes / 1e6:,.1f}", "", f"{requests:,}" if requests else "", ""]
    if single:
        whole = sum(rank[1] for rank in single[max(single)].steps)
        shown[2] = f"{num_bytes * len(last.steps) / whole:.2f}×"
        shown[4] = format_ratio(compare(dict(turns), dict(single), _slowest_rank))
    return shown


def _slowest_rank(turn: Turn) -> float:
    return float(max(rank[3] for rank in turn.steps))


def _add(total: Results, score: Results) -> None:
    total.turns += score.turns
    total.openings |= score.openings
    total.failures |= score.failures
    total.descriptions |= score.descriptions


def _show(title: str, heads: list[str], rows: list[list[str]]) -> None:
    print(f"{title}\n\n{draw(heads, rows)}", end="\n\n", flush=True)


def write_results(path: Path, total: Results, given: argparse.Namespace, load: Sequence[float]) -> None:
    """Keep every figure, and what it depends on."""
    results: dict[str, Any] = {
        "machine": describe_machine(),
        "load_average": [load[0], os.getloadavg()[0]],  # before and after
        "arguments": {
            name: str(each) if isinstance(each, Path) else each for name, each in vars(given).items()
        },
        "openings": [[*key, seconds] for key, seconds in total.openings.items()],
        "descriptions": [[*key, each] for key, each in total.descriptions.items() if each],
        "failures": [[*key, reason] for key, reason in total.failures.items()],
        "turns": [asdict(turn) for turn in total.turns],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def main() -> int:
    """Run the benchmark; 1 if any contestant failed."""
    given = parse_arguments()
    load = os.getloadavg()
    ensure_data(given)
    for entry, package in NEEDS.items():
        if find_spec(package) is None:
            print(f"left out: {entry}, because {package} is not installed", end="\n\n")
    measures = {"conversion": measure_conversion, "reading": measure_reading, "ranks": measure_ranks}
    total = Results()
    for part in given.parts:
        if part == "reading" and find_spec("obstore") is None:
            continue
        _add(total, measures[part](given))
    if given.quick:
        print("QUICK RUN on little data: a smoke test, not a measurement.", end="\n\n")
    print(add_load_warning("\n\n".join(NOTES[part] for part in given.parts), total))
    for (entry, dataset, number), reason in total.failures.items():
        print(f"FAILED {entry}, {dataset}, {number}: {reason}", file=sys.stderr)
    name = "distributed-quick.json" if given.quick else "distributed.json"
    write_results(given.out / name, total, given, load)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
