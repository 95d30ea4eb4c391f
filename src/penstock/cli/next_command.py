"""The line `Next:` that a command ends with: a command line that works when it is pasted into a shell.

In: what a command made or found. Out: `call.next_command`, which `dispatch` prints on stderr at the end.
Paths may hold spaces and control characters. Imports nothing large.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.foundation.keras_backend import BACKENDS
from penstock.foundation.terminal import paint
from penstock.settings.command_line import Call
from penstock.settings.kinds import Flag, Kind

if TYPE_CHECKING:
    from penstock.schema.field import Field  # with NumPy

_PROGRAM: Final = "penstock"
_ESCAPES: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\", "'": r"\'"}


def suggest_next(call: Call, *words: object) -> None:
    """Choose the command of Penstock that is printed at the end.

    `words`: name and arguments of the next command. Paths are `Path`s or `StorePath`s, other words strings.
    """
    call.next_command = " ".join([_name_program(), *map(quote, words)])


def suggest_program(call: Call, *words: object) -> None:
    """Choose the command of another program that is printed at the end."""
    call.next_command = " ".join(map(quote, words))


def suggest_python(call: Call, code: str) -> None:
    """Choose a line of Python that is run at the end, by the interpreter of this process."""
    is_found = shutil.which("python") == sys.executable
    suggest_program(call, "python" if is_found else sys.executable, "-c", code)


def print_next(call: Call) -> None:
    """Print the line, unless the command printed JSON or was asked to be quiet."""
    command, common = call.next_command, call.common
    if command is None or common.quiet or common.json or sys.stderr is None:
        return
    with suppress(OSError):  # the work is done, whether or not stderr can be written to
        print(f"{paint('Next:', 'bold', sys.stderr)} {command}", file=sys.stderr, flush=True)


def repeat_words(call: Call, without: Collection[str] = (), more: Iterable[object] = ()) -> list[object]:
    """Return the arguments that the command was called with, changed."""
    flags = call.command.list_flags()
    left_out = {
        name: flags[flag].kind for flag in without if flag in flags for name in (flag, *flags[flag].earlier)
    }
    kept: list[object] = []
    rest = list(call.words)
    while rest:
        word = rest.pop(0)
        flag, has_value, _ = word.partition("=")
        kind = left_out.get(flag)
        if kind is None or "--" in kept:
            kept.append(word)
        elif rest and not has_value and _has_value(kind, rest[0]):
            rest.pop(0)
    # After "--", every word is a path.
    return [*more, *kept] if "--" in kept else [*kept, *more]


def _has_value(kind: Kind, next_word: str) -> bool:
    """Whether the word after a flag is its value."""
    return not isinstance(kind, Flag) and (kind.alone is None or not next_word.startswith("-"))


def choose_unused(path: str | Path) -> Path:
    """Return a path, or with a number at its end if it exists."""
    first = Path(path)
    chosen, number = first, 1
    while os.path.lexists(chosen):
        number += 1
        chosen = first.with_name(f"{first.stem}-{number}{first.suffix}")
    return chosen


def name_output(source: object, end: str) -> Path:
    """Return an unused path in the working folder that is named after a file or folder."""
    stem = Path(str(source)).absolute().name.split(".")[0]
    stem = "".join(char for char in stem if char not in "*?[]").strip("-") or "data"
    return choose_unused(f"{stem}{end}")


def is_installed(*packages: str) -> bool:
    """Whether packages can be imported; they are not loaded."""
    # A package that cannot be imported may be None among the loaded ones.
    return all(
        sys.modules[package] is not None if package in sys.modules else find_spec(package) is not None
        for package in packages
    )


def can_train() -> bool:
    """Whether Keras and a backend are installed."""
    return is_installed("keras") and any(is_installed(backend) for backend in BACKENDS)


def has_model_fields(schema: Mapping[str, Field], declared: Collection[str] = ()) -> bool:
    """Whether a schema has a target, and an input that `train` can use.

    `declared`: fields of bytes that the next command declares as arrays.
    """
    is_input = any(
        field.role == "input" and (name in declared or field.type_name != "bytes")
        for name, field in schema.items()
    )
    return is_input and any(field.role == "target" for field in schema.values())


def suggest_use(call: Call, words: Iterable[object], *, has_target: bool) -> None:
    """Suggest what to do with a data set or TFRecord files: train, or otherwise look at the records.

    `has_target`: whether it is known what a model would predict, and from what.
    """
    if has_target and can_train():
        suggest_next(call, "train", *words)
    elif call.command.name != "inspect":
        suggest_next(call, "inspect", *words)
    elif is_installed("starlette", "uvicorn", "jinja2"):
        suggest_next(call, "view", *words)
    else:
        suggest_next(call, "verify", *list_paths(call))


def list_paths(call: Call) -> list[str]:
    """Return the paths that a command was given, written so that none looks like an option."""
    return [f"./{path}" if path.startswith("-") else path for path in call.arguments]


def quote(word: object) -> str:
    r"""Return a word as a shell reads it back.

    Example:
        >>> print(quote("my pets.csv"), quote(Path("-x")), quote("a\tb"))
        'my pets.csv' ./-x $'a\tb'
    """
    text = str(word)
    if not isinstance(word, str) and text.startswith("-"):
        text = f"./{text}"  # a path, not an option
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escape, text)) + "'"


def _escape(char: str) -> str:
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def _name_program() -> str:
    """Return how the user calls Penstock: by its name, or by its path if the shell would not find it."""
    called = Path(sys.argv[0])
    if called.name != _PROGRAM:
        return _PROGRAM
    found = shutil.which(_PROGRAM)
    is_found = found is not None and Path(found).resolve() == called.resolve()
    return _PROGRAM if is_found else quote(str(called))
