"""Measures how fast `penstock.train` trains, against the same model under plain `fit`, in interleaved rounds.

In: the table of the load benchmark (made when missing). Out: a table for each batch size, and every figure in
results/train.json. Plain `fit` has its arrays in memory, as `penstock.train` has not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from datasets import HERE, STORE, ensure_written, list_datasets
from fitted import ensure_fitted
from machine import describe_machine
from rounds import Results, compare, find_rate, pick_turns, run_rounds
from tables import add_load_warning, count_cores, draw, format_ratio
from worker import Job

WORKER = HERE / "train_worker.py"
BASELINE = "penstock"
TITLES = {
    BASELINE: "ps.train, from shards",
    "penstock-cached": 'ps.train, cache="memory"',
    "arrays": "model.fit, from arrays in memory",
}
NOTES = """\
Ratios are those of the first row and the row, round by round: median (lowest - highest). The same model,
built by Penstock, and the same compile. Timed are the epochs after the first one, each from its beginning to
that of the next, so that checkpoints, the history and the guard over the loss are in it. Plain fit is given
coded and scaled arrays; ps.train reads, decodes, codes and scales the records in every epoch, or once with
the cache."""


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="turns of each method (default 3, quick 1)")
    parser.add_argument("--batch-sizes", default="256,1024", help="default: %(default)s")
    parser.add_argument("--competitors", default=",".join(TITLES), help="default: %(default)s")
    parser.add_argument("--cores", type=int, help="default: 2, if there are so many")
    parser.add_argument("--quick", action="store_true", help="small data: a smoke test, not a measurement")
    arguments = parser.parse_args()
    arguments.competitors = arguments.competitors.split(",")
    for name in arguments.competitors:
        if name not in TITLES:
            parser.error(f"unknown name {name!r} in --competitors: expected some of {', '.join(TITLES)}")
    sizes = arguments.batch_sizes.split(",")
    if not all(size.isdecimal() and int(size) for size in sizes):
        parser.error(f"expected numbers above 0 in --batch-sizes, got {arguments.batch_sizes}")
    arguments.batch_sizes = sizes
    available = len(os.sched_getaffinity(0))
    arguments.cores = arguments.cores or min(2, available)
    if not 0 < arguments.cores <= available:
        parser.error(f"expected a number of cores from 1 to {available}, got {arguments.cores}")
    return arguments


def measure(arguments: argparse.Namespace) -> Results:
    """Measure one batch size after the other, and print its table when it is done."""
    total = Results()
    ensure_written(["T"], arguments.quick)
    ensure_fitted(["T"], arguments.quick)
    for size in arguments.batch_sizes:
        jobs = [Job(name, size, arguments.cores, arguments.quick) for name in arguments.competitors]
        score = run_rounds(jobs, arguments.rounds or (1 if arguments.quick else 3), 1, WORKER)
        print(format_part(score, size, arguments), end="\n\n", flush=True)
        total.turns += score.turns
        total.openings |= score.openings
        total.failures |= score.failures
    return total


def format_part(score: Results, size: str, arguments: argparse.Namespace) -> str:
    """Format the table of one batch size; a method that failed has its reason in its row."""
    spec = list_datasets(arguments.quick)["T"]
    heading = f"{spec.title}: {spec.num_records:,} records, batches of {size}, {count_cores(arguments.cores)}"
    return f"{heading}\n\n{_draw_rates(score, size, arguments.cores, arguments.competitors)}"


def _draw_rates(score: Results, size: str, num_cores: int, names: Sequence[str]) -> str:
    ours = pick_turns(score, BASELINE, size, num_cores)
    rows = []
    for name in names:
        key = (name, size, num_cores)
        if key in score.failures:
            rows.append([TITLES[name], "failed", "", "", score.failures[key].splitlines()[0][:60]])
            continue
        turns = pick_turns(score, *key)
        rate = find_rate(turns)
        if rate is None:
            continue
        work = find_rate(turns, lambda turn: turn.timed_cpu_seconds / turn.num_records)
        rows.append(
            [
                TITLES[name],
                f"{rate:,.0f}",
                f"{int(size) / rate * 1e3:.2f} ms",
                f"{(work or 0.0) * 1e6:.1f} µs",
                "" if name == BASELINE else format_ratio(compare(ours, turns)),
            ]
        )
    return draw(["method", "records/s", "per step", "CPU per record", "ps.train is"], rows)


def report(score: Results, arguments: argparse.Namespace) -> None:
    """Print how to read the tables, and keep the figures."""
    if arguments.quick:
        print("QUICK RUN on little data: a smoke test, not a measurement.", end="\n\n")
    print(add_load_warning(NOTES, score))
    for (entry, size, num_cores), reason in score.failures.items():
        print(f"FAILED {entry}, batches of {size}, {num_cores} core(s): {reason}", file=sys.stderr)
    results = {
        "machine": describe_machine(),
        "arguments": vars(arguments),
        "openings": [[*key, seconds] for key, seconds in score.openings.items()],
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    path = STORE / "results" / ("train-quick.json" if arguments.quick else "train.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results) + "\n")


def main() -> int:
    """Run the benchmark; 1 if any method failed."""
    arguments = parse_arguments()
    score = measure(arguments)
    report(score, arguments)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
