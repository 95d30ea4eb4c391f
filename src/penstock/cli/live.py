"""What a loader does at the moment, on a terminal: a few lines that are written over, and wiped at the end.

In: looks at the loader. Out: rates, a bar a stage, the batches that are ready, on stderr. Nothing in a pipe.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, TextIO

from penstock.batch.stats import STAGES, LoaderStats
from penstock.cli.wording import complain, escape, write_size
from penstock.jobs.bench.bench import Look
from penstock.jobs.bench.report import subtract
from penstock.jobs.table import shorten

_SECONDS_BETWEEN: Final = 0.25
_NUM_RECENT: Final = 5  # looks that "now" is taken over: a second
_MOST_BAR_CHARS: Final = 40
_MOST_READY: Final = 32  # batches that a loader makes ahead at most
_LABEL_CHARS: Final = 11

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_WIPE_LINE, _WIPE_BELOW = "\x1b[K", "\x1b[J"


class Signs(NamedTuple):
    """What bars are drawn with.

    Attributes:
        full: What is done.
        empty: What is not.
    """

    full: str
    empty: str


class LiveView:
    """Shows what a loader does, four times a second, from a thread of its own.

    The cursor is hidden only while lines are written, so that it is there however the program ends or stops.
    Lines of the log are held until the view is gone.

    Args:
        is_wanted: Whether to show anything at all.
        stream: Where; stderr, if not given.
        clock: Tells the time in seconds.
        size: Tells columns and lines of the terminal.
    """

    def __init__(
        self,
        is_wanted: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        size: Callable[[], os.terminal_size] | None = None,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._size = size or (lambda: _find_size(self._stream))
        self.is_shown = is_wanted and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        is_utf = (getattr(self._stream, "encoding", None) or "utf").lower().startswith("utf")
        self._signs = Signs("█", "░") if is_utf else Signs("#", ".")
        self._num_lines = 0
        self._recent: deque[tuple[float, Look]] = deque(maxlen=_NUM_RECENT)
        self._is_ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._held = _HeldLog()

    def say(self, text: str) -> None:
        """Show a line of text instead."""
        if self.is_shown:
            self._write([text])

    def watch(self, title: str, look: Callable[[], Look]) -> None:
        """Begin to show what `look` returns, under a title; it is called from another thread."""
        if self.is_shown:
            self._recent.append((self._clock(), look()))
            self._thread = threading.Thread(target=self._redraw, args=(title, look), daemon=True)
            self._thread.start()

    def draw(self, title: str, look: Look) -> None:
        """Show what a loader does now."""
        self._recent.append((self._clock(), look))
        (then, before), (now, _) = self._recent[0], self._recent[-1]
        lately = subtract(look.stats, before.stats)
        seconds = (now - then) or 1.0
        columns = self._size().columns - _LABEL_CHARS - len(" 100%") - 1
        bars = _draw_bars(lately, seconds, self._signs, max(1, min(_MOST_BAR_CHARS, columns)))
        lines = [
            f"{title}: epoch {look.epoch + 1}, batch {look.step:,} of {look.num_steps:,}",
            _write_rate("now", lately.records / seconds, lately.bytes_read / seconds),
            _write_rate("mean", look.stats.records_per_second, 1e6 * look.stats.megabytes_per_second),
            *bars,
            _write_ready(look.stats.num_ready, self._signs),
        ]
        spent = _spent(lately)
        self._write(lines, 3 + spent.index(max(spent)) if any(spent) else None)

    def _redraw(self, title: str, look: Callable[[], Look]) -> None:
        while not self._is_ended.wait(_SECONDS_BETWEEN):
            try:
                self.draw(title, look())
            except (OSError, ValueError):  # the terminal is gone: what is measured is still wanted
                return

    def _write(self, lines: list[str], bold: int | None = None) -> None:
        columns, rows = self._size()
        cut = [shorten(escape(line), max(1, columns - 1)) for line in lines[: max(1, rows - 1)]]
        if bold is not None and bold < len(cut):
            cut[bold] = f"{_BOLD}{cut[bold]}{_PLAIN}"
        text = "".join(f"{line}{_WIPE_LINE}\n" for line in cut)
        self._stream.write(f"{_HIDE}{self._go_up()}{text}{_WIPE_BELOW}{_SHOW}")
        self._stream.flush()
        self._num_lines = len(cut)

    def _go_up(self) -> str:
        return f"\r\x1b[{self._num_lines}A" if self._num_lines else "\r"

    def __enter__(self) -> LiveView:
        if self.is_shown:
            logging.getLogger("penstock").addHandler(self._held)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ended.set()
        if self._thread is not None:
            self._thread.join()
        if not self.is_shown:
            return
        logging.getLogger("penstock").removeHandler(self._held)
        if self._num_lines:
            self._stream.write(f"{self._go_up()}{_WIPE_BELOW}{_SHOW}")
            self._stream.flush()
        for line in self._held.lines:
            complain(line)


class _HeldLog(logging.Handler):
    """Keeps what is logged, to be shown later."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record.getMessage())


def _write_rate(label: str, records: float, num_bytes: float) -> str:
    return f"{label:{_LABEL_CHARS}}{records:,.0f} records/s, {write_size(num_bytes)}/s"


def _spent(stats: LoaderStats) -> tuple[float, float, float]:
    return stats.read_seconds, stats.decode_seconds, stats.transform_seconds


def _draw_bars(lately: LoaderStats, seconds: float, signs: Signs, width: int) -> list[str]:
    """Draw which part of the threads' time went to each stage, and of the consumer's to waiting."""
    threads = max(1, lately.num_threads)
    shares = {name: each / threads for name, each in zip(STAGES, _spent(lately), strict=True)}
    shares["waiting"] = lately.wait_seconds
    return [_draw_bar(name, min(1.0, each / seconds), signs, width) for name, each in shares.items()]


def _draw_bar(name: str, share: float, signs: Signs, width: int) -> str:
    filled = round(share * width)
    return f"{name:{_LABEL_CHARS}}{signs.full * filled}{signs.empty * (width - filled)} {share:4.0%}"


def _write_ready(num_ready: int, signs: Signs) -> str:
    bar = signs.full * min(num_ready, _MOST_READY) + " " * bool(num_ready)
    return f"{'ready':{_LABEL_CHARS}}{bar}{num_ready} {'batch' if num_ready == 1 else 'batches'}"


def _find_size(stream: TextIO) -> os.terminal_size:
    """Return the size of the terminal that is written to, which need not be that of stdout."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return shutil.get_terminal_size()
    return size if size.columns > 0 and size.lines > 0 else shutil.get_terminal_size()
