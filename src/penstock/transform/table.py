"""A pipeline in words, for people.

In: an assembly. Out: a table with a line for each output, and one for each note on a field.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.transform.assembly import Assembly
from penstock.transform.output import Output

_MAX_CELL_CHARS = 60


def draw_table(assembly: Assembly, notes: Mapping[str, str]) -> str:
    """Write what becomes of each field."""
    origin: dict[str, tuple[str, str]] = {}
    for name, transform in assembly.fed.items():
        origin |= {output.name: (name, repr(transform)) for output in transform.outputs(name)}
    for mapped in assembly.maps:
        origin |= {output.name: (", ".join(mapped.fields), f"map {mapped.name}") for output in mapped.outputs}
    for group in assembly.groups:
        origin[group.name] = (", ".join(group.members), "group")
    rows = [("output", "role", "array", "from", "by")]
    for role, outputs in zip(("input", "target", "weight"), assembly.outputs, strict=True):
        rows += [_row(role, output, origin) for output in outputs.values()]
    rows += [
        ("–", "–", "–", name, f"note: {why}" if name in assembly.fields else f"not fed: {why}")
        for name, why in notes.items()
        if name in assembly.fed or name not in assembly.fields
    ]
    shown = [tuple(_fit(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(5)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown)
    return "\n".join(line.rstrip() for line in lines)


def _row(role: str, output: Output, origin: Mapping[str, tuple[str, str]]) -> tuple[str, str, str, str, str]:
    return output.name, role, output.describe(), *origin[output.name]


def _fit(text: str) -> str:
    # Names come from files: a control character must not reach a terminal.
    plain = text if text.isprintable() else repr(text)
    return plain if len(plain) <= _MAX_CELL_CHARS else f"{plain[: _MAX_CELL_CHARS - 1]}…"
