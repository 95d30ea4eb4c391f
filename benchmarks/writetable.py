"""The tables of the write benchmark, as Markdown that also reads well on a terminal.

In: the score. Out: a table for each material, one of all ratios, one of what workers bring, and notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arena import Score, Turn
from drawing import add_disturbance, count_cores, draw, format_ratio
from material import Material
from ratios import compare, find_rate, pick_turns
from writers import BASELINE, ENTRIES, Entry

NOTES = """\
Ratios are records per second of Penstock over those of the row, round by round: median (lowest - highest).
Penstock infers the schema, splits, shuffles, gathers statistics, hashes, indexes and waits for the disk; of
the others only write + fsync waits. "Synced" adds to every writer the time that `sync` takes after it.
MB/s counts all bytes in the folder that was written. Sources on the disk are in the page cache."""
Rate = Callable[[Turn], float]


def _plainly(turn: Turn) -> float:
    return turn.records_per_second


def _synced(turn: Turn) -> float:
    return turn.synced_per_second


def list_entries(material: str, names: Sequence[str]) -> list[Entry]:
    """Return the writers that are given a material, in the order of the table."""
    return [entry for entry in ENTRIES if material in entry.writes and entry.name in names]


def format_material(score: Score, material: Material, num_cores: int, entries: Sequence[Entry]) -> str:
    """Draw the table of one material on so many cores; a writer that failed has its reason in its row."""
    baseline = pick_turns(score, BASELINE, material.name, num_cores)
    rows = []
    for entry in entries:
        key = (entry.name, material.name, num_cores)
        if key in score.failures:
            rows.append([entry.title, "failed", "", score.failures[key].splitlines()[0][:60], "", ""])
            continue
        turns = pick_turns(score, *key)
        rate, synced_rate = find_rate(turns), find_rate(turns, _synced)
        if rate is None or synced_rate is None:
            continue
        bytes_per_record = sum(turn.num_bytes for turn in turns.values()) / sum(
            turn.num_records for turn in turns.values()
        )
        is_baseline = entry.name == BASELINE
        rows.append(
            [
                _name_row(entry, material),
                f"{rate:,.0f}",
                f"{rate * bytes_per_record / 1e6:,.0f}",
                "" if is_baseline else format_ratio(compare(baseline, turns)),
                f"{synced_rate:,.0f}",
                "" if is_baseline else format_ratio(compare(baseline, turns, _synced)),
            ]
        )
    heads = ["writer", "records/s", "MB/s", "Penstock is", "synced, records/s", "Penstock is"]
    heading = f"{material.name}: {material.title}; {material.num_records:,} records, {count_cores(num_cores)}"
    return f"{heading}\n\n{draw(heads, rows)}"


def format_overview(score: Score, materials: Sequence[str]) -> str:
    """Draw how many times as fast as each row Penstock is on one core, without and with `sync` after it."""
    tables = []
    for head, rate in (("Penstock on one core is", _plainly), ("the same, synced", _synced)):
        rows = []
        for entry in ENTRIES:
            cells = [_compare_row(score, entry, name, rate) for name in materials]
            if entry.name != BASELINE and any(cells):
                rows.append([entry.title, *cells])
        if rows:
            tables.append(draw([head, *materials], rows))
    return "\n\n".join(tables)


def _compare_row(score: Score, entry: Entry, material: str, rate: Rate) -> str:
    ours, theirs = (pick_turns(score, name, material, 1) for name in (BASELINE, entry.name))
    return format_ratio(compare(ours, theirs, rate))


def format_workers(score: Score, materials: Sequence[str], cores: Sequence[int]) -> str:
    """Draw what more workers bring."""
    rows = []
    for name in materials:
        for num_cores in cores:
            ours = pick_turns(score, BASELINE, name, num_cores)
            ratio = compare(ours, pick_turns(score, BASELINE, name, 1)) if num_cores > 1 else None
            if ratio:
                rows.append([f"{num_cores} workers over one, {name}", format_ratio(ratio)])
    return draw(["Penstock against itself", "speed"], rows) if rows else ""


def format_notes(score: Score) -> str:
    """Say how to read the tables, and whether the machine was quiet while they were measured."""
    return add_disturbance(NOTES, score)


def _name_row(entry: Entry, material: Material) -> str:
    num_records = entry.limit(material)
    return entry.title + (f" (first {num_records:,})" if num_records < material.num_records else "")
