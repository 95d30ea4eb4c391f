"""Measures how fast Penstock feeds a model, against tf.data with Keras layers, in interleaved rounds.

In: data sets that TensorFlow wrote, and what was fitted on them (made when missing). Out: tables, and every
figure in results/load.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean, median

from datasets import HERE, NUM_SHARDS, STORE, DatasetSpec, ensure_written, list_datasets
from feeds import BASELINE, CACHED_BASELINE, ENTRIES, PARTS, Entry
from fitted import ensure_fitted
from loader_memory import format_memory, measure_memory
from machine import describe_machine
from rounds import Results, Turn, compare, find_rate, pick_turns, run_rounds
from tables import add_load_warning, count_cores, draw, format_ratio
from worker import Job

NOTES = """\
Ratios compare Penstock with the row, round by round: median (lowest - highest). Warm page cache, every
batch consumed; what each feed delivers was checked against NumPy and Keras before anything was timed.
Penstock shuffles the whole data set; tf.data a buffer of 10,000 records, or windows of ten batches. Fitting
is part of Penstock's opening; the others are given what was fitted before.
Waiting is the time in next(). A feed that makes batches meanwhile slows the training down where cores are
few: compare whole steps, too. "To tensors" is what arrays cost on their way into TensorFlow, by DLPack."""
WAITED, CONVERTED = 0, 1


def list_entries(part: str, names: Sequence[str]) -> list[Entry]:
    """Return the feeds of a part, in the order of the table."""
    return [entry for entry in ENTRIES if entry.part == part and entry.name in names]


def format_part(
    score: Results, part: str, spec: DatasetSpec, num_cores: int, entries: Sequence[Entry]
) -> str:
    """Format the table of one part on so many cores; a feed that failed has its reason in its row."""
    bytes_per_record = spec.tfrecord_bytes / spec.num_records
    heading = (
        f"{part}: {PARTS[part].title}; {spec.num_records:,} records of {bytes_per_record:,.0f} bytes, "
        f"batches of {spec.batch_size}, {count_cores(num_cores)}"
    )
    if part == "wait":
        return f"{heading}\n\n{_draw_waits(score, num_cores, entries)}"
    tables = []
    for is_cached in (False, True):
        some = [entry for entry in entries if entry.is_cached == is_cached]
        if some:
            tables.append(_draw_rates(score, bytes_per_record, num_cores, some))
    return "\n\n".join([heading, *tables])


def _draw_rates(score: Results, bytes_per_record: float, num_cores: int, entries: Sequence[Entry]) -> str:
    baseline = CACHED_BASELINE if entries[0].is_cached else BASELINE
    ours = pick_turns(score, baseline, entries[0].part, num_cores)
    rows = []
    for entry in entries:
        key = (entry.name, entry.part, num_cores)
        if key in score.failures:
            rows.append([entry.title, "failed", "", score.failures[key].splitlines()[0][:60], ""])
            continue
        turns = pick_turns(score, *key)
        rate = find_rate(turns)
        if rate is None:
            continue
        rows.append(
            [
                _name_row(entry),
                f"{rate:,.0f}",
                f"{rate * bytes_per_record / 1e6:,.0f}",
                "" if entry.name == baseline else format_ratio(compare(ours, turns)),
                f"{score.openings[key] * 1e3:,.0f} ms",
            ]
        )
    return draw(["feed", "records/s", "MB/s", "Penstock is", "opening"], rows)


def _draw_waits(score: Results, num_cores: int, entries: Sequence[Entry]) -> str:
    rows, ratios = [], []
    for entry in entries:
        key = (entry.name, entry.part, num_cores)
        if key in score.failures:
            rows.append([entry.title, "failed", score.failures[key].splitlines()[0][:60], *[""] * 4])
            continue
        turns = pick_turns(score, *key)
        steps = [step for turn in turns.values() for step in turn.steps]
        if not steps:
            continue
        waits = sorted(step[WAITED] for step in steps)
        figures = [
            *(fmean(waits), median(waits), waits[len(waits) * 99 // 100]),
            fmean(step[CONVERTED] for step in steps),
            fmean(sum(step) for step in steps),
        ]
        rows.append([entry.title, f"{len(steps):,}", *(f"{each / 1e6:.3f} ms" for each in figures)])
        if not entry.name.startswith(BASELINE):
            ratios.append([entry.title, *_compare_waits(score, turns, num_cores)])
    heads = ["feed", "steps", "waiting, mean", "median", "p99", "to tensors", "whole step"]
    tables = [draw(heads, rows)]
    if ratios:
        heads = ["times Penstock", "waiting", "whole step", "waiting, to_tf()", "whole step, to_tf()"]
        tables.append(draw(heads, ratios))
    return "\n\n".join(tables)


def _compare_waits(score: Results, turns: dict[int, Turn], num_cores: int) -> list[str]:
    """Divide a peer's times by the times of both of Penstock's feeds."""
    cells = []
    for name in (BASELINE, "penstock-to-tf"):
        ours = pick_turns(score, name, "wait", num_cores)
        cells += [format_ratio(compare(ours, turns, rate)) for rate in (_rate_waiting, _rate_steps)]
    return cells


def _rate_waiting(turn: Turn) -> float:
    """Return how many waits fit into a second."""
    return 1e9 / fmean(step[WAITED] for step in turn.steps)


def _rate_steps(turn: Turn) -> float:
    return 1e9 / fmean(sum(step) for step in turn.steps)


def format_derived(score: Results, cores: Sequence[int]) -> str:
    """Format what Penstock's own rows say about each other."""
    pairs = [
        (f"cached over not, {count_cores(n)}", (CACHED_BASELINE, "table", n), (BASELINE, "table", n))
        for n in cores
    ]
    pairs += [
        (f"{n} threads over one, {part}", (BASELINE, part, n), (BASELINE, part, 1))
        for part in ("table", "text")
        for n in cores
        if n > 1
    ]
    ratios = [(text, compare(pick_turns(score, *a), pick_turns(score, *b))) for text, a, b in pairs]
    rows = [[text, format_ratio(ratio)] for text, ratio in ratios if ratio]
    return draw(["Penstock against itself", "speed"], rows) if rows else ""


def format_notes(score: Results) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_load_warning(NOTES, score)


def _name_row(entry: Entry) -> str:
    is_partial = entry.num_shards is not None and entry.part != "wait"
    return entry.title + (f" (first {entry.num_shards} of {NUM_SHARDS} shards)" if is_partial else "")


ENTRY_NAMES = list(dict.fromkeys(entry.name for entry in ENTRIES))
WORKER = HERE / "load_worker.py"
# A turn of training takes 40 s, one of the others 2.
NUM_ROUNDS = {"table": 5, "text": 5, "wait": 3}


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="turns of each feed (default 5, training 3, quick 1)")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--competitors", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--cores", help="default: 1,2; quick 2")
    parser.add_argument("--quick", action="store_true", help="small data: a smoke test, not a measurement")
    parser.add_argument(
        "--memory",
        type=float,
        nargs="?",
        const=60.0,
        metavar="SECONDS",
        help="instead, measure memory with a slow consumer for so many seconds (default 60)",
    )
    arguments = parser.parse_args()
    arguments.parts = arguments.parts.split(",")
    arguments.competitors = arguments.competitors.split(",")
    for kind, known in (("parts", list(PARTS)), ("competitors", ENTRY_NAMES)):
        for name in getattr(arguments, kind):
            if name not in known:
                parser.error(f"unknown name {name!r} in --{kind}: expected some of {', '.join(known)}")
    if arguments.memory is not None and arguments.memory <= 0:
        parser.error(f"expected seconds above 0, got {arguments.memory:g}")
    available = len(os.sched_getaffinity(0))
    usual = {min(2, available)} if arguments.quick else {1, min(2, available)}
    choices = [str(num_cores) for num_cores in range(1, available + 1)]
    asked = arguments.cores.split(",") if arguments.cores else [str(num_cores) for num_cores in sorted(usual)]
    if not set(asked) <= set(choices):
        parser.error(f"expected numbers of cores from 1 to {available}, got {arguments.cores}")
    arguments.cores = [int(text) for text in asked]
    return arguments


def measure(arguments: argparse.Namespace) -> Results:
    """Measure one part after the other, and print its tables when it is done."""
    total = Results()
    names = list(dict.fromkeys(PARTS[part].dataset for part in arguments.parts))
    ensure_written(names, arguments.quick)
    ensure_fitted(names, arguments.quick)
    for part in arguments.parts:
        entries = list_entries(part, arguments.competitors)
        jobs = [Job(entry.name, part, n, arguments.quick) for n in arguments.cores for entry in entries]
        num_rounds = arguments.rounds or (1 if arguments.quick else NUM_ROUNDS[part])
        score = run_rounds(jobs, num_rounds, len(jobs) if arguments.quick else 1, WORKER)
        spec = list_datasets(arguments.quick)[PARTS[part].dataset]
        for num_cores in arguments.cores:
            print(format_part(score, part, spec, num_cores, entries), end="\n\n", flush=True)
        total.turns += score.turns
        total.openings |= score.openings
        total.failures |= score.failures
    return total


def watch_memory(arguments: argparse.Namespace) -> None:
    """Watch the memory of a loader whose consumer is slow, and keep what was seen."""
    ensure_written(["T"], arguments.quick)
    ensure_fitted(["T"], arguments.quick)
    memory = measure_memory(arguments.memory, max(arguments.cores), arguments.quick)
    print(format_memory(memory))
    write_results("load-memory.json", {"memory": asdict(memory)})


def write_results(name: str, results: dict[str, object]) -> None:
    """Keep every raw figure, so that another table can be made from it."""
    path = STORE / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": describe_machine()} | results) + "\n")


def report(score: Results, arguments: argparse.Namespace) -> None:
    """Print what follows from all tables, and keep the figures."""
    if arguments.quick:
        print("QUICK RUN on little data: a smoke test, not a measurement.", end="\n\n")
    for text in (format_derived(score, arguments.cores), format_notes(score)):
        if text:
            print(text, end="\n\n")
    for (entry, part, num_cores), reason in score.failures.items():
        print(f"FAILED {entry}, {part}, {num_cores} core(s): {reason}", file=sys.stderr)
    results: dict[str, object] = {
        "arguments": vars(arguments),
        "openings": [[*key, seconds] for key, seconds in score.openings.items()],
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    write_results("load-quick.json" if arguments.quick else "load.json", results)


def main() -> int:
    """Run the benchmark; 1 if any feed failed."""
    arguments = parse_arguments()
    if arguments.memory is not None:
        watch_memory(arguments)
        return 0
    score = measure(arguments)
    report(score, arguments)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
