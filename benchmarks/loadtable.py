"""The tables of the load benchmark, as Markdown that also reads well on a terminal.

In: the score. Out: a table for each part and number of cores, one of what follows from them, and notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from arena import Score, Turn
from datasets import NUM_SHARDS, DatasetSpec
from drawing import add_disturbance, count_cores, draw, format_ratio
from feeds import BASELINE, CACHED_BASELINE, ENTRIES, PARTS, Entry
from ratios import compare, find_rate, pick_turns

NOTES = """\
Ratios are those of Penstock and the row, round by round: median (lowest - highest). Warm page cache, every
batch consumed; what each feed delivers was checked against NumPy and Keras before anything was timed.
Penstock shuffles the whole data set; tf.data a buffer of 10,000 records, or windows of ten batches. Fitting
is part of Penstock's opening; the others are given what was fitted before.
Waiting is the time in next(). A feed that makes batches meanwhile slows the training down where cores are
few: compare whole steps, too. "To tensors" is what arrays cost on their way into TensorFlow, by DLPack."""
WAITED, CONVERTED = 0, 1


def list_entries(part: str, names: Sequence[str]) -> list[Entry]:
    """Return the feeds of a part, in the order of the table."""
    return [entry for entry in ENTRIES if entry.part == part and entry.name in names]


def format_part(score: Score, part: str, spec: DatasetSpec, num_cores: int, entries: Sequence[Entry]) -> str:
    """Draw the table of one part on so many cores; a feed that failed has its reason in its row."""
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


def _draw_rates(score: Score, bytes_per_record: float, num_cores: int, entries: Sequence[Entry]) -> str:
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


def _draw_waits(score: Score, num_cores: int, entries: Sequence[Entry]) -> str:
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
        heads = ["times that of Penstock", "waiting", "whole step", "waiting, to_tf()", "whole step, to_tf()"]
        tables.append(draw(heads, ratios))
    return "\n\n".join(tables)


def _compare_waits(score: Score, turns: dict[int, Turn], num_cores: int) -> list[str]:
    """Divide a peer's times by those of both of Penstock's feeds."""
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


def format_derived(score: Score, cores: Sequence[int]) -> str:
    """Draw what Penstock's own rows say about each other."""
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


def format_notes(score: Score) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_disturbance(NOTES, score)


def _name_row(entry: Entry) -> str:
    is_spared = entry.num_shards is not None and entry.part != "wait"
    return entry.title + (f" (first {entry.num_shards} of {NUM_SHARDS} shards)" if is_spared else "")
