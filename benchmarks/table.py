"""The tables of the benchmark, as Markdown that also reads well on a terminal.

In: the score. Out: a table for each data set and number of cores, one of what follows from them, and notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from arena import Score
from contestants import BASELINE, ENTRIES, Entry
from datasets import DatasetSpec
from drawing import add_disturbance, count_cores, draw, format_ratio
from ratios import compare, find_rate, pick_turns

NOTES = """\
Ratios are records per second of Penstock over those of the row, round by round: median (lowest - highest).
MB/s counts TFRecord bytes, framing included, for Parquet too. Warm page cache, every batch consumed.
Penstock and tf.data verify both CRCs of every record; the tfrecord package and pyarrow verify nothing."""


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
                format_ratio(ratio),
                f"{score.openings[key] * 1e3:,.0f} ms",
            ]
        )
    heading = (
        f"{spec.name}: {spec.title}; {spec.num_records:,} records of {bytes_per_record:,.0f} bytes, "
        f"batches of {spec.batch_size}, {count_cores(num_cores)}"
    )
    return f"{heading}\n\n{draw(['reader', 'records/s', 'MB/s', 'Penstock is', 'opening'], rows)}"


def format_derived(score: Score, datasets: Sequence[str], cores: Sequence[int]) -> str:
    """Draw what Penstock's own rows say about each other."""
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


def format_notes(score: Score) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_disturbance(NOTES, score)


def list_entries(dataset: str, names: Sequence[str]) -> list[Entry]:
    """Return the contestants that read a data set, in the order of the table."""
    return [entry for entry in ENTRIES if dataset in entry.reads and entry.name in names]


def _name_row(entry: Entry, spec: DatasetSpec) -> str:
    most_records = entry.most_records.get(spec.name, spec.num_records)
    return entry.title + (f" (first {most_records:,})" if most_records < spec.num_records else "")
