"""What commands print: messages, tables, sizes, counts, values, and a progress bar.

In: values of any kind, from any file. Out: text with no character that moves the cursor of a terminal. The
result of a command goes to stdout; progress, notes, warnings and errors go to stderr.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, Self, TextIO

from penstock.foundation.terminal import (
    LiveLines,
    Style,
    escape,
    format_table,
    paint,
    supports_unicode,
    terminal_width,
)
from penstock.foundation.wording import count, format_size
from penstock.settings.advice import to_flags

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


_KINDS: Final[dict[str, Style]] = {"error: ": "red", "warning: ": "yellow"}
_NO_LIMIT: Final = sys.maxsize

Verbosity = Literal["quiet", "normal", "verbose"]


@dataclass
class _Output:
    """How much the command of this process prints; all of its threads print the same."""

    verbosity: Verbosity = "normal"


_OUTPUT: Final = _Output()


@contextmanager
def printing(verbosity: Verbosity) -> Iterator[None]:
    """Context in which commands print less or more than usual."""
    before, _OUTPUT.verbosity = _OUTPUT.verbosity, verbosity
    try:
        yield
    finally:
        _OUTPUT.verbosity = before


def is_quiet() -> bool:
    """Whether only results, warnings and errors are printed."""
    return _OUTPUT.verbosity == "quiet"


def is_verbose() -> bool:
    """Whether details are printed."""
    return _OUTPUT.verbosity == "verbose"


def print_message(message: str) -> None:
    """Print an error, a warning or other text as one line on stderr; it names flags for arguments."""
    text = escape(to_flags(message))
    kind = next((kind for kind in _KINDS if text.startswith(kind)), "")
    if kind:
        text = f"{paint(kind.rstrip(), _KINDS[kind], sys.stderr)} {text.removeprefix(kind)}"
    if sys.stderr is not None:  # None if the shell has closed it; print would then write to stdout
        print(f"penstock: {text}", file=sys.stderr)


def print_warning(text: str) -> None:
    """Print a warning as one line on stderr, also with --quiet."""
    print_message(f"warning: {text}")


@contextmanager
def printing_log() -> Iterator[None]:
    """Context in which commands print the warnings of Penstock's log, if nothing else shows them."""
    before = logging.lastResort
    logging.lastResort = _LogPrinter(before)
    try:
        yield
    finally:
        logging.lastResort = before


class _LogPrinter(logging.Handler):
    """Prints warnings of Penstock's log; other logs stay with the handler that Python has for them."""

    def __init__(self, others: logging.Handler | None) -> None:
        super().__init__(logging.WARNING)
        self._others = others

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning."""
        if record.name.partition(".")[0] == "penstock":
            print_warning(record.getMessage())
        elif self._others is not None:
            self._others.handle(record)


def print_notes(notes: Iterable[str], cautions: Collection[str] = ()) -> None:
    """Print notes; those that are cautions as warnings."""
    for note in notes:
        (print_warning if note in cautions else print_note)(note)


def print_note(text: str) -> None:
    """Print a note as one line on stderr, but not with --quiet."""
    if not is_quiet():
        print_message(f"note: {text}")


def print_detail(text: str) -> None:
    """Print a line on stderr with --verbose alone."""
    if is_verbose() and sys.stderr is not None:
        print(paint(f"penstock: {escape(text)}", "dim", sys.stderr), file=sys.stderr)


def find_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version  # noqa: PLC0415 - a third of the time that --help takes

    return version("penstock")


def print_versions() -> None:
    """Print the versions and the working folder with --verbose."""
    print_detail(f"penstock {find_version()}, Python {sys.version.split()[0]}, in {os.getcwd()}")  # noqa: PTH109


def print_options(options: Mapping[str, object]) -> None:
    """Print options and their values with --verbose; those without a value are left out."""
    if is_verbose():
        given = {name: value for name, value in options.items() if value not in (None, [], (), {})}
        print_detail("options: " + ", ".join(f"{name}={value!r}" for name, value in given.items()))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> None:
    """Print a table on stdout; `right` names the columns that are aligned to the right."""
    print_lines(
        format_table(
            [_encode(name) for name in header],
            [[_encode(cell) for cell in row] for row in rows],
            width=output_width(),
            right=[_encode(name) for name in right],
            emphasize=lambda text: paint(text, "bold", sys.stdout),
        )
    )


def print_classes(found: Mapping[str, Sequence[Any]]) -> None:
    """Print the codes that models get for the classes of each target; an empty line follows each table."""
    from penstock.transform.class_codes import MAX_SHOWN, list_class_rows  # noqa: PLC0415 - not for helps

    for name, classes in found.items():
        rows = [(code, escape(label)) for code, label in list_class_rows(classes)]
        print_table(("code", f"class of {escape(name)}"), rows, right=("code",))
        if len(classes) > MAX_SHOWN:
            print(f"and {len(classes) - MAX_SHOWN:,} more classes")
        print()


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines of a table on stdout."""
    text = "\n".join(lines)
    print(text if supports_unicode(sys.stdout) else text.replace("…", "~"))


def output_width() -> int:
    """Return the width of the terminal; without one on stdout, there is no limit."""
    return terminal_width() if sys.stdout is not None and sys.stdout.isatty() else _NO_LIMIT


def _encode(text: str) -> str:
    """Return a text with what stdout lacks as escapes, which take more columns than the characters."""
    if text.isascii() or supports_unicode(sys.stdout):
        return text
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return text.replace("…", "~").encode(encoding, "backslashreplace").decode(encoding)


class ProgressBar:
    """Shows the progress of a job on stderr, if it is a terminal and the job takes longer than two seconds.

    The line begins with `label`, the name of the job. `with` erases it when the job ends, even by an error.
    """

    def __init__(
        self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label = label
        self._clock = clock
        self._start = clock()
        self._lines = LiveLines(stream, clock=clock, silent_seconds=_SILENT_SECONDS)
        self._lines.is_live = self._lines.is_live and not is_quiet()
        self._stages: dict[str, float] = {}

    def enter(self, stage: str) -> None:
        """Note that a stage of the job begins, or continues; --verbose prints the time of each."""
        self._stages.setdefault(stage, self._clock())

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """Show how many bytes are done."""
        self.show_line(lambda seconds: self._format(done_bytes, total_bytes, seconds))

    def show_stage(self, what: str, done: int, total: int) -> None:
        """Enter a stage, and show how much of it is done."""
        self.enter(what)
        self.show_line(lambda _: f"{what}: {done:,} of {total:,}")

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

    def __exit__(self, *_: object) -> None:
        self._lines.clear()
        if is_verbose() and self._stages:
            ends = [*list(self._stages.values())[1:], self._clock()]
            for (stage, begin), end in zip(self._stages.items(), ends, strict=True):
                print_detail(f"{self._label}: {stage}: {end - begin:.2f} s")


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
        name = next((name for magic, name in _IMAGE_FORMATS.items() if value.startswith(magic)), "bytes")
        return f"<{name} {format_size(len(value))}>"
    if isinstance(value, str):
        # Cut before it is escaped: a text may be of any length.
        return escape(value[:_MAX_CHARS]) + "…" * (len(value) > _MAX_CHARS) or "''"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) or getattr(value, "ndim", False):
        more = ["…"] if len(value) > _MAX_ITEMS else []
        return f"[{', '.join([*map(format_value, islice(value, _MAX_ITEMS)), *more])}]"
    if type(value).__name__ == "datetime64":
        return str(value).replace("T", " ").removesuffix(".000000")
    # A scalar of NumPy, whose import the help of a command would have to wait for.
    return format_value(value.item()) if hasattr(value, "item") else str(value)
