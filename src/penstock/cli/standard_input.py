"""Standard input as data, for `-` among the paths of a command.

In: a `Call`. Out: the call with the path of a temporary file, which is named by the format of its content:
data is read more than once, and formats are recognized by their names.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.errors import OptionError
from penstock.settings.command_line import Call
from penstock.source.recognition import PIPED_BYTES, STANDARD_INPUT, find_suffix
from penstock.source.table_copy import SPOOL_PREFIX, is_spooled, naming_originals
from penstock.storage.atomic import write_failure


@contextmanager
def reading_standard_input(call: Call) -> Iterator[Call]:
    """Yield the call with a file for `-`; errors name it as `-`."""
    paths = call.arguments
    data = _find_data(call)
    if not call.command.reads_stdin or STANDARD_INPUT not in paths[data]:
        yield call
        return
    if paths[data].count(STANDARD_INPUT) > 1:
        raise OptionError(STANDARD_INPUT, expected="standard input once", got="twice")
    if sys.stdin is None or sys.stdin.isatty():
        raise OptionError(
            STANDARD_INPUT,
            expected="data on standard input",
            got="a terminal",
            advice=f"Pass it with a pipe: cat pets.csv | penstock {call.command.name} - …, or name a file.",
        )
    with TemporaryDirectory(prefix=SPOOL_PREFIX) as folder:
        file = _spool(Path(folder))
        given = tuple(str(file) if path == STANDARD_INPUT else path for path in paths[data])
        with naming_originals({str(file): STANDARD_INPUT}):
            changed = call.replace(arguments=(*paths[: data.start], *given, *paths[data.stop :]))
            yield changed
        command = changed.next_command or ""
        needs_input = folder in command or STANDARD_INPUT in command.split()  # which is read already
        call.next_command = None if needs_input else changed.next_command


def _find_data(call: Call) -> slice:
    """Return which arguments are data: neither the run, nor the output of a conversion."""
    count = len(call.arguments)
    is_out = call.command.name == "convert" and count > 1 and "--plan" not in call.words
    return slice(min(count, int("RUN" in call.command.arguments)), count - int(is_out))


def name_original(path: str) -> str:
    """Return `-` for the file of standard input, and other paths as they are."""
    return STANDARD_INPUT if is_spooled(Path(path)) else path


def _spool(folder: Path) -> Path:
    first = sys.stdin.buffer.read(PIPED_BYTES)
    if not first:
        raise OptionError(STANDARD_INPUT, expected="data on standard input", got="nothing")
    file = folder / f"stdin{find_suffix(first)}"
    try:
        with file.open("wb") as out:
            out.write(first)
            shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)
    except OSError as error:
        raise write_failure(file, error) from error
    return file
