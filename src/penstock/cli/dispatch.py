"""The `penstock` command: finds the command that is meant, runs it, and turns errors into an exit status.

0: done. 1: the data or the run failed. 2: the call was wrong. 130: interrupted. 141: the output was closed.
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
from importlib.metadata import version
from typing import NoReturn, Protocol

from penstock.cli import bench, convert, demo, evaluate, inspect, predict, repair, train, verify
from penstock.cli.interrupt import INTERRUPTED, begin_work, end_work
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


class Command(Protocol):
    """A module of this folder that is a command."""

    SUMMARY: str
    DESCRIPTION: str
    EXAMPLE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what the command takes."""

    def run(self, args: argparse.Namespace) -> int:
        """Run it, and return the exit status."""


COMMANDS: dict[str, Command] = {
    "convert": convert,
    "inspect": inspect,
    "verify": verify,
    "repair": repair,
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "bench": bench,
    "demo": demo,
}
_WRONG_CALLS = (OptionError, PathError, PayloadError, SchemaError, UnknownNameError)


def dispatch(argv: Sequence[str]) -> int:
    """Run the command line, and return the exit status."""
    status = 1
    try:
        begin_work()
        status = _run_and_explain(argv)
        end_work(status)
    except KeyboardInterrupt as error:
        end_work(status := INTERRUPTED)
        print_message(" ".join(["interrupted.", *getattr(error, "__notes__", ())]))
        _abandon_stdout()
    return status


def _run_and_explain(argv: Sequence[str]) -> int:
    """Run the command line; what it raises becomes a line on stderr and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a letter gets its code, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(argv)
        _flush_stdout()
    except BrokenPipeError:
        _abandon_stdout()
        return 141
    except (PenstockError, OSError) as error:
        print_message(f"error: {error}")
        _abandon_stdout()
        is_wrong_call = isinstance(error, _WRONG_CALLS) and not isinstance(error, MissingShardError)
        return 2 if is_wrong_call else 1
    except MemoryError:  # where the file is known, an OutOfMemoryError names it
        print_message("error: out of memory. Close other programs, or use a machine with more of it.")
        return 1
    except Exception as error:  # a fault of ours: one line that says where, for a report
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}:{place.lineno}"
        print_message(f"error: internal: {type(error).__name__}: {error} ({where}). Please report this.")
        return 1
    return status


def _run(argv: Sequence[str]) -> int:
    try:
        args = _parse(argv)
    except SystemExit as end:  # so argparse leaves after --help, and after an error
        return int(end.code or 0)
    return COMMANDS[args.command].run(args)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser, commands = _make_parsers()
    _refuse_leading_option(argv, commands)
    known = ", ".join(COMMANDS)
    named = next((word for word in argv if not word.startswith("-")), None)
    if named is not None and named not in COMMANDS:
        nearest = find_nearest(named, COMMANDS)
        parser.error(
            f"no command {named!r}. " + (f"Did you mean {nearest!r}?" if nearest else f"There are {known}.")
        )
    args, unknown = parser.parse_known_args(argv)
    if args.command is None:
        parser.error(f"no command. There are {known}; see 'penstock --help'.")
    if "paths" in args and not any(word.startswith("-") for word in unknown):
        args.paths += unknown  # argparse takes no path behind an option that is behind a path
    elif unknown:
        _refuse_unknown(commands[args.command], unknown)
    return args


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        print_message(f"error: {message}")
        self.exit(2)


def _make_parsers() -> tuple[_Parser, dict[str, _Parser]]:
    parser = _Parser(
        prog="penstock",
        description="Makes TFRecord data sets from raw data; trains and uses models of many inputs.",
        epilog="'penstock COMMAND --help' explains a command. Start with 'penstock demo'.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"penstock {version('penstock')}")
    adding = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    commands = {}
    for name, command in COMMANDS.items():
        commands[name] = adding.add_parser(
            name,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            epilog=f"example:\n  {command.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(commands[name])
    return parser, commands


def _refuse_leading_option(argv: Sequence[str], commands: dict[str, _Parser]) -> None:
    at = next((at for at, word in enumerate(argv) if word in commands), 0)
    option = argv[0].partition("=")[0] if at else "--help"
    if option != "--help" and option in _list_options(commands[argv[at]]):
        meant = shlex.join(["penstock", *argv[at:], *argv[:at]])
        commands[argv[at]].error(f"option {option} goes behind the command: {meant}")


def _list_options(parser: _Parser) -> list[str]:
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", parser.format_help(), re.MULTILINE)


def _refuse_unknown(parser: _Parser, unknown: list[str]) -> NoReturn:
    word = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
    nearest = find_nearest(word, _list_options(parser))
    advice = f"Did you mean {nearest}?" if nearest else f"See '{parser.prog} --help'."
    parser.error(f"unknown option {word}. {advice}")


def _abandon_stdout() -> None:
    """Keep the interpreter from flushing to an output that has failed: it would print_message at its end."""
    try:
        _flush_stdout()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush_stdout() -> None:
    if sys.stdout is not None:  # it is None where the shell has closed it
        sys.stdout.flush()
