"""Text for a terminal: tables, bars, colours, and lines that are overwritten in place.

In: rows of cells, names and values that may hold any character. Out: lines that fit the terminal and hold no
control character. In a pipe, nothing is overwritten or coloured. Each display of progress is made of
`LiveLines`.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Final, Literal, Self, TextIO

Style = Literal["bold", "dim", "red", "yellow"]

_GAP: Final = "  "
_MAX_CELL_CHARS: Final = 400  # a name from a file can have 64 kB, and all cells of its column are padded
_MIN_CELL_CHARS: Final = 8  # of a column of text; a table whose columns would be narrower is a list
_PIPE_COLUMNS: Final = 120  # width of text that is not written to a terminal

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_STYLES: Final[dict[Style, str]] = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "red": "\x1b[1;31m",
    "yellow": "\x1b[33m",
}
_PLAIN: Final = "\x1b[0m"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"


class LiveLines:
    """Lines at the bottom of a terminal that are overwritten, and lines above them that stay.

    In a pipe, and on a terminal that knows no escape codes (`TERM=dumb`), only the lines that stay are
    written. A stream that can no longer be written to ends the display, not the program. The cursor is hidden
    only while lines are written, so that it is visible however the program ends.

    Args:
        stream: The stream to write to; stderr by default.
        clock: Returns the time in seconds.
        size: Returns the size of the terminal; by default of the terminal behind `stream`.
        silent_seconds: Time before the first drawing.
        seconds_between: Least time between two drawings.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        size: Callable[[], os.terminal_size] | None = None,
        silent_seconds: float = 0.0,
        seconds_between: float = 0.1,
    ) -> None:
        self._stream: TextIO = stream or sys.stderr or io.StringIO()  # without stderr, nothing is shown
        self._clock = clock
        self._size = size or (lambda: terminal_size(self._stream))
        self._seconds_between = seconds_between
        self._next = clock() + silent_seconds
        self._encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._num_lines = 0
        self.is_live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self.is_broken = False

    @property
    def width(self) -> int:
        """Number of columns that a line can use; the last one of the terminal stays empty."""
        return max(1, self._size().columns - 1)

    def is_due(self) -> bool:
        """Whether the lines are shown at all, and enough time has passed to draw them again."""
        if not self.is_live or (now := self._clock()) < self._next:
            return False
        self._next = now + self._seconds_between
        return True

    def draw(self, lines: Sequence[str], *, bold: int | None = None) -> None:
        """Overwrite the lines that were drawn before; those that do not fit the terminal are cut."""
        if not self.is_live:
            return
        columns, rows = self._size()
        width = max(1, columns - 1)
        shown = [self.clean(shorten(escape(line), width)) for line in lines[: max(1, rows - 1)]]
        if bold is not None and bold < len(shown):
            shown[bold] = paint(shown[bold], "bold", self._stream)
        text = self._to_top() + "\n".join(f"{_ERASE_LINE}{line}" for line in shown)
        if len(shown) < self._num_lines:
            text += _ERASE_BELOW
        if len(shown) > 1:
            text = f"{_HIDE_CURSOR}{text}{_SHOW_CURSOR}"
        self._num_lines = len(shown)
        self._write(text)

    def print(self, line: str) -> None:
        """Write a line that stays, above the next drawing."""
        self.clear()
        self._write(f"{self.clean(line)}\n")

    def clear(self) -> None:
        """Erase the lines that were drawn."""
        if self._num_lines:
            self._write(self._to_top() + (_ERASE_LINE if self._num_lines == 1 else _ERASE_BELOW))
            self._num_lines = 0

    def clean(self, text: str) -> str:
        """Escape unprintable characters, and replace characters that the encoding of the stream lacks."""
        return escape(text).encode(self._encoding, "replace").decode(self._encoding)

    def bar(self, share: float, width: int) -> str:
        """Return a bar of `width` characters, filled up to `share`."""
        full, empty = ("█", "░") if self._encoding.lower().startswith("utf") else ("#", ".")
        filled = round(width * min(1.0, share))
        return full * filled + empty * (width - filled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def _to_top(self) -> str:
        return f"\r\x1b[{self._num_lines - 1}A" if self._num_lines > 1 else "\r"

    def _write(self, text: str) -> None:
        if self.is_broken:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone; the work continues without a display
            self.is_broken = True
            self.is_live = False


def terminal_size(stream: TextIO) -> os.terminal_size:
    """Return the size of the terminal behind a stream, which need not be the terminal of stdout."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return shutil.get_terminal_size()
    return size if size.columns > 0 and size.lines > 0 else shutil.get_terminal_size()


def terminal_width() -> int:
    """Return the number of columns for tables on stdout."""
    return shutil.get_terminal_size((_PIPE_COLUMNS, 24)).columns


def format_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    right: Collection[str] = (),
    emphasize: Callable[[str], str] = str,
) -> list[str]:
    """Return a table as lines: the header, a rule, the rows.

    Columns of text are cut to fit, the widest ones first; numbers are not. If the columns would be too narrow
    to read, the table is a list instead: one line per cell, with the name of its column.

    `rows`: the cells; they hold no newline and no control character. `width`: maximum width of the lines; by
    default the width of the terminal. `right`: names of the columns that are aligned to the right, which hold
    numbers. `emphasize`: returns the names of the columns as they are written, with escape codes.
    """
    limit = terminal_width() if width is None else width
    cut = [[shorten(cell, _MAX_CELL_CHARS) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(header, *cut, strict=True)]
    aligned = [name in right for name in header]
    fitted = _fit_columns(widths, aligned, limit - len(_GAP) * (len(widths) - 1))
    if fitted is None:
        return _format_list(header, cut, limit, emphasize)
    lines = []
    for row in (header, *cut):
        padded = [
            pad(shorten(text, size), size, right=is_right)
            for text, size, is_right in zip(row, fitted, aligned, strict=True)
        ]
        lines.append(_GAP.join(padded).rstrip())
    return [emphasize(lines[0]), _GAP.join(map(rule, fitted)), *lines[1:]]


def _fit_columns(widths: Sequence[int], fixed: Sequence[bool], room: int) -> list[int] | None:
    """Return the widths of columns that fit into some room, or None if they would be too narrow."""
    flexible = [width for width, is_fixed in zip(widths, fixed, strict=True) if not is_fixed]
    room -= sum(widths) - sum(flexible)
    most = max(flexible, default=0)
    while sum(min(width, most) for width in flexible) > room:
        most -= 1
        if most < _MIN_CELL_CHARS:
            return None
    left = room - sum(min(width, most) for width in flexible)
    fitted = []
    for width, is_fixed in zip(widths, fixed, strict=True):
        takes_more = not is_fixed and width > most and left > 0
        left -= takes_more
        fitted.append(width if is_fixed else min(width, most + takes_more))
    return fitted


def _format_list(
    header: Sequence[str], rows: Sequence[Sequence[str]], limit: int, emphasize: Callable[[str], str]
) -> list[str]:
    """Return the cells of a table one below the other, with the names of their columns."""
    label = min(max(map(display_width, header)), max(1, limit // 2))
    room = max(1, limit - label - len(_GAP))
    lines = []
    for number, row in enumerate(rows):
        lines += [rule(max(1, min(limit, label + len(_GAP) + _MIN_CELL_CHARS)))] * (number > 0)
        lines += [
            f"{emphasize(pad(shorten(name, label), label))}{_GAP}{shorten(cell, room)}"
            for name, cell in zip(header, row, strict=True)
            if cell
        ]
    return lines


def escape(text: str) -> str:
    r"""Return a text with control characters, newlines and lone surrogates written as escapes.

    Example:
        >>> print(escape("a\x1b[31m"))
        a\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in text
    )


def rule(width: int) -> str:
    """Return a horizontal line of a character that stdout can show."""
    return ("─" if supports_unicode(sys.stdout) else "-") * width


def supports_styles(stream: TextIO | None) -> bool:
    """Whether text on a stream may have colours: on a terminal that knows them, unless the user objects.

    `NO_COLOR`, with any value, switches them off; `FORCE_COLOR` or `CLICOLOR_FORCE` switches them on in a
    pipe, too.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Style, stream: TextIO | None) -> str:
    """Return a text with the escape codes of a style, if the stream may have them."""
    return f"{_STYLES[style]}{text}{_PLAIN}" if supports_styles(stream) else text


def supports_unicode(stream: TextIO) -> bool:
    """Whether a stream can show the characters that bars and rules are drawn with."""
    return (getattr(stream, "encoding", None) or "").lower().startswith("utf")


def shorten(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis at the cut."""
    if display_width(text) <= width:
        return text
    if text.isascii():
        return text[: max(0, width - 1)] + "…"
    kept, used = [], 1
    for char in text:
        used += _char_width(char)
        if used > width:
            break
        kept.append(char)
    return "".join(kept) + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill a text with spaces up to a width; with `right`, the text is at the right end."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):  # accents, and signs that choose the form of an emoji
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
