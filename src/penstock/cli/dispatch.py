"""The `penstock` command: finds the command, runs it, and turns errors into an exit status.

0: done. 1: the data or the run failed. 2: the call was wrong. 130: interrupted. 141: stdout was closed.
With `PENSTOCK_DEBUG=1` in the environment, errors are printed with their traceback.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

from penstock.cli.command import Command
from penstock.cli.data_arguments import BENCH, CONVERT, INSPECT, REPAIR, VERIFY, VIEW
from penstock.cli.interrupt import INTERRUPTED, begin_work, end_work
from penstock.cli.model_arguments import DEMO, EVALUATE, EXPORT, PREDICT, REPORT, TRAIN
from penstock.cli.terminal import print_message
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

COMMANDS: Final[dict[str, Command]] = {
    "convert": CONVERT,
    "inspect": INSPECT,
    "view": VIEW,
    "verify": VERIFY,
    "repair": REPAIR,
    "train": TRAIN,
    "evaluate": EVALUATE,
    "predict": PREDICT,
    "export": EXPORT,
    "report": REPORT,
    "bench": BENCH,
    "demo": DEMO,
}
DEBUG_VARIABLE: Final = "PENSTOCK_DEBUG"
_WRONG_CALLS: Final = (OptionError, PathError, PayloadError, SchemaError, UnknownNameError)


def dispatch(argv: Sequence[str]) -> int:
    """Run the command line, and return the exit status."""
    status = 1
    try:
        begin_work()
        status = _run_and_explain(argv)
        end_work(status)
    except KeyboardInterrupt as error:
        end_work(status := INTERRUPTED)
        _print_traceback()
        print_message(" ".join(["interrupted.", *getattr(error, "__notes__", ())]))
        _abandon_stdout()
    return status


def _run_and_explain(argv: Sequence[str]) -> int:
    """Run the command line; an error becomes one line on stderr and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets its code, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(argv)
        _flush_stdout()
    except BrokenPipeError:
        _abandon_stdout()
        return 141
    except (PenstockError, OSError) as error:
        _print_traceback()
        print_message(f"error: {error}")
        _abandon_stdout()
        is_wrong_call = isinstance(error, _WRONG_CALLS) and not isinstance(error, MissingShardError)
        return 2 if is_wrong_call else 1
    except MemoryError:  # where the file is known, an OutOfMemoryError names it
        _print_traceback()
        print_message("error: out of memory. Close other programs, or use a machine with more memory.")
        return 1
    except Exception as error:  # a bug: one line with the location, for a report
        _print_traceback()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        print_message(
            f"error: internal: {type(error).__name__}: {error} ({where}). "
            f"Please report this with the output of the same command under {DEBUG_VARIABLE}=1."
        )
        return 1
    return status


def _print_traceback() -> None:
    """Print the traceback of the current error to stderr, if the user asks for it."""
    if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
        traceback.print_exc()


def _run(argv: Sequence[str]) -> int:
    try:
        args = _parse(argv)
    except SystemExit as end:  # argparse exits after --help, and after an error
        return int(end.code or 0)
    return COMMANDS[args.command].run(args)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    named = next((word for word in argv if not word.startswith("-")), None)
    command = next((word for word in argv if word in COMMANDS), None)
    parser, commands = _make_parsers(command)
    if command is not None:
        _refuse_leading_option(argv, command, commands[command])
    if named is not None and named not in COMMANDS:
        nearest = find_nearest(named, COMMANDS)
        advice = f"Did you mean {nearest!r}?" if nearest else f"Available: {', '.join(COMMANDS)}."
        parser.error(f"unknown command {named!r}. {advice}")
    args, unknown = parser.parse_known_args(argv)
    if args.command is None:
        parser.error(f"no command given. Available: {', '.join(COMMANDS)}; see 'penstock --help'.")
    if "paths" in args and not any(word.startswith("-") for word in unknown):
        args.paths += unknown  # argparse accepts no path after an option that follows a path
    elif unknown:
        _refuse_unknown(commands[args.command], unknown)
    return args


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        print_message(f"error: {message}")
        self.exit(2)


class _PrintVersion(argparse.Action):
    """Prints the version of the installed package."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 - a third of the time that --help takes

        print(f"penstock {version('penstock')}")
        parser.exit()


def _make_parsers(name: str | None) -> tuple[_Parser, dict[str, _Parser]]:
    """Return the parser of the command line, and those of the commands; only one has its arguments."""
    parser = _Parser(
        prog="penstock",
        description="Convert raw data to TFRecord data sets, and train, evaluate and use multi-input models.",
        epilog="Run 'penstock COMMAND --help' for the help of a command, or 'penstock demo' for a tour. "
        f"Set {DEBUG_VARIABLE}=1 to print errors with their traceback.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    commands = {}
    for each, command in COMMANDS.items():
        commands[each] = subparsers.add_parser(
            each,
            help=command.summary,
            description=command.description,
            epilog=f"example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    if name is not None:
        COMMANDS[name].add_arguments(commands[name])
    return parser, commands


def _refuse_leading_option(argv: Sequence[str], command: str, parser: _Parser) -> None:
    """Refuse an option of a command that was given before the command."""
    at = argv.index(command)
    option = argv[0].partition("=")[0] if at else "--help"
    if option != "--help" and option in _list_options(parser):
        corrected = shlex.join(["penstock", *argv[at:], *argv[:at]])
        parser.error(f"option {option} must follow the command: {corrected}")


def _list_options(parser: _Parser) -> list[str]:
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", parser.format_help(), re.MULTILINE)


def _refuse_unknown(parser: _Parser, unknown: list[str]) -> NoReturn:
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    if not word.startswith("-"):
        parser.error(f"unexpected argument {word!r}. See '{parser.prog} --help'.")
    option = word.partition("=")[0]
    nearest = find_nearest(option, _list_options(parser))
    advice = f"Did you mean {nearest}?" if nearest else f"See '{parser.prog} --help'."
    parser.error(f"unknown option {option}. {advice}")


def _abandon_stdout() -> None:
    """Keep the interpreter from flushing an output that has failed, which would print another error."""
    try:
        _flush_stdout()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush_stdout() -> None:
    if sys.stdout is not None:  # None if the shell has closed it
        sys.stdout.flush()
