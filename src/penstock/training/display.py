"""The display of a training run: one line that is overwritten, and a table of epochs above it.

In: the progress that training reports. Out: text on stderr, or in an output of a notebook; in a pipe one
plain line per epoch.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TextIO, TypeAlias

from penstock.foundation.notebook import NotebookLines, is_notebook
from penstock.foundation.terminal import LiveLines, display_width, pad
from penstock.training.progress import SilentWatcher, TrainingProgress, Watcher

Verbosity: TypeAlias = Literal[0, 1, 2]

_log = logging.getLogger("penstock")

_MOST_BAR_CHARS: Final = 24
_FEWEST_BAR_CHARS: Final = 6  # a shorter bar shows nothing
_NUMBER_CHARS: Final = 8  # 1.23e-05
_RATE_CHARS: Final = 9  # 1,234,567
_GAP: Final = "  "
_VALIDATION: Final = "val_"
_BEST: Final = "best"


class TrainingDisplay:
    """Shows a run on a terminal in one line, at most ten times per second, and keeps one line per epoch.

    On a narrow terminal the less important parts are left out. A stream that can no longer be written to ends
    the display, not the run. The line is erased by `end()`, or by `with`, however the run ends.

    In a notebook, all lines are in one output that is updated.

    Args:
        stream: The stream to write to; by default stderr, or the output of a notebook.
        clock: Returns the time in seconds.
        size: Returns the size of the terminal; by default of the terminal behind `stream`.
        label: Name of the model, where several are trained; each line begins with it.
        keeps_epochs: Whether one line per epoch stays.
        is_live: Whether a line is overwritten, if the stream allows it; otherwise there is one plain line per
            epoch, as in a pipe.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        size: Callable[[], os.terminal_size] | None = None,
        label: str = "",
        keeps_epochs: bool = True,
        is_live: bool = True,
    ) -> None:
        if stream is None and is_notebook():
            self._lines: LiveLines = NotebookLines(clock=clock)
        else:
            self._lines = LiveLines(stream, clock=clock, size=size)
        self._lines.is_live = self._lines.is_live and is_live
        self._label = label
        self._keeps_epochs = keeps_epochs
        self._header = ""

    def columns(self, table: Sequence[str]) -> None:
        """Write a table of the columns of raw data, and an empty line."""
        for line in (*table, ""):
            self._lines.print(line)

    def note(self, text: str) -> None:
        """Write a line that stays."""
        self._lines.print(f"penstock: note: {text}")

    def step(self, progress: TrainingProgress) -> None:
        """Draw the line again, if enough time has passed."""
        if self._lines.is_due():
            self._lines.draw([_draw_line(self._clean(progress), self._label, self._lines)])

    def epoch(self, progress: TrainingProgress, *, is_best: bool) -> None:
        """Write the line of a finished epoch."""
        if not self._keeps_epochs:
            return
        progress = self._clean(progress)
        if not self._lines.is_live:
            self._lines.print(_format_epoch(progress, self._label, is_best))
            return
        columns = _choose_columns(progress, self._lines.width, is_best)
        header = _GAP.join(pad(each.name, each.width, right=True) for each in columns).rstrip()
        if header != self._header:
            self._lines.print(header)
            self._header = header
        self._lines.print(_GAP.join(pad(each.text, each.width, right=True) for each in columns).rstrip())

    def end(self, text: str) -> None:
        """Erase the line, and write how the run ended."""
        self._lines.clear()
        if text:
            self._lines.print(f"{self._label}: {text}" if self._label else text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.clear()

    def _clean(self, progress: TrainingProgress) -> TrainingProgress:
        """Return the progress with names as they are written, the losses before other metrics."""
        names = sorted(progress.logs, key=lambda name: (name.startswith(_VALIDATION), not _is_loss(name)))
        return replace(progress, logs={self._lines.clean(name): progress.logs[name] for name in names})


class _Column(NamedTuple):
    """A cell in the line of an epoch, and its header; on a narrow terminal high ranks are left out first."""

    name: str
    text: str
    width: int
    rank: int


def _choose_columns(progress: TrainingProgress, width: int, is_best: bool) -> list[_Column]:
    """Return the cells of an epoch that fit into a width, in order."""
    total = f"{progress.num_epochs}/{progress.num_epochs}"
    columns = [_Column("epoch", f"{progress.epoch + 1}/{progress.num_epochs}", max(5, len(total)), 0)]
    for name, value in progress.logs.items():
        is_validated = name.startswith(_VALIDATION)
        rank = 1 if _is_loss(name) else 4 - is_validated
        columns.append(_Column(name, _format_number(value), max(_NUMBER_CHARS, display_width(name)), rank))
    columns.append(_Column("records/s", f"{progress.records_per_second:,.0f}", _RATE_CHARS, 2))
    columns.append(_Column("waiting", _format_share(progress.waiting), len("waiting"), 2))
    columns.append(_Column("", _BEST if is_best else "", len(_BEST), 1))
    left = width + len(_GAP)
    kept = set()
    for number, each in sorted(enumerate(columns), key=lambda pair: (pair[1].rank, pair[0])):
        left -= each.width + len(_GAP)
        if left >= 0:
            kept.add(number)
    return [each for number, each in enumerate(columns) if number in kept]


def _draw_line(progress: TrainingProgress, label: str, lines: LiveLines) -> str:
    """Return the line of a run: the most important parts that fit, and a bar in the remaining space."""
    width = lines.width
    metrics = {name: each for name, each in progress.logs.items() if name != "loss"}
    left = (
        progress.seconds_left if progress.epoch or progress.step > 1 else None
    )  # the first step compiles the model
    num_epochs, num_steps = f"{progress.num_epochs}", f"{progress.num_steps:,}"
    ranked = [  # in the order of the line, with widths that do not change; high ranks are left out first
        (label, 1),
        (f"epoch {progress.epoch + 1:{len(num_epochs)}}/{num_epochs}", 0),
        (f"step {progress.step:{len(num_steps)},}/{num_steps}", 2),
        (f"loss {_format_number(progress.logs['loss'])}" if "loss" in progress.logs else "", 1),
        *((f"{name} {_format_number(metrics[name])}", 6 + index) for index, name in enumerate(metrics)),
        (f"{progress.records_per_second:7,.0f} records/s", 4),
        (f"waiting {_format_share(progress.waiting):>5}", 5),
        (f"{'?' if left is None else _format_time(left):>5} left", 3),
    ]
    for worst in sorted({rank for _, rank in ranked}, reverse=True):
        parts = [text for text, rank in ranked if text and rank <= worst]
        space = width - display_width(_GAP.join(parts)) - len(_GAP)
        if space >= _FEWEST_BAR_CHARS or worst == 0:
            break
    if space >= _FEWEST_BAR_CHARS:
        chars = min(space, _MOST_BAR_CHARS)
        parts.insert(1 + (label in parts[:1]), lines.bar(progress.step / max(1, progress.num_steps), chars))
    return _GAP.join(parts)[:width]


def _format_epoch(progress: TrainingProgress, label: str, is_best: bool) -> str:
    number = f"epoch {progress.epoch + 1}/{progress.num_epochs}"
    parts = [
        *(f"{name} {_format_number(value)}" for name, value in progress.logs.items()),
        f"{progress.records_per_second:,.0f} records/s",
        f"waiting {_format_share(progress.waiting)}",
        *([_BEST] if is_best else []),
    ]
    return f"{label}{': ' * bool(label)}{number}: {', '.join(parts)}"


def _is_loss(name: str) -> bool:
    return name.removeprefix(_VALIDATION) == "loss"


def _format_number(value: float) -> str:
    size = abs(value)
    if size < 1e-3 and value != 0:
        return f"{value:.2e}"
    if size < 100:
        return f"{value:.4f}"
    return f"{value:.1f}" if size < 1e5 else f"{value:.3g}"


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def showing_progress(watcher: Watcher | None, verbose: Verbosity | None) -> Iterator[Watcher]:
    """Return the given watcher; without one, a display by `verbose`, see `penstock.train`."""
    if watcher is not None:
        yield watcher
    elif verbose == 0:
        with _quiet_log():
            yield SilentWatcher()
    else:
        with TrainingDisplay(is_live=verbose != 2) as display:
            yield display


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Keep log messages off stderr; handlers that the program has configured still get them."""
    if _log.hasHandlers():
        yield
        return
    # Without any handler, Python itself writes warnings to stderr.
    handler = logging.NullHandler()
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)
