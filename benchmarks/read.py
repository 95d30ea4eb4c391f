"""Measures how fast Penstock reads TFRecords, against its peers, in interleaved rounds.

In: data sets that TensorFlow wrote (made when missing). Out: tables, and every figure in results/read.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from datasets import HERE, STORE, DatasetSpec, ensure_written, list_datasets
from machine import describe_machine
from peers import find_missing, format_missing
from readers import BASELINE, ENTRIES, Entry
from rounds import Results, compare, find_rate, pick_turns, run_rounds
from tables import add_load_warning, count_cores, draw, format_ratio
from worker import Job

NOTES = """\
Ratios are records per second of Penstock over the row, round by round: median (lowest - highest).
MB/s counts TFRecord bytes, framing included, for Parquet too. Warm page cache, every batch consumed.
Penstock and tf.data verify both CRCs of every record; the tfrecord package and pyarrow verify nothing."""


def format_dataset(score: Results, spec: DatasetSpec, num_cores: int, entries: Sequence[Entry]) -> str:
    """Format the table of one data set; the row of a competitor that failed gives the reason."""
    bytes_per_record = spec.tfrecord_bytes / spec.num_records
    baseline = pick_turns(score, BASELINE, spec.name, num_cores)
    rows = []
    for entry in entries:
        key = (entry.name, spec.name, num_cores)
        if key in score.failures:
            rows.append([entry.title, "failed", "", score.failures[key].splitlines()[0][:60], ""])
            continue
        turns = pick_turns(score, *key)
        rate = find_rate(turns)
        if rate is None:
            continue
        ratio = None if entry.name.startswith(BASELINE) else compare(baseline, turns)
        rows.append(
            [
                _name_row(entry, spec),
                f"{rate:,.0f}",
                f"{rate * bytes_per_record / 1e6:,.0f}",
                format_ratio(ratio),
                f"{score.openings[key] * 1e3:,.0f} ms",
            ]
        )
    heading = (
        f"{spec.name}: {spec.title}; {spec.num_records:,} records of {bytes_per_record:,.0f} bytes, "
        f"batches of {spec.batch_size}, {count_cores(num_cores)}"
    )
    return f"{heading}\n\n{draw(['reader', 'records/s', 'MB/s', 'Penstock is', 'opening'], rows)}"


def format_derived(score: Results, datasets: Sequence[str], cores: Sequence[int]) -> str:
    """Format what Penstock's own rows say about each other."""
    pairs = [
        (f"4 of 40 fields over all, {count_cores(n)}", ("penstock-4-of-40", "T", n), (BASELINE, "T", n))
        for n in cores
    ]
    pairs += [
        (
            f"random key order over one order, {count_cores(n)}",
            ("penstock-shuffled", "T", n),
            (BASELINE, "T", n),
        )
        for n in cores
    ]
    pairs += [
        (f"{n} threads over one, {name}", (BASELINE, name, n), (BASELINE, name, 1))
        for name in datasets
        for n in cores
        if n > 1
    ]
    ratios = [(text, compare(pick_turns(score, *a), pick_turns(score, *b))) for text, a, b in pairs]
    rows = [[text, format_ratio(ratio)] for text, ratio in ratios if ratio]
    return draw(["Penstock against itself", "speed"], rows) if rows else ""


def format_notes(score: Results) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_load_warning(NOTES, score)


def list_entries(dataset: str, names: Sequence[str]) -> list[Entry]:
    """Return the competitors that read a data set, in the order of the table."""
    return [entry for entry in ENTRIES if dataset in entry.reads and entry.name in names]


def _name_row(entry: Entry, spec: DatasetSpec) -> str:
    most_records = entry.most_records.get(spec.name, spec.num_records)
    return entry.title + (f" (first {most_records:,})" if most_records < spec.num_records else "")


ENTRY_NAMES = [entry.name for entry in ENTRIES]
WORKER = HERE / "read_worker.py"
DATASET_NAMES = ["T", "S", "B"]


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="passes of each competitor (default 5, quick 1)")
    parser.add_argument("--datasets", default=",".join(DATASET_NAMES), help="default: %(default)s")
    parser.add_argument("--competitors", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--cores", help="default: 1,2; quick 2")
    parser.add_argument("--quick", action="store_true", help="small data: a smoke test, not a measurement")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 5)
    arguments.datasets = arguments.datasets.split(",")
    arguments.competitors = arguments.competitors.split(",")
    for name in arguments.datasets:
        if name not in DATASET_NAMES:
            parser.error(f"unknown data set {name!r}: expected some of {', '.join(DATASET_NAMES)}")
    for name in arguments.competitors:
        if name not in ENTRY_NAMES:
            parser.error(f"unknown competitor {name!r}: expected some of {', '.join(ENTRY_NAMES)}")
    available = len(os.sched_getaffinity(0))
    usual = {min(2, available)} if arguments.quick else {1, min(2, available)}
    choices = [str(num_cores) for num_cores in range(1, available + 1)]
    asked = arguments.cores.split(",") if arguments.cores else [str(num_cores) for num_cores in sorted(usual)]
    if not set(asked) <= set(choices):
        parser.error(f"expected numbers of cores from 1 to {available}, got {arguments.cores}")
    arguments.cores = [int(text) for text in asked]
    return arguments


def write_results(path: Path, score: Results, arguments: argparse.Namespace) -> None:
    """Keep every raw figure, so that another table can be made from it."""
    results = {
        "machine": describe_machine(),
        "arguments": vars(arguments),
        "openings": [[*key, seconds] for key, seconds in score.openings.items()],
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def main() -> int:
    """Run the benchmark; 1 if any competitor failed."""
    arguments = parse_arguments()
    total = Results()
    missing = find_missing(ENTRIES, arguments.competitors)
    arguments.competitors = [name for name in arguments.competitors if name not in missing]
    specs = list_datasets(arguments.quick)
    for name in arguments.datasets:
        entries = list_entries(name, arguments.competitors)
        ensure_written(sorted({name, *(entry.reads[name] for entry in entries)}), arguments.quick)
        jobs = [Job(entry.name, name, n, arguments.quick) for n in arguments.cores for entry in entries]
        score = run_rounds(jobs, arguments.rounds, len(jobs) if arguments.quick else 1, WORKER)
        for num_cores in arguments.cores:
            print(format_dataset(score, specs[name], num_cores, entries), end="\n\n", flush=True)
        total.turns += score.turns
        total.openings |= score.openings
        total.failures |= score.failures
    if arguments.quick:
        print("QUICK RUN on little data: a smoke test, not a measurement.", end="\n\n")
    derived = format_derived(total, arguments.datasets, arguments.cores)
    for text in (derived, format_missing(missing), format_notes(total)):
        if text:
            print(text, end="\n\n")
    for (entry, dataset, num_cores), reason in total.failures.items():
        print(f"FAILED {entry} on {dataset}, {num_cores} core(s): {reason}", file=sys.stderr)
    name = "read-quick.json" if arguments.quick else "read.json"
    write_results(STORE / "results" / name, total, arguments)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
