"""Measures how fast Penstock converts, against the loops it replaces and plain copies, in interleaved rounds.

In: columns in memory, CSV, Parquet, images (made when missing). Out: tables; all figures in results/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from conversion_memory import ensure_large, format_memory, measure_memory, write_short_rows
from datasets import HERE, STORE
from machine import describe_machine
from peers import find_missing, format_missing
from rounds import Results, Turn, compare, find_rate, pick_turns, run_rounds
from sources import RawSource, ensure_raw_sources, list_raw_sources, list_stage_sources
from tables import add_load_warning, count_cores, draw, format_ratio
from worker import Job
from write_stages import measure_stages
from write_worker import name_scratch
from writers import ALL, BASELINE, ENTRIES, Entry

NOTES = """\
Ratios are records per second of Penstock over those of the row, round by round: median (lowest - highest).
Penstock infers the schema, splits, shuffles, gathers statistics, hashes, indexes and waits for the disk; of
the others only write + fsync waits. "Synced" adds to every writer the time that `sync` takes after it.
MB/s counts all bytes in the folder that was written. Sources on the disk are in the page cache."""
Rate = Callable[[Turn], float]


def _plainly(turn: Turn) -> float:
    return turn.records_per_second


def _synced(turn: Turn) -> float:
    return turn.synced_per_second


def list_entries(raw: str, names: Sequence[str]) -> list[Entry]:
    """Return the writers that are given a raw, in the order of the table."""
    return [entry for entry in ENTRIES if raw in entry.writes and entry.name in names]


def format_raw_source(score: Results, raw: RawSource, num_cores: int, entries: Sequence[Entry]) -> str:
    """Format the table of one raw on so many cores; a writer that failed has its reason in its row."""
    baseline = pick_turns(score, BASELINE, raw.name, num_cores)
    rows = []
    for entry in entries:
        key = (entry.name, raw.name, num_cores)
        if key in score.failures:
            rows.append([entry.title, "failed", "", score.failures[key].splitlines()[0][:60], "", ""])
            continue
        turns = pick_turns(score, *key)
        rate, synced_rate = find_rate(turns), find_rate(turns, _synced)
        if rate is None or synced_rate is None:
            continue
        bytes_per_record = sum(turn.num_bytes for turn in turns.values()) / sum(
            turn.num_records for turn in turns.values()
        )
        is_baseline = entry.name == BASELINE
        rows.append(
            [
                _name_row(entry, raw),
                f"{rate:,.0f}",
                f"{rate * bytes_per_record / 1e6:,.0f}",
                "" if is_baseline else format_ratio(compare(baseline, turns)),
                f"{synced_rate:,.0f}",
                "" if is_baseline else format_ratio(compare(baseline, turns, _synced)),
            ]
        )
    heads = ["writer", "records/s", "MB/s", "Penstock is", "synced, records/s", "Penstock is"]
    heading = f"{raw.name}: {raw.title}; {raw.num_records:,} records, {count_cores(num_cores)}"
    return f"{heading}\n\n{draw(heads, rows)}"


def format_overview(score: Results, names: Sequence[str]) -> str:
    """Draw how many times as fast as each row Penstock is on one core, without and with `sync` after it."""
    tables = []
    for head, rate in (("Penstock on one core is", _plainly), ("the same, synced", _synced)):
        rows = []
        for entry in ENTRIES:
            cells = [_compare_row(score, entry, name, rate) for name in names]
            if entry.name != BASELINE and any(cells):
                rows.append([entry.title, *cells])
        if rows:
            tables.append(draw([head, *names], rows))
    return "\n\n".join(tables)


def _compare_row(score: Results, entry: Entry, raw: str, rate: Rate) -> str:
    ours, theirs = (pick_turns(score, name, raw, 1) for name in (BASELINE, entry.name))
    return format_ratio(compare(ours, theirs, rate))


def format_workers(score: Results, names: Sequence[str], cores: Sequence[int]) -> str:
    """Draw what more workers bring."""
    rows = []
    for name in names:
        for num_cores in cores:
            ours = pick_turns(score, BASELINE, name, num_cores)
            ratio = compare(ours, pick_turns(score, BASELINE, name, 1)) if num_cores > 1 else None
            if ratio:
                rows.append([f"{num_cores} workers over one, {name}", format_ratio(ratio)])
    return draw(["Penstock against itself", "speed"], rows) if rows else ""


def format_notes(score: Results) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_load_warning(NOTES, score)


def _name_row(entry: Entry, raw: RawSource) -> str:
    num_records = entry.limit(raw)
    return entry.title + (f" (first {num_records:,})" if num_records < raw.num_records else "")


ENTRY_NAMES = [entry.name for entry in ENTRIES]
STAGED = tuple(list_stage_sources(is_quick=False))
WORKER = HERE / "write_worker.py"


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="passes of each writer (default 5, stages 7, quick 1)")
    parser.add_argument("--sources", help=f"default: {','.join(ALL)}; of the stages: {','.join(STAGED)}")
    parser.add_argument("--competitors", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small data: a smoke test, not a measurement")
    parser.add_argument(
        "--memory", type=float, metavar="GIGABYTES", help="measure the memory that so much CSV takes instead"
    )
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="measure the memory that N rows of three short columns take instead",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="threads of a conversion whose memory or stages are measured"
    )
    parser.add_argument("--stages", action="store_true", help="measure the CPU seconds of each stage instead")
    parser.add_argument("--old", type=Path, metavar="TREE", help="another tree to compare the stages with")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 7 if arguments.stages else 5)
    known = STAGED if arguments.stages else ALL
    arguments.sources = arguments.sources.split(",") if arguments.sources else list(known)
    arguments.competitors = arguments.competitors.split(",")
    for name in arguments.sources:
        if name not in known:
            parser.error(f"unknown raw {name!r}: expected some of {', '.join(known)}")
    for name in arguments.competitors:
        if name not in ENTRY_NAMES:
            parser.error(f"unknown competitor {name!r}: expected some of {', '.join(ENTRY_NAMES)}")
    if arguments.memory is not None and arguments.memory <= 0:
        parser.error(f"expected gigabytes above 0, got {arguments.memory:g}")
    if arguments.rows is not None and arguments.rows < 1:
        parser.error(f"expected at least one row, got {arguments.rows}")
    if arguments.workers is not None and arguments.workers < 1:
        parser.error(f"expected at least one worker, got {arguments.workers}")
    arguments.cores = sorted({1, min(2, len(os.sched_getaffinity(0)))})
    return arguments


def list_orders(raw: str, arguments: argparse.Namespace) -> list[Job]:
    """Give every writer one core, and Penstock two as well where it is asked how it spreads."""
    return [
        Job(entry.name, raw, num_cores, arguments.quick)
        for num_cores in arguments.cores
        for entry in list_entries(raw, arguments.competitors)
        if num_cores == 1 or raw in entry.spreads
    ]


def measure(arguments: argparse.Namespace) -> Results:
    """Measure one raw after the other, and print its table when it is done."""
    total = Results()
    ensure_raw_sources(arguments.sources, arguments.quick)
    for name in arguments.sources:
        jobs = list_orders(name, arguments)
        score = run_rounds(jobs, arguments.rounds, len(jobs) if arguments.quick else 1, WORKER)
        raw = list_raw_sources(arguments.quick)[name]
        for num_cores in arguments.cores:
            there = {order.entry for order in jobs if order.num_cores == num_cores}
            entries = [entry for entry in list_entries(name, arguments.competitors) if entry.name in there]
            if entries:
                print(format_raw_source(score, raw, num_cores, entries), end="\n\n", flush=True)
        total.turns += score.turns
        total.openings |= score.openings
        total.failures |= score.failures
    return total


def report_memory(arguments: argparse.Namespace) -> None:
    """Convert a large CSV, by default with as many workers as there are cores, up to 2; keep what it took."""
    (STORE / "data").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=name_scratch(os.getpid()), dir=STORE / "data"))
    if arguments.rows is not None:
        source = folder / "short.csv"
        write_short_rows(source, arguments.rows)
    else:
        source = ensure_large(int(arguments.memory * 1e9))
    memory = measure_memory(source, folder / "out", arguments.workers or max(arguments.cores))
    print(format_memory(memory))
    write_results("write-memory.json", {"footprint": asdict(memory)})


def report_stages(arguments: argparse.Namespace) -> None:
    """Measure the stages of each source, by default with two threads; keep the figures."""
    figures = measure_stages(
        arguments.sources,
        arguments.rounds,
        arguments.workers or 2,
        is_quick=arguments.quick,
        old=None if arguments.old is None else arguments.old.resolve(),
    )
    write_results("write-stages.json", {"sources": figures})


def write_results(name: str, results: dict[str, object]) -> None:
    """Keep every raw figure, so that another table can be made from it."""
    path = STORE / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": describe_machine()} | results, indent=1) + "\n")


def report(score: Results, arguments: argparse.Namespace, missing: Mapping[str, str]) -> None:
    """Print what follows from all tables, and keep the figures."""
    if arguments.quick:
        print("QUICK RUN on little data: a smoke test, not a measurement.", end="\n\n")
    overview = format_overview(score, arguments.sources)
    workers = format_workers(score, arguments.sources, arguments.cores)
    for text in (overview, workers, format_missing(missing), format_notes(score)):
        if text:
            print(text, end="\n\n")
    for (entry, raw, num_cores), reason in score.failures.items():
        print(f"FAILED {entry} on {raw}, {num_cores} core(s): {reason}", file=sys.stderr)
    results = {
        "arguments": vars(arguments),
        "openings": [[*key, seconds] for key, seconds in score.openings.items()],
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    write_results("write-quick.json" if arguments.quick else "write.json", results)


def main() -> int:
    """Run the benchmark; 1 if any writer failed."""
    arguments = parse_arguments()
    # Ends by an exception, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if arguments.memory is not None or arguments.rows is not None:
            report_memory(arguments)
            return 0
        if arguments.stages:
            report_stages(arguments)
            return 0
        missing = find_missing(ENTRIES, arguments.competitors)
        arguments.competitors = [name for name in arguments.competitors if name not in missing]
        score = measure(arguments)
    finally:
        # A worker that was ended in the middle of a pass leaves its folder.
        for folder in (STORE / "data").glob(name_scratch(os.getpid()) + "*"):
            shutil.rmtree(folder, ignore_errors=True)
    report(score, arguments, missing)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
