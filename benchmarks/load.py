"""Measures how fast Penstock feeds a model, against tf.data with Keras layers, in interleaved rounds.

In: data sets that TensorFlow wrote, and what was fitted on them (made when missing). Out: tables, and every
figure in results/load.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict

from arena import Score, hold_rounds
from booth import Order
from datasets import HERE, ensure_written, list_datasets
from feeds import ENTRIES, PARTS
from fitted import ensure_fitted
from loadtable import format_derived, format_notes, format_part, list_entries
from machine import describe_machine
from residence import format_residence, watch_residence

ENTRY_NAMES = list(dict.fromkeys(entry.name for entry in ENTRIES))
GATE = HERE / "gate.py"
# A turn of training takes 40 s, one of the others 2.
NUM_ROUNDS = {"table": 5, "text": 5, "wait": 3}


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="turns of each feed (default 5, training 3, quick 1)")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--contestants", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--cores", help="default: 1,2; quick 2")
    parser.add_argument("--quick", action="store_true", help="small data: does it run, not how fast is it")
    parser.add_argument(
        "--memory",
        type=float,
        nargs="?",
        const=60.0,
        metavar="SECONDS",
        help="watch the memory behind a slow consumer for so long instead (default 60)",
    )
    arguments = parser.parse_args()
    arguments.parts = arguments.parts.split(",")
    arguments.contestants = arguments.contestants.split(",")
    for kind, known in (("parts", list(PARTS)), ("contestants", ENTRY_NAMES)):
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


def hold(arguments: argparse.Namespace) -> Score:
    """Measure one part after the other, and print its tables when it is done."""
    total = Score()
    names = list(dict.fromkeys(PARTS[part].dataset for part in arguments.parts))
    ensure_written(names, arguments.quick)
    ensure_fitted(names, arguments.quick)
    for part in arguments.parts:
        entries = list_entries(part, arguments.contestants)
        orders = [Order(entry.name, part, n, arguments.quick) for n in arguments.cores for entry in entries]
        num_rounds = arguments.rounds or (1 if arguments.quick else NUM_ROUNDS[part])
        score = hold_rounds(orders, num_rounds, len(orders) if arguments.quick else 1, GATE)
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
    residence = watch_residence(arguments.memory, max(arguments.cores), arguments.quick)
    print(format_residence(residence))
    write_results("load-memory.json", {"residence": asdict(residence)})


def write_results(name: str, results: dict[str, object]) -> None:
    """Keep every raw figure, so that another table can be made from it."""
    path = HERE / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": describe_machine()} | results) + "\n")


def report(score: Score, arguments: argparse.Namespace) -> None:
    """Print what follows from all tables, and keep the figures."""
    if arguments.quick:
        print("QUICK RUN on little data: it shows that everything runs, not how fast.", end="\n\n")
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
    score = hold(arguments)
    report(score, arguments)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
