"""The tables of the benchmark, as Markdown that also reads well on a terminal.

In: the score. Out: a table for each data set and number of cores, one of what follows from them, and notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from arena import Score
from contestants import BASELINE, ENTRIES, Entry
from datasets import DatasetSpec
from ratios import Ratio, compare, find_rate, pick_turns

NOTES = """\
Ratios are records per second of Penstock over those of the row, round by round: median (lowest - highest).
MB/s counts TFRecord bytes, framing included, for Parquet too. Warm page cache, every batch consumed.
Penstock and tf.data verify both CRCs of every record; the tfrecord package and pyarrow verify nothing."""
# What others take of a core, from where on it is worth a warning: about what the rounds differ by anyway.
QUIET_LOAD = 0.05


def format_dataset(score: Score, spec: DatasetSpec, num_cores: int, entries: Sequence[Entry]) -> str:
    """Draw the table of one data set on so many cores; a contestant that failed has its reason in its row."""
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
                _format_ratio(ratio),
                f"{score.openings[key] * 1e3:,.0f} ms",
            ]
        )
    heading = (
        f"{spec.name}: {spec.title}; {spec.num_records:,} records of {bytes_per_record:,.0f} bytes, "
        f"batches of {spec.batch_size}, {_count_cores(num_cores)}"
    )
    return f"{heading}\n\n{_draw(['reader', 'records/s', 'MB/s', 'Penstock is', 'opening'], rows)}"


def format_derived(score: Score, datasets: Sequence[str], cores: Sequence[int]) -> str:
    """Draw what Penstock's own rows say about each other."""
    pairs = [
        (f"4 of 40 fields over all, {_count_cores(n)}", ("penstock-4-of-40", "T", n), (BASELINE, "T", n))
        for n in cores
    ]
    pairs += [
        (
            f"random key order over one order, {_count_cores(n)}",
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
    rows = [[text, _format_ratio(ratio)] for text, ratio in ratios if ratio]
    return _draw(["Penstock against itself", "speed"], rows) if rows else ""


def format_notes(score: Score) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    disturbed = [turn for turn in score.turns if turn.other_load > QUIET_LOAD]
    if not disturbed:
        return NOTES
    worst = max(turn.other_load for turn in disturbed)
    return (
        f"{NOTES}\nNOT A QUIET MACHINE: in {len(disturbed)} of {len(score.turns)} passes other processes "
        f"used more than {QUIET_LOAD:.0%} of a core, at worst {worst:.0%}."
    )


def list_entries(dataset: str, names: Sequence[str]) -> list[Entry]:
    """Return the contestants that read a data set, in the order of the table."""
    return [entry for entry in ENTRIES if dataset in entry.reads and entry.name in names]


def _name_row(entry: Entry, spec: DatasetSpec) -> str:
    most_records = entry.most_records.get(spec.name, spec.num_records)
    return entry.title + (f" (first {most_records:,})" if most_records < spec.num_records else "")


def _count_cores(num_cores: int) -> str:
    return f"{num_cores} core" if num_cores == 1 else f"{num_cores} cores"


def _format_ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    digits = 2 if ratio.middle < 10 else 1
    return f"{ratio.middle:.{digits}f}× ({ratio.low:.{digits}f} - {ratio.high:.{digits}f})"


def _draw(heads: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = [
        [
            text.rjust(width) if i else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in [heads, *rows]
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])
