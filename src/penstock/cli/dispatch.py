"""The `penstock` command: finds the command, runs it, and turns errors into an exit status.

0: done. 1: the data or the run failed. 2: the call was wrong. 130: interrupted. 141: stdout was closed.
With `PENSTOCK_DEBUG=1` in the environment, errors are printed with their traceback. A command that succeeds
ends with a line that suggests the next one.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn, TextIO

from penstock.cli.command import run_command
from penstock.cli.interrupt import INTERRUPTED, begin_work, end_work
from penstock.cli.next_command import print_next
from penstock.cli.terminal import (
    Verbosity,
    find_version,
    print_detail,
    print_message,
    print_note,
    print_options,
    print_versions,
    printing,
    printing_log,
)
from penstock.errors import (
    MissingShardError,
    OptionError,
    PathError,
    PayloadError,
    PenstockError,
    SchemaError,
    UnknownNameError,
)
from penstock.foundation.wording import find_nearest
from penstock.settings.advice import logging_flags
from penstock.settings.command_line import Call, Common, HelpFormatter, Parser, WrongCall, parse
from penstock.settings.command_line import make_parser as make_command_parser
from penstock.settings.commands import COMMANDS

DEBUG_VARIABLE: Final = "PENSTOCK_DEBUG"
SHELLS: Final = ("bash", "zsh", "fish")
_LEADING: Final = ("-q", "--quiet", "-v", "--verbose")
"""Options that may also precede the command."""
_WRONG_CALLS: Final = (OptionError, PathError, PayloadError, SchemaError, UnknownNameError)


def dispatch(argv: Sequence[str]) -> int:
    """Run the command line, and return the exit status."""
    status = 1
    try:
        begin_work()
        status, finished = _run_and_explain(argv)
        end_work(status)
        if finished is not None:
            print_next(finished)
        _abandon(sys.stderr)
    except KeyboardInterrupt as error:
        end_work(status := INTERRUPTED)
        _print_traceback()
        print_message(" ".join(["interrupted.", *getattr(error, "__notes__", ())]))
        _abandon(sys.stdout)
    return status


def _run_and_explain(argv: Sequence[str]) -> tuple[int, Call | None]:
    """Run the command line; an error becomes one line on stderr and an exit status.

    Returns the call too if the command ran to its end, and its output was written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets its code, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        status, finished = _run(argv)
        _flush(sys.stdout)
    except BrokenPipeError:
        _abandon(sys.stdout)
        return 141, None
    except (PenstockError, OSError) as error:
        _print_traceback()
        print_message(f"error: {error}")
        _abandon(sys.stdout)
        is_wrong_call = isinstance(error, _WRONG_CALLS) and not isinstance(error, MissingShardError)
        return 2 if is_wrong_call else 1, None
    except MemoryError:  # where the file is known, an OutOfMemoryError names it
        _print_traceback()
        print_message("error: out of memory. Close other programs, or use a machine with more memory.")
        return 1, None
    except Exception as error:  # a bug: one line with the location, for a report
        _print_traceback()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        print_message(
            f"error: internal: {type(error).__name__}: {error} ({where}). "
            f"Please report this with the output of the same command under {DEBUG_VARIABLE}=1."
        )
        return 1, None
    return status, finished


def _print_traceback() -> None:
    """Print the traceback of the current error to stderr, if the user asks for it."""
    if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
        traceback.print_exc()


def _run(argv: Sequence[str]) -> tuple[int, Call | None]:
    try:
        call = read_call(argv)
    except SystemExit as end:  # argparse exits after --help
        return int(end.code or 0), None
    except WrongCall as error:
        print_message(f"error: {error}")
        return 2, None
    common = call.common
    verbosity: Verbosity = "quiet" if common.quiet else "verbose" if common.verbose else "normal"
    with printing(verbosity), logging_flags(), printing_log():
        for note in call.notes:
            print_note(note)
        start = time.monotonic()
        if common.verbose:
            print_versions()
            print_options({"arguments": list(call.arguments), **_name_values(call)})
        status = run_command(call)
        print_detail(f"{call.command.name} took {time.monotonic() - start:.2f} s")
    return status, call


def run_words(argv: Sequence[str]) -> int:
    """Run a command line, and return the exit status; errors are raised."""
    return run_command(read_call(argv))


def _name_values(call: Call) -> dict[str, object]:
    common = {each.flag for each in Common.list_settings()}
    names = {flag: each.name for flag, each in call.command.list_flags().items() if flag not in common}
    return {names[flag]: value for flag, value in call.values.items() if flag in names}


def find_command(argv: Sequence[str]) -> str | None:
    """Return the name of the command of a command line."""
    return next((word for word in argv if word in COMMANDS), None)


def read_call(argv: Sequence[str]) -> Call:
    """Return the call that the words of a command line specify."""
    name = find_command(argv)
    at = len(argv) if name is None else argv.index(name)
    leading = [word for word in argv[:at] if word not in _LEADING]
    first = next((word for word in leading if not word.startswith("-")), None)
    options = [word.partition("=")[0] for word in leading if word.startswith("-")]
    is_own = bool({"-h", "--help", "--version", "--completion"} & set(options))
    if name is not None and not is_own and (first is None or options):
        _refuse_leading(argv, at, options)
        words = argv[at + 1 :]
        call = parse(COMMANDS[name], [*(word for word in argv[:at] if word in _LEADING), *words])
        return call.replace(words=tuple(word for word in words if "--" in words or word not in _LEADING))
    if first is not None and not is_own:
        nearest = find_nearest(first, COMMANDS)
        advice = f"Did you mean {nearest!r}?" if nearest else f"Available: {', '.join(COMMANDS)}."
        raise WrongCall(f"unknown command {first!r}. {advice}")
    make_parser().parse_args(leading)
    raise WrongCall(f"no command given. Available: {', '.join(COMMANDS)}; see 'penstock --help'.")


def _refuse_leading(argv: Sequence[str], at: int, options: Sequence[str]) -> None:
    """Refuse an option that was given before the command that it is for."""
    if not options:
        return
    known = make_command_parser(COMMANDS[argv[at]])._option_string_actions
    if options[0] not in known:
        nearest = find_nearest(options[0], [flag for flag in known if flag.startswith("--")])
        advice = f"Did you mean {nearest}?" if nearest else "See 'penstock --help'."
        raise WrongCall(f"unknown option {options[0]}. {advice}")
    corrected = shlex.join(["penstock", *argv[at:], *argv[:at]])
    raise WrongCall(f"option {options[0]} must follow the command: {corrected}")


class _PrintVersion(argparse.Action):
    """Prints the version of the installed package."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"penstock {find_version()}")
        parser.exit()


class _PrintCompletion(argparse.Action):
    """Prints a script that lets a shell complete command lines."""

    def __call__(self, parser: argparse.ArgumentParser, _: object, shell: object, *__: object) -> NoReturn:
        script = Path(__file__).parent / "completion" / f"penstock.{shell}"
        print(script.read_text(encoding="utf-8"), end="")
        parser.exit()


def make_parser() -> Parser:
    """Return the parser of a command line without a command; its help lists the commands."""
    indent = max(map(len, COMMANDS)) + 2
    listed = "\n".join(f"  {name:{indent}}{each.summary}" for name, each in COMMANDS.items())
    parser = Parser(
        prog="penstock",
        usage="penstock COMMAND [options] …",
        description="Convert raw data to TFRecord data sets, and train, evaluate and use multi-input models.",
        epilog=f"""commands:
{listed}

Run 'penstock COMMAND --help' for the help of a command, or 'penstock demo' for a tour.
Set {DEBUG_VARIABLE}=1 to print errors with their traceback.""",
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    parser.add_argument(
        "--completion",
        action=_PrintCompletion,
        choices=SHELLS,
        help="print a script that lets a shell complete commands and options, and exit",
    )
    return parser


def _abandon(stream: TextIO | None) -> None:
    """Keep the interpreter from flushing an output that has failed, which would be another error."""
    try:
        _flush(stream)
    except OSError:
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _flush(stream: TextIO | None) -> None:
    if stream is not None:  # None if the shell has closed it
        stream.flush()
