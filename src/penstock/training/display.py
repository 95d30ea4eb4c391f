"""How a run looks while it trains: a line that is written over, and a table of epochs that grows above it.

In: what training tells its watcher. Out: text on stderr; in a pipe a plain line an epoch, no escape codes.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, NamedTuple, TextIO

from penstock.training.progress import Progress

_SECONDS_BETWEEN: Final = 0.1
_MOST_BAR_CHARS: Final = 24
_FEWEST_BAR_CHARS: Final = 6  # a shorter one tells nothing
_NUMBER_CHARS: Final = 8  # 1.23e-05
_RATE_CHARS: Final = 9  # 1,234,567
_GAP: Final = "  "
_VALIDATION: Final = "val_"
_BEST: Final = "best"
_WIPE: Final = "\r\x1b[K"


class TrainingDisplay:
    """Shows a run on a terminal in one line, at most ten times a second, and keeps a line of each epoch.

    Where a terminal is narrow, what matters less gives way. A stream that can no longer be written to ends
    the display, not the run. The line is wiped by `end()`, or by `with`, however the run ends.

    Args:
        stream: Where; stderr, if not given.
        clock: Tells the time in seconds.
        size: Tells columns and lines of the terminal.
        label: What is trained, where several models are; the line begins with it.
        keeps_epochs: Whether a line of each epoch stays.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        size: Callable[[], os.terminal_size] | None = None,
        label: str = "",
        keeps_epochs: bool = True,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._size = size or (lambda: _find_size(self._stream))
        self._label = label
        self._keeps_epochs = keeps_epochs
        self._is_live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._signs = ("█", "░") if self._encoding.lower().startswith("utf") else ("#", ".")
        self._next = -math.inf
        self._is_drawn = False
        self._header = ""

    def columns(self, table: Sequence[str]) -> None:
        """Write a table of the columns of raw data, and an empty line."""
        for line in (*table, ""):
            self._write(line)

    def note(self, text: str) -> None:
        """Write a line that stays."""
        self._write(f"penstock: note: {text}")

    def step(self, look: Progress) -> None:
        """Draw the line anew, if it is time to."""
        if not self._is_live or (now := self._clock()) < self._next:
            return
        self._next = now + _SECONDS_BETWEEN
        line = _draw_line(self._clean(look), self._label, self._signs, self._size().columns - 1)
        self._put(f"{_WIPE}{self._fit(line)}")
        self._is_drawn = True

    def epoch(self, look: Progress, *, is_best: bool) -> None:
        """Write the line of an epoch that is over."""
        if not self._keeps_epochs:
            return
        look = self._clean(look)
        if not self._is_live:
            self._write(_write_epoch(look, self._label, is_best))
            return
        columns = _choose_columns(look, self._size().columns - 1, is_best)
        header = _GAP.join(_pad(each.name, each.width) for each in columns).rstrip()
        if header != self._header:
            self._write(header)
            self._header = header
        self._write(_GAP.join(_pad(each.text, each.width) for each in columns).rstrip())

    def end(self, text: str) -> None:
        """Wipe the line, and write how the run ended."""
        self._wipe()
        if text:
            self._write(f"{self._label}: {text}" if self._label else text)

    def __enter__(self) -> TrainingDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wipe()

    def _wipe(self) -> None:
        if self._is_drawn:
            self._put(_WIPE)
            self._is_drawn = False

    def _write(self, line: str) -> None:
        self._wipe()
        self._put(f"{self._fit(line)}\n")

    def _clean(self, look: Progress) -> Progress:
        """Return a look whose names are as wide as they will be written, the losses before other figures."""
        names = sorted(look.logs, key=lambda name: (name.startswith(_VALIDATION), not _is_loss(name)))
        return replace(look, logs={self._fit(name): look.logs[name] for name in names})

    def _fit(self, line: str) -> str:
        """Escape what would move the terminal, and replace what the stream cannot write."""
        if not line.isprintable():
            line = "".join(char if char.isprintable() else _escape(char) for char in line)
        return line.encode(self._encoding, "replace").decode(self._encoding)

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone: what is trained is still wanted
            self._is_live = self._is_drawn = self._keeps_epochs = False


class _Column(NamedTuple):
    """A cell of an epoch's line, under its name; where there is little room, a high rank gives way."""

    name: str
    text: str
    width: int
    rank: int


def _choose_columns(look: Progress, width: int, is_best: bool) -> list[_Column]:
    """Return the cells of an epoch that fit into a width, in their order."""
    total = f"{look.num_epochs}/{look.num_epochs}"
    columns = [_Column("epoch", f"{look.epoch + 1}/{look.num_epochs}", max(5, len(total)), 0)]
    for name, value in look.logs.items():
        is_validated = name.startswith(_VALIDATION)
        rank = 1 if _is_loss(name) else 4 - is_validated
        columns.append(_Column(name, _write_number(value), max(_NUMBER_CHARS, _measure(name)), rank))
    columns.append(_Column("records/s", f"{look.records_per_second:,.0f}", _RATE_CHARS, 2))
    columns.append(_Column("waiting", _write_share(look.waiting), len("waiting"), 2))
    columns.append(_Column("", _BEST if is_best else "", len(_BEST), 1))
    left = width + len(_GAP)
    kept = set()
    for number, each in sorted(enumerate(columns), key=lambda pair: (pair[1].rank, pair[0])):
        left -= each.width + len(_GAP)
        if left >= 0:
            kept.add(number)
    return [each for number, each in enumerate(columns) if number in kept]


def _draw_line(look: Progress, label: str, signs: tuple[str, str], width: int) -> str:
    """Return the line of a run, of what matters most as much as fits, and a bar in the room that is left."""
    metrics = {name: each for name, each in look.logs.items() if name != "loss"}
    left = look.seconds_left if look.epoch or look.step > 1 else None  # the first step compiles the model
    num_epochs, num_steps = f"{look.num_epochs}", f"{look.num_steps:,}"
    ranked = [  # by place in the line, of widths that do not change; the rank says what goes first
        (label, 1),
        (f"epoch {look.epoch + 1:{len(num_epochs)}}/{num_epochs}", 0),
        (f"step {look.step:{len(num_steps)},}/{num_steps}", 2),
        (f"loss {_write_number(look.logs['loss'])}" if "loss" in look.logs else "", 1),
        *((f"{name} {_write_number(metrics[name])}", 6 + place) for place, name in enumerate(metrics)),
        (f"{look.records_per_second:7,.0f} records/s", 4),
        (f"waiting {_write_share(look.waiting):>5}", 5),
        (f"{'?' if left is None else _write_time(left):>5} left", 3),
    ]
    for worst in sorted({rank for _, rank in ranked}, reverse=True):
        parts = [text for text, rank in ranked if text and rank <= worst]
        room = width - _measure(_GAP.join(parts)) - len(_GAP)
        if room >= _FEWEST_BAR_CHARS or worst == 0:
            break
    if room >= _FEWEST_BAR_CHARS:
        chars = min(room, _MOST_BAR_CHARS)
        filled = round(chars * min(1.0, look.step / max(1, look.num_steps)))
        parts.insert(1 + (label in parts[:1]), signs[0] * filled + signs[1] * (chars - filled))
    return _GAP.join(parts)[: max(0, width)]


def _write_epoch(look: Progress, label: str, is_best: bool) -> str:
    place = f"epoch {look.epoch + 1}/{look.num_epochs}"
    parts = [
        *(f"{name} {_write_number(value)}" for name, value in look.logs.items()),
        f"{look.records_per_second:,.0f} records/s",
        f"waiting {_write_share(look.waiting)}",
        *([_BEST] if is_best else []),
    ]
    return f"{label}{': ' * bool(label)}{place}: {', '.join(parts)}"


def _is_loss(name: str) -> bool:
    return name.removeprefix(_VALIDATION) == "loss"


def _write_number(value: float) -> str:
    size = abs(value)
    if size < 1e-3 and value != 0:
        return f"{value:.2e}"
    if size < 100:
        return f"{value:.4f}"
    return f"{value:.1f}" if size < 1e5 else f"{value:.3g}"


def _write_share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _write_time(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def _measure(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _pad(text: str, width: int) -> str:
    return " " * (width - _measure(text)) + text


def _find_size(stream: TextIO) -> os.terminal_size:
    """Return the size of the terminal that is written to, which need not be that of stdout."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return shutil.get_terminal_size()
    return size if size.columns > 0 else shutil.get_terminal_size()
