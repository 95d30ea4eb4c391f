"""What commands print: messages, sizes, counts, values, and a progress bar.

In: values of any kind, from any file. Out: text with no character that moves the cursor of a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Final, Self, TextIO

from penstock.foundation.terminal import LiveLines, escape, format_table
from penstock.foundation.wording import count, format_size

_SILENT_SECONDS: Final = 2.0  # shorter jobs need no progress bar
_BAR_CHARS: Final = 24
_MAX_ITEMS: Final = 16  # of a list: more than a line shows
_MAX_CHARS: Final = 400  # of a text: more than a line shows
_IMAGE_FORMATS: Final = {
    b"\xff\xd8\xff": "jpeg",
    b"\x89PNG\r\n\x1a\n": "png",
    b"GIF8": "gif",
    b"BM": "bmp",
    b"RIFF": "webp",
}


def print_message(message: str) -> None:
    """Print an error, a warning or a note as one line on stderr."""
    print(f"penstock: {escape(message)}", file=sys.stderr)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> None:
    """Print a table on stdout; `right` names the columns that are aligned to the right."""
    print("\n".join(format_table(header, rows, right=right)))


class ProgressBar:
    """Shows the progress of a job on stderr, if it is a terminal and the job takes longer than two seconds.

    `with` erases the line when the job ends, even by an error.

    Args:
        label: Name of the job; the line begins with it.
        stream: The stream to write to; stderr by default.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label = label
        self._clock = clock
        self._start = clock()
        self._lines = LiveLines(stream, clock=clock, silent_seconds=_SILENT_SECONDS)

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """Show how many bytes are done."""
        self.show_line(lambda seconds: self._format(done_bytes, total_bytes, seconds))

    def show_line(self, make: Callable[[float], str]) -> None:
        """Show the line that `make` returns for the seconds since the start, if enough time has passed."""
        if self._lines.is_due():
            self._lines.draw([make(self._clock() - self._start)])

    def _format(self, done: int, total: int, seconds: float) -> str:
        share = min(1.0, done / total) if total else 1.0
        bar = self._lines.bar(share, _BAR_CHARS)
        rate = done / seconds
        left = format_duration((total - done) / rate) if rate else "?"
        sizes = f"{format_size(done)} of {format_size(total)}"
        return f"{self._label} {bar} {share:4.0%}  {sizes}  {format_size(rate)}/s  {left} left"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.clear()


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun.

    Example:
        >>> format_count(1234, "record")
        '1,234 records'
    """
    return count(number, noun).replace(str(number), f"{number:,}", 1)


def format_duration(seconds: float) -> str:
    """Return a duration as text.

    Example:
        >>> format_duration(75)
        '1 min 15 s'
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def format_value(value: Any) -> str:
    """Return a value of a sample in one line; byte strings as format and size, long lists cut."""
    if isinstance(value, bytes):
        return f"<{_name_bytes(value)} {format_size(len(value))}>"
    if isinstance(value, str):
        # Cut before it is escaped: a text may be of any length.
        return escape(value[:_MAX_CHARS]) + "…" * (len(value) > _MAX_CHARS) or "''"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) or getattr(value, "ndim", False):
        return _format_items((format_value(item) for item in islice(value, _MAX_ITEMS)), len(value))
    # A scalar of NumPy, whose import the help of a command would have to wait for.
    return format_value(value.item()) if hasattr(value, "item") else str(value)


def _format_items(items: Iterable[str], num_items: int) -> str:
    more = ["…"] if num_items > _MAX_ITEMS else []
    return f"[{', '.join([*items, *more])}]"


def _name_bytes(value: bytes) -> str:
    return next((name for magic, name in _IMAGE_FORMATS.items() if value.startswith(magic)), "bytes")
