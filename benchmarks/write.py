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
from dataclasses import asdict
from pathlib import Path

from arena import Score, hold_rounds
from booth import Order
from datasets import HERE
from desk import name_scratch
from footprint import ensure_large, format_footprint, measure_footprint, write_short_rows
from machine import describe_machine
from material import ensure_produced, list_material
from writers import ALL, ENTRIES
from writetable import format_material, format_notes, format_overview, format_workers, list_entries

ENTRY_NAMES = [entry.name for entry in ENTRIES]
DESK = HERE / "desk.py"


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="passes of each writer (default 5, quick 1)")
    parser.add_argument("--materials", default=",".join(ALL), help="default: %(default)s")
    parser.add_argument("--contestants", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small data: does it run, not how fast is it")
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
        "--workers", type=int, metavar="N", help="threads of a conversion whose memory is measured"
    )
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 5)
    arguments.materials = arguments.materials.split(",")
    arguments.contestants = arguments.contestants.split(",")
    for name in arguments.materials:
        if name not in ALL:
            parser.error(f"unknown material {name!r}: expected some of {', '.join(ALL)}")
    for name in arguments.contestants:
        if name not in ENTRY_NAMES:
            parser.error(f"unknown contestant {name!r}: expected some of {', '.join(ENTRY_NAMES)}")
    if arguments.memory is not None and arguments.memory <= 0:
        parser.error(f"expected gigabytes above 0, got {arguments.memory:g}")
    if arguments.rows is not None and arguments.rows < 1:
        parser.error(f"expected at least one row, got {arguments.rows}")
    if arguments.workers is not None and arguments.workers < 1:
        parser.error(f"expected at least one worker, got {arguments.workers}")
    arguments.cores = sorted({1, min(2, len(os.sched_getaffinity(0)))})
    return arguments


def list_orders(material: str, arguments: argparse.Namespace) -> list[Order]:
    """Give every writer one core, and Penstock two as well where it is asked how it spreads."""
    return [
        Order(entry.name, material, num_cores, arguments.quick)
        for num_cores in arguments.cores
        for entry in list_entries(material, arguments.contestants)
        if num_cores == 1 or material in entry.spreads
    ]


def hold(arguments: argparse.Namespace) -> Score:
    """Measure one material after the other, and print its table when it is done."""
    total = Score()
    ensure_produced(arguments.materials, arguments.quick)
    for name in arguments.materials:
        orders = list_orders(name, arguments)
        score = hold_rounds(orders, arguments.rounds, len(orders) if arguments.quick else 1, DESK)
        material = list_material(arguments.quick)[name]
        for num_cores in arguments.cores:
            there = {order.entry for order in orders if order.num_cores == num_cores}
            entries = [entry for entry in list_entries(name, arguments.contestants) if entry.name in there]
            if entries:
                print(format_material(score, material, num_cores, entries), end="\n\n", flush=True)
        total.turns += score.turns
        total.openings |= score.openings
        total.failures |= score.failures
    return total


def measure_memory(arguments: argparse.Namespace) -> None:
    """Convert a large CSV, by default with as many workers as there are cores, up to 2; keep what it took."""
    (HERE / "data").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=name_scratch(os.getpid()), dir=HERE / "data"))
    if arguments.rows is not None:
        source = folder / "short.csv"
        write_short_rows(source, arguments.rows)
    else:
        source = ensure_large(int(arguments.memory * 1e9))
    footprint = measure_footprint(source, folder / "out", arguments.workers or max(arguments.cores))
    print(format_footprint(footprint))
    write_results("write-memory.json", {"footprint": asdict(footprint)})


def write_results(name: str, results: dict[str, object]) -> None:
    """Keep every raw figure, so that another table can be made from it."""
    path = HERE / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": describe_machine()} | results, indent=1) + "\n")


def report(score: Score, arguments: argparse.Namespace) -> None:
    """Print what follows from all tables, and keep the figures."""
    if arguments.quick:
        print("QUICK RUN on little data: it shows that everything runs, not how fast.", end="\n\n")
    overview = format_overview(score, arguments.materials)
    workers = format_workers(score, arguments.materials, arguments.cores)
    for text in (overview, workers, format_notes(score)):
        if text:
            print(text, end="\n\n")
    for (entry, material, num_cores), reason in score.failures.items():
        print(f"FAILED {entry} on {material}, {num_cores} core(s): {reason}", file=sys.stderr)
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
            measure_memory(arguments)
            return 0
        score = hold(arguments)
    finally:
        # A desk that was ended in the middle of a pass leaves its folder.
        for folder in (HERE / "data").glob(name_scratch(os.getpid()) + "*"):
            shutil.rmtree(folder, ignore_errors=True)
    report(score, arguments)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
