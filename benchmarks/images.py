"""Measures how fast Penstock decodes and resizes pictures, against tf.data and others, in interleaved rounds.

In: pictures like photos, made when missing. Out: tables, and every figure in results/images.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from importlib.util import find_spec

from arena import Score, hold_rounds
from booth import Order
from imagefeeds import ENTRIES, PARTS
from imagetable import format_goals, format_notes, format_part, list_entries
from machine import describe_machine
from photos import HERE, ensure_photos, list_photos

ENTRY_NAMES = list(dict.fromkeys(entry.name for entry in ENTRIES))
TURNSTILE = HERE / "turnstile.py"
NUM_ROUNDS, NUM_TRAINING_ROUNDS = 7, 3


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="turns of each feed (default 7, training 3, quick 1)")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--contestants", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--cores", help="default: 1,2; quick 2")
    parser.add_argument("--quick", action="store_true", help="few pictures: does it run, not how fast is it")
    arguments = parser.parse_args()
    arguments.parts = arguments.parts.split(",")
    arguments.contestants = arguments.contestants.split(",")
    for kind, known in (("parts", list(PARTS)), ("contestants", ENTRY_NAMES)):
        for name in getattr(arguments, kind):
            if name not in known:
                parser.error(f"unknown name {name!r} in --{kind}: expected some of {', '.join(known)}")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error(f"expected at least one round, got {arguments.rounds}")
    available = len(os.sched_getaffinity(0))
    usual = {min(2, available)} if arguments.quick else {1, min(2, available)}
    choices = [str(num_cores) for num_cores in range(1, available + 1)]
    asked = arguments.cores.split(",") if arguments.cores else [str(num_cores) for num_cores in sorted(usual)]
    if not set(asked) <= set(choices):
        parser.error(f"expected numbers of cores from 1 to {available}, got {arguments.cores}")
    arguments.cores = [int(text) for text in asked]
    return arguments


def find_missing(names: list[str]) -> dict[str, str]:
    """Return which contestants cannot take part because their package is not installed."""
    entries = [entry for entry in ENTRIES if entry.name in names]
    needs = {entry.name: entry.needs for entry in entries if entry.needs}
    if any(need != "cv2" for need in needs.values()) and find_spec("cv2") is None:
        needs = dict.fromkeys(needs, "cv2")  # the others bring no decoder
    return {
        name: f"skipped: {package} is not installed"
        for name, package in needs.items()
        if find_spec(package) is None
    }


def hold(arguments: argparse.Namespace, skipped: dict[str, str]) -> Score:
    """Measure one part after the other, on one number of cores after the other, and print its table then.

    So no more than a dozen processes wait at a time: each that has TensorFlow takes up to a gigabyte.
    """
    total = Score()
    ensure_photos([PARTS[part].photos for part in arguments.parts], arguments.quick)
    names = [name for name in arguments.contestants if name not in skipped]
    for part in arguments.parts:
        photos = list_photos(arguments.quick)[PARTS[part].photos]
        usual = 1 if arguments.quick else NUM_TRAINING_ROUNDS if part == "wait" else NUM_ROUNDS
        for num_cores in arguments.cores:
            orders = [
                Order(entry.name, part, num_cores, arguments.quick) for entry in list_entries(part, names)
            ]
            num_at_once = len(orders) if arguments.quick else 1
            if not orders:
                continue
            score = hold_rounds(orders, arguments.rounds or usual, num_at_once, TURNSTILE)
            print(format_part(score, part, photos, num_cores, skipped), end="\n\n", flush=True)
            total.turns += score.turns
            total.openings |= score.openings
            total.failures |= score.failures
    return total


def report(score: Score, arguments: argparse.Namespace, skipped: dict[str, str]) -> None:
    """Print what follows from all tables, and keep every raw figure, so that another can be made from it."""
    if arguments.quick:
        print("QUICK RUN on few pictures: it shows that everything runs, not how fast.", end="\n\n")
    for text in (format_goals(score, arguments.cores), format_notes(score)):
        if text:
            print(text, end="\n\n")
    for (entry, part, num_cores), reason in score.failures.items():
        print(f"FAILED {entry}, {part}, {num_cores} core(s): {reason}", file=sys.stderr)
    results = {
        "machine": describe_machine(),
        "arguments": vars(arguments),
        "skipped": skipped,
        "openings": [[*key, seconds] for key, seconds in score.openings.items()],
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    path = HERE / "results" / ("images-quick.json" if arguments.quick else "images.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results) + "\n")


def main() -> int:
    """Run the benchmark; 1 if any feed failed."""
    arguments = parse_arguments()
    skipped = find_missing(arguments.contestants)
    score = hold(arguments, skipped)
    report(score, arguments, skipped)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
