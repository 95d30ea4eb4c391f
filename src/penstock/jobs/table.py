"""Plain text tables, among them the columns of a plan.

In: rows of cells, or a plan. Out: lines, aligned by what a terminal shows, no wider than asked.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

from penstock.plan.plan import Plan

_GAP = "  "
_MAX_CELL_CHARS = 60  # of any column but the last
_MIN_LAST_CHARS = 12
_DEFAULT_COLUMNS = 120  # in a pipe
_MOST_COLUMNS: Final = 60  # of a plan that are listed: more scroll the rest of the output away


def terminal_width() -> int:
    """Return how many columns there are to write in."""
    return shutil.get_terminal_size((_DEFAULT_COLUMNS, 24)).columns


def format_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    right: Collection[str] = (),
) -> list[str]:
    """Return a table as lines: the header, a rule, the rows.

    Args:
        header: The names of the columns.
        rows: The cells; they hold no newline and no control character.
        width: How wide the lines may be. The last column gives way; it keeps a few characters at any rate.
        right: Columns that are aligned to the right.
    """
    cut = [[shorten(cell, _MAX_CELL_CHARS) for cell in row[:-1]] + [row[-1]] for row in rows]
    widths = [max(map(_width, column)) for column in zip(header, *cut, strict=True)]
    before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    widths[-1] = min(widths[-1], max(_MIN_LAST_CHARS, width - before))
    aligned = [name in right for name in header]
    lines = [_GAP.join(rule(each) for each in widths)]
    for row in (header, *cut):
        cells = [*row[:-1], shorten(row[-1], widths[-1])]
        padded = [_pad(*each) for each in zip(cells, widths, aligned, strict=True)]
        lines.append(_GAP.join(padded).rstrip())
    return [lines[1], lines[0], *lines[2:]]


def format_plan(plan: Plan, *, width: int) -> list[str]:
    """Return a table of what becomes of each column, as lines; of a wide source, of its first columns."""
    rows = [
        [
            escape(each.column),
            each.field.type_name,
            each.field.role,
            escape(each.field.describe()),
            each.reason,
        ]
        for each in plan.columns[:_MOST_COLUMNS]
    ]
    lines = format_table(("column", "type", "role", "values", "because"), rows, width=width)
    if len(plan) > _MOST_COLUMNS:
        lines.append(f"… and {len(plan) - _MOST_COLUMNS:,} more: 'penstock convert --plan' prints all")
    return lines


def escape(text: str) -> str:
    r"""Write a name or a text; what is not printable (control characters, newlines, half pairs) is escaped.

    Example:
        >>> print(escape("a\x1b[31m"))
        a\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape_char(char) for char in text)


def _escape_char(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def rule(width: int) -> str:
    """Return a line across, of a sign that the output can show."""
    encoding = getattr(sys.stdout, "encoding", None) or ""
    return ("─" if encoding.lower().startswith("utf") else "-") * width


def shorten(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis where something is left out."""
    if _width(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1] + "…"
    kept, used = [], 1
    for char in text:
        used += _char_width(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept) + "…"


def _pad(text: str, width: int, is_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if is_right else text + space


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
