"""Tables of all benchmarks: Markdown that is also readable on a terminal.

In: cells, ratios, a score. Out: text.
"""

from __future__ import annotations

from rounds import Ratio, Results

# What others take of a core, from where on it is worth a warning: about what the rounds differ by anyway.
QUIET_LOAD = 0.05


def count_cores(num_cores: int) -> str:
    return f"{num_cores} core" if num_cores == 1 else f"{num_cores} cores"


def format_ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    digits = 2 if ratio.middle < 10 else 1
    return f"{ratio.middle:.{digits}f}× ({ratio.low:.{digits}f} - {ratio.high:.{digits}f})"


def draw(heads: list[str], rows: list[list[str]]) -> str:
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


def add_load_warning(notes: str, score: Results) -> str:
    """Append a warning to the notes if other programs used the machine during the measurement."""
    disturbed = [turn for turn in score.turns if turn.other_load > QUIET_LOAD]
    if not disturbed:
        return notes
    worst = max(turn.other_load for turn in disturbed)
    return (
        f"{notes}\nTHE MACHINE WAS BUSY: in {len(disturbed)} of {len(score.turns)} passes other processes "
        f"used more than {QUIET_LOAD:.0%} of a core, at worst {worst:.0%}."
    )
