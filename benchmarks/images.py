"""Measures how fast Penstock decodes and resizes pictures, against tf.data and others, in interleaved rounds.

In: pictures like photos, made when missing. Out: tables, and every figure in results/images.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean, median

from datasets import HERE, STORE
from image_feeds import ENTRIES, GOALS, LIMIT, PARTS, Entry, name_baseline
from machine import describe_machine
from peers import find_missing
from photos import BATCH_SIZE, PhotoSpec, ensure_photos, list_photos
from rounds import Ratio, Results, Turn, compare, find_rate, pick_turns, run_rounds
from tables import add_load_warning, count_cores, draw, format_ratio
from worker import Job

NOTES = """\
Images per CPU-second: of all threads of the process that feeds. Ratios are of those, round by round: median
(lowest - highest). Warm page cache, feeds at a steady rate, every batch taken; what each feed delivers was
compared with Pillow before anything was timed. Penstock and Grain shuffle the whole set; tf.data and
webdataset a buffer of 1,000 records; the thread loop reads blocks of adjacent records in random order, by
Penstock's columns(). "libjpeg-turbo alone" has the bytes in memory and decodes into one buffer: the limit of
all JPEG rows but those that decode at 1/2, or a part.
Waiting is the time in next(). A feed that makes batches meanwhile slows the training down where cores are
few: compare whole steps, too. "To tensors" is what arrays cost on their way into TensorFlow: Penstock's by
DLPack, arrays of the others by a copy, because they are not aligned."""
WAITED, CONVERTED = 0, 1


def list_entries(part: str, names: Sequence[str]) -> list[Entry]:
    """Return the feeds of a part, in the order of the table."""
    return [entry for entry in ENTRIES if entry.part == part and entry.name in names]


def rate_cpu(turn: Turn) -> float:
    """Return images per CPU-second."""
    return turn.num_records / turn.timed_cpu_seconds


def format_part(
    score: Results, part: str, photos: PhotoSpec, num_cores: int, skipped: Mapping[str, str]
) -> str:
    """Format the table of one part on so many cores; the row of a feed that failed gives the reason."""
    size = PARTS[part].size
    heading = (
        f"{part}: {photos.width}x{photos.height} {photos.format}, {photos.bytes_per_image:,.0f} bytes or "
        f"{photos.bytes_per_pixel:.3f} byte a pixel each, to {size}x{size}, {PARTS[part].title}; "
        f"{photos.num_images} pictures, batches of {BATCH_SIZE}, {count_cores(num_cores)}"
    )
    rows = _list_rows(score, part, num_cores, skipped)
    return f"{heading}\n\n{_draw_waits(rows) if part == 'wait' else _draw_rates(rows)}"


class _Row:
    """One feed of a part: its turns, turns of the baseline and of the limit, or why it has none."""

    def __init__(self, score: Results, entry: Entry, num_cores: int, reason: str) -> None:
        self.entry = entry
        self.reason = reason.splitlines()[0][:70] if reason else ""
        self.turns = pick_turns(score, entry.name, entry.part, num_cores)
        self.ours = pick_turns(score, name_baseline(entry.part), entry.part, num_cores)
        self.limit = pick_turns(score, LIMIT, entry.part, num_cores)
        self.opening = score.openings.get((entry.name, entry.part, num_cores), 0.0)

    @property
    def is_baseline(self) -> bool:
        return self.entry.name == name_baseline(self.entry.part)


def _list_rows(score: Results, part: str, num_cores: int, skipped: Mapping[str, str]) -> list[_Row]:
    rows = []
    for entry in ENTRIES:
        if entry.part != part:
            continue
        failure = score.failures.get((entry.name, part, num_cores), "")
        reason = f"failed: {failure}" if failure else skipped.get(entry.name, "")
        row = _Row(score, entry, num_cores, reason)
        if row.turns or row.reason:
            rows.append(row)
    return rows


def _draw_rates(rows: Sequence[_Row]) -> str:
    cells = []
    has_limit = any(row.limit for row in rows)
    for row in rows:
        if row.reason:
            cells.append([f"{row.entry.title}: {row.reason}", *[""] * 5])
            continue
        share = compare(row.turns, row.limit, rate_cpu)
        cells.append(
            [
                row.entry.title,
                f"{find_rate(row.turns) or 0:,.0f}",
                _spread(sorted(map(rate_cpu, row.turns.values()))),
                "" if row.is_baseline else format_ratio(compare(row.ours, row.turns, rate_cpu)),
                f"{share.middle:.0%}" if share else "",
                f"{row.opening * 1e3:,.0f} ms",
            ]
        )
    first = rows[0].entry.title if rows and rows[0].entry.part == "cache" else "Penstock"
    heads = ["feed", "images/s", "images/CPU-s (lowest - highest)", f"{first} is", "of libjpeg", "opening"]
    if not has_limit:
        cells = [[*row[:4], row[5]] for row in cells]
        heads.remove("of libjpeg")
    return draw(heads, cells)


def _spread(rates: Sequence[float]) -> str:
    return f"{median(rates):,.0f} ({rates[0]:,.0f} - {rates[-1]:,.0f})"


def _draw_waits(rows: Sequence[_Row]) -> str:
    cells, ratios = [], []
    for row in rows:
        if row.reason:
            cells.append([f"{row.entry.title}: {row.reason}", *[""] * 7])
            continue
        steps = [step for turn in row.turns.values() for step in turn.steps]
        waits = sorted(step[WAITED] for step in steps)
        whole = fmean(sum(step) for step in steps)
        figures = [fmean(waits), median(waits), waits[len(waits) * 99 // 100]]
        figures += [fmean(step[CONVERTED] for step in steps), whole]
        shares = sorted(map(_share_waiting, row.turns.values()))
        share = f"{median(shares):.0%} ({shares[0]:.0%} - {shares[-1]:.0%})"
        cells.append(
            [row.entry.title, f"{len(steps):,}", *(f"{each / 1e6:.2f} ms" for each in figures), share]
        )
        if not row.entry.name.startswith("penstock"):
            both = (compare(row.ours, row.turns, rate) for rate in (_rate_waiting, _rate_steps))
            ratios.append([row.entry.title, *map(format_ratio, both)])
    heads = ["feed", "steps", "waiting, mean", "median", "p99", "to tensors", "whole step", "share waiting"]
    tables = [draw(heads, cells)]
    if ratios:
        tables.append(draw(["times Penstock", "waiting", "whole step"], ratios))
    return "\n\n".join(tables)


def _share_waiting(turn: Turn) -> float:
    """Return which part of its time a training run spent in `next`."""
    return sum(step[WAITED] for step in turn.steps) / sum(map(sum, turn.steps))


def _rate_waiting(turn: Turn) -> float:
    """Return how many waits fit into a second."""
    return 1e9 / fmean(step[WAITED] for step in turn.steps)


def _rate_steps(turn: Turn) -> float:
    return 1e9 / fmean(sum(step) for step in turn.steps)


def format_goals(score: Results, cores: Sequence[int]) -> str:
    """Draw the ratios that were asked for beside those that were measured."""
    rows = []
    for goal in GOALS:
        cells = []
        for num_cores in cores:
            ours = pick_turns(score, goal.ours, goal.part, num_cores)
            theirs = pick_turns(score, goal.theirs, goal.part, num_cores)
            cells.append(_judge(compare(ours, theirs, rate_cpu), goal.least))
        if any(cells):
            rows.append([goal.title, f"≥ {goal.least:g}×", *cells])
    heads = ["Penstock per CPU-second, against", "asked", *map(count_cores, cores)]
    return draw(heads, rows) if rows else ""


def _judge(ratio: Ratio | None, least: float) -> str:
    if ratio is None:
        return ""
    verdict = "reached" if ratio.middle >= least else "missed"
    return f"{format_ratio(ratio)} {verdict}"


def format_notes(score: Results) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_load_warning(NOTES, score)


ENTRY_NAMES = list(dict.fromkeys(entry.name for entry in ENTRIES))
WORKER = HERE / "image_worker.py"
NUM_ROUNDS, NUM_TRAINING_ROUNDS = 7, 3


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="turns of each feed (default 7, training 3, quick 1)")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--competitors", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--cores", help="default: 1,2; quick 2")
    parser.add_argument("--quick", action="store_true", help="few pictures: a smoke test, not a measurement")
    arguments = parser.parse_args()
    arguments.parts = arguments.parts.split(",")
    arguments.competitors = arguments.competitors.split(",")
    for kind, known in (("parts", list(PARTS)), ("competitors", ENTRY_NAMES)):
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


def find_left_out(names: list[str]) -> dict[str, str]:
    """Return which competitors cannot take part because their package is not installed."""
    decoded = [entry if not entry.needs else replace(entry, needs="cv2") for entry in ENTRIES]
    # The other packages bring no decoder, and use the decoder of OpenCV.
    return find_missing(ENTRIES, names) | find_missing(decoded, names)


def measure(arguments: argparse.Namespace, skipped: dict[str, str]) -> Results:
    """Measure one part after the other, on one number of cores after the other, and print its table then.

    So no more than a dozen processes wait at a time: each that has TensorFlow takes up to a gigabyte.
    """
    total = Results()
    ensure_photos([PARTS[part].photos for part in arguments.parts], arguments.quick)
    names = [name for name in arguments.competitors if name not in skipped]
    for part in arguments.parts:
        photos = list_photos(arguments.quick)[PARTS[part].photos]
        usual = 1 if arguments.quick else NUM_TRAINING_ROUNDS if part == "wait" else NUM_ROUNDS
        for num_cores in arguments.cores:
            jobs = [Job(entry.name, part, num_cores, arguments.quick) for entry in list_entries(part, names)]
            num_at_once = len(jobs) if arguments.quick else 1
            if not jobs:
                continue
            score = run_rounds(jobs, arguments.rounds or usual, num_at_once, WORKER)
            print(format_part(score, part, photos, num_cores, skipped), end="\n\n", flush=True)
            total.turns += score.turns
            total.openings |= score.openings
            total.failures |= score.failures
    return total


def report(score: Results, arguments: argparse.Namespace, skipped: dict[str, str]) -> None:
    """Print what follows from all tables, and keep every raw figure, so that another can be made from it."""
    if arguments.quick:
        print("QUICK RUN on few pictures: a smoke test, not a measurement.", end="\n\n")
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
    path = STORE / "results" / ("images-quick.json" if arguments.quick else "images.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results) + "\n")


def main() -> int:
    """Run the benchmark; 1 if any feed failed."""
    arguments = parse_arguments()
    skipped = find_left_out(arguments.competitors)
    score = measure(arguments, skipped)
    report(score, arguments, skipped)
    return 1 if score.failures else 0


if __name__ == "__main__":
    sys.exit(main())
