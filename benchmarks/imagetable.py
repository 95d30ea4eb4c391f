"""The tables of the benchmark of images, for people: Markdown that also reads well on a terminal.

In: the score. Out: a table for each part and number of cores, one of the ratios asked for, and notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from arena import Score, Turn
from drawing import add_disturbance, count_cores, draw, format_ratio
from imagefeeds import ENTRIES, GOALS, LIMIT, PARTS, Entry, name_baseline
from photos import BATCH_SIZE, PhotoSpec
from ratios import Ratio, compare, find_rate, pick_turns

NOTES = """\
Images per CPU-second: of all threads of the process that feeds. Ratios are of those, round by round: median
(lowest - highest). Warm page cache, feeds in full swing, every batch taken; what each feed delivers was
compared with Pillow before anything was timed. Penstock and Grain shuffle the whole set; tf.data and
webdataset a buffer of 1,000 records; the thread loop reads blocks of neighbours in random order, by
Penstock's columns(). "libjpeg-turbo alone" has the bytes in memory and decodes into one buffer: the limit of
all JPEG rows but those that decode at 1/2, or a part.
Waiting is the time in next(). A feed that makes batches meanwhile slows the training down where cores are
few: compare whole steps, too. "To tensors" is what arrays cost on their way into TensorFlow: Penstock's by
DLPack, those of the others by a copy, for they are not aligned."""
WAITED, CONVERTED = 0, 1


def list_entries(part: str, names: Sequence[str]) -> list[Entry]:
    """Return the feeds of a part, in the order of the table."""
    return [entry for entry in ENTRIES if entry.part == part and entry.name in names]


def rate_cpu(turn: Turn) -> float:
    """Return images per CPU-second."""
    return turn.num_records / turn.timed_cpu_seconds


def format_part(
    score: Score, part: str, photos: PhotoSpec, num_cores: int, skipped: Mapping[str, str]
) -> str:
    """Draw the table of one part on so many cores; a feed that failed or is not there says why in its row."""
    size = PARTS[part].size
    heading = (
        f"{part}: {photos.width}x{photos.height} {photos.format}, {photos.bytes_per_image:,.0f} bytes or "
        f"{photos.bytes_per_pixel:.3f} byte a pixel each, to {size}x{size}, {PARTS[part].title}; "
        f"{photos.num_images} pictures, batches of {BATCH_SIZE}, {count_cores(num_cores)}"
    )
    rows = _list_rows(score, part, num_cores, skipped)
    return f"{heading}\n\n{_draw_waits(rows) if part == 'wait' else _draw_rates(rows)}"


class _Row:
    """One feed of a part: its turns, those of the baseline and of the limit, or why it has none."""

    def __init__(self, score: Score, entry: Entry, num_cores: int, reason: str) -> None:
        self.entry = entry
        self.reason = reason.splitlines()[0][:70] if reason else ""
        self.turns = pick_turns(score, entry.name, entry.part, num_cores)
        self.ours = pick_turns(score, name_baseline(entry.part), entry.part, num_cores)
        self.limit = pick_turns(score, LIMIT, entry.part, num_cores)
        self.opening = score.openings.get((entry.name, entry.part, num_cores), 0.0)

    @property
    def is_baseline(self) -> bool:
        return self.entry.name == name_baseline(self.entry.part)


def _list_rows(score: Score, part: str, num_cores: int, skipped: Mapping[str, str]) -> list[_Row]:
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
        tables.append(draw(["times that of Penstock", "waiting", "whole step"], ratios))
    return "\n\n".join(tables)


def _share_waiting(turn: Turn) -> float:
    """Return which part of its time a training run spent in `next`."""
    return sum(step[WAITED] for step in turn.steps) / sum(map(sum, turn.steps))


def _rate_waiting(turn: Turn) -> float:
    """Return how many waits fit into a second."""
    return 1e9 / fmean(step[WAITED] for step in turn.steps)


def _rate_steps(turn: Turn) -> float:
    return 1e9 / fmean(sum(step) for step in turn.steps)


def format_goals(score: Score, cores: Sequence[int]) -> str:
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


def format_notes(score: Score) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_disturbance(NOTES, score)
