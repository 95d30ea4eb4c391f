"""A progress bar on a terminal, and nothing in a pipe.

In: bytes done and bytes in all. Out: one line on stderr that is written over, and wiped at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from penstock.cli.wording import write_size
from penstock.jobs.table import shorten, terminal_width

_SILENT_SECONDS = 2.0  # what is done by then needs no bar
_SECONDS_BETWEEN = 0.1
_BAR_CHARS = 24


class ProgressBar:
    """Shows how far a job has come; `with` wipes it when the job ends, however it ends."""

    def __init__(
        self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._begun = clock()
        self._next = self._begun + _SILENT_SECONDS
        self._is_shown = False
        self._is_terminal = self._stream.isatty()

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """Take notice of how far it has come; this is the `Progress` of jobs."""
        self.show_line(lambda seconds: self._line(done_bytes, total_bytes, seconds))

    def show_line(self, make: Callable[[float], str]) -> None:
        """Show the line that `make` returns for the seconds since the beginning, if it is time for one."""
        if not self._is_terminal or (now := self._clock()) < self._next:
            return
        self._next = now + _SECONDS_BETWEEN
        line = shorten(make(now - self._begun), terminal_width() - 1)
        self._stream.write(f"\r{line}\x1b[K")
        self._stream.flush()
        self._is_shown = True

    def _line(self, done: int, total: int, seconds: float) -> str:
        share = min(1.0, done / total) if total else 1.0
        filled = round(share * _BAR_CHARS)
        bar = "█" * filled + "░" * (_BAR_CHARS - filled)
        rate = done / seconds
        left = write_seconds((total - done) / rate) if rate else "?"
        sizes = f"{write_size(done)} of {write_size(total)}"
        return f"{self._label} {bar} {share:4.0%}  {sizes}  {write_size(rate)}/s  {left} left"

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def write_seconds(seconds: float) -> str:
    """Write a time as a person would say it."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
