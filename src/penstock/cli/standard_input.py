"""Standard input as data, for `-` among the paths of a command.

In: the parsed arguments of a command. Out: the same with the path of a temporary file, which is named by the
format of its content: data is read more than once, and formats are recognized by their names.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from penstock.errors import OptionError
from penstock.source.table_copy import SPOOL_PREFIX, is_spooled, naming_originals
from penstock.storage.atomic import write_failure
from penstock.storage.compression import begins_with_record, inflate_first

STANDARD_INPUT: Final = "-"
_COMMANDS: Final = ("convert", "inspect", "train", "predict", "evaluate")
_FIRST_BYTES: Final = 64 << 10
_MAGICS: Final = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",  # the stream format
    b"\xd0\xcf\x11\xe0": ".xls",
    b"PK": ".zip",
}
_OUTER: Final = {b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_GZIP: Final = b"\x1f\x8b"


@contextmanager
def reading_standard_input(args: argparse.Namespace) -> Iterator[argparse.Namespace]:
    """Yield the arguments with a file for `-`; errors name it as `-`.

    Raises:
        OptionError: Standard input is a terminal or empty, or is named twice.
        WriteError: The disk is full, or fails.
    """
    paths: list[str] = list(getattr(args, "paths", None) or ())
    is_out = args.command == "convert" and len(paths) > 1 and not getattr(args, "plan", False)
    data = paths[:-1] if is_out else paths
    if args.command not in _COMMANDS or STANDARD_INPUT not in data:
        yield args
        return
    if data.count(STANDARD_INPUT) > 1:
        raise OptionError(STANDARD_INPUT, expected="standard input once", got="twice")
    if sys.stdin is None or sys.stdin.isatty():
        raise OptionError(
            STANDARD_INPUT,
            expected="data on standard input",
            got="a terminal",
            advice=f"Pass it with a pipe: cat pets.csv | penstock {args.command} - …, or name a file.",
        )
    with TemporaryDirectory(prefix=SPOOL_PREFIX) as folder:
        file = _spool(Path(folder))
        given = [str(file) if path == STANDARD_INPUT else path for path in data]
        with naming_originals({str(file): STANDARD_INPUT}):
            changed = argparse.Namespace(**{**vars(args), "paths": [*given, *paths[len(data) :]]})
            yield changed
        args.next_command = _find_repeatable(getattr(changed, "next_command", None), folder)


def _find_repeatable(command: str | None, folder: str) -> str | None:
    """Return the command to run next, unless it needs standard input, which is read already."""
    if command is None or folder in command or STANDARD_INPUT in command.split():
        return None
    return command


def name_original(path: str) -> str:
    """Return `-` for the file of standard input, and other paths as they are."""
    return STANDARD_INPUT if is_spooled(Path(path)) else path


def _spool(folder: Path) -> Path:
    first = sys.stdin.buffer.read(_FIRST_BYTES)
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


def find_suffix(first: bytes) -> str:
    """Return the suffix of a file that begins with `first`: tables, JSON, TFRecords, plain or compressed."""
    if begins_with_record(first):
        return ".tfrecord"
    if b"[Content_Types].xml" in first[:_FIRST_BYTES] and first.startswith(b"PK"):
        return ".xlsx"
    for magic, suffix in _MAGICS.items():
        if first.startswith(magic):
            return suffix
    if first.startswith(_GZIP):
        return f"{_find_text_suffix(inflate_first(first, _FIRST_BYTES))}.gz"
    outer = next((suffix for magic, suffix in _OUTER.items() if first.startswith(magic)), "")
    return f".csv{outer}" if outer else _find_text_suffix(first)


def _find_text_suffix(first: bytes) -> str:
    return ".json" if first.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") else ".csv"
