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
from typing import Final, NoReturn, TextIO

from penstock.cli.command import Command
from penstock.cli.data_arguments import BENCH, CONVERT, INSPECT, REPAIR, VERIFY, VIEW
from penstock.cli.interrupt import INTERRUPTED, begin_work, end_work
from penstock.cli.model_arguments import DEMO, EVALUATE, EXPORT, PREDICT, REPORT, TRAIN
from penstock.cli.next_command import print_next
from penstock.cli.parser import CommandParser, HelpFormatter, add_common
from penstock.cli.terminal import Verbosity, print_detail, print_message, print_options, printing
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
SHELLS: Final = ("bash", "zsh", "fish")
_LEADING: Final = ("-q", "--quiet", "-v", "--verbose")
"""Options that may also precede the command."""
_WRONG_CALLS: Final = (OptionError, PathError, PayloadError, SchemaError, UnknownNameError)


def dispatch(argv: Sequence[str]) -> int:
    """Run the command line, and return the exit status."""
    status = 1
    finished: list[argparse.Namespace] = []
    try:
        begin_work()
        status = _run_and_explain(argv, finished)
        end_work(status)
        for args in finished:
            print_next(args)
        _abandon(sys.stderr)
    except KeyboardInterrupt as error:
        end_work(status := INTERRUPTED)
        _print_traceback()
        print_message(" ".join(["interrupted.", *getattr(error, "__notes__", ())]))
        _abandon(sys.stdout)
    return status


def _run_and_explain(argv: Sequence[str], finished: list[argparse.Namespace]) -> int:
    """Run the command line; an error becomes one line on stderr and an exit status.

    Args:
        argv: The words of the command line.
        finished: Gets the arguments of a command that ran to its end, and whose output was written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets its code, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        ended: list[argparse.Namespace] = []
        status = _run(argv, ended)
        _flush(sys.stdout)
        finished += ended
    except BrokenPipeError:
        _abandon(sys.stdout)
        return 141
    except (PenstockError, OSError) as error:
        _print_traceback()
        print_message(f"error: {error}")
        _abandon(sys.stdout)
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


def _run(argv: Sequence[str], finished: list[argparse.Namespace]) -> int:
    try:
        args = _parse(argv)
    except SystemExit as end:  # argparse exits after --help, and after an error
        return int(end.code or 0)
    verbosity: Verbosity = "quiet" if args.quiet else "verbose" if args.verbose else "normal"
    with printing(verbosity):
        start = time.monotonic()
        _print_start(args)
        status = COMMANDS[args.command].run(args)
        print_detail(f"{args.command} took {time.monotonic() - start:.2f} s")
    finished.append(args)
    return status


def _print_start(args: argparse.Namespace) -> None:
    """Print the versions, the folder and the given options with --verbose."""
    if args.verbose:
        print_detail(f"penstock {_find_version()}, Python {sys.version.split()[0]}, in {os.getcwd()}")  # noqa: PTH109
        usual = ("command", "words", "quiet", "verbose")
        given = {
            name: value for name, value in vars(args).items() if name not in usual and value is not False
        }
        print_options(given)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    argv = _move_leading(argv)
    named = next((word for word in argv if not word.startswith("-")), None)
    command = next((word for word in argv if word in COMMANDS), None)
    parser, commands = make_parsers(*([] if command is None else [command]))
    if command is not None:
        _refuse_leading_option(argv, command, commands[command])
    is_completion = any(word.partition("=")[0] == "--completion" for word in argv)
    if named is not None and named not in COMMANDS and not is_completion:
        nearest = find_nearest(named, COMMANDS)
        advice = f"Did you mean {nearest!r}?" if nearest else f"Available: {', '.join(COMMANDS)}."
        parser.error(f"unknown command {named!r}. {advice}")
    args, unknown = parser.parse_known_args(argv)
    if args.command is None:
        parser.error(f"no command given. Available: {', '.join(COMMANDS)}; see 'penstock --help'.")
    if "paths" in args and not any(word.startswith("-") and word != "-" for word in unknown):
        args.paths += unknown  # argparse accepts no path after an option that follows a path
    elif unknown:
        _refuse_unknown(commands[args.command], unknown)
    words = argv[argv.index(args.command) + 1 :]
    args.words = [word for word in words if "--" in words or word not in _LEADING]
    return args


def _move_leading(argv: Sequence[str]) -> list[str]:
    """Return the words with --quiet or --verbose after the command, if they were given before it."""
    at = next((at for at, word in enumerate(argv) if word in COMMANDS), 0)
    moved = [word for word in argv[:at] if word in _LEADING]
    kept = [word for word in argv[:at] if word not in _LEADING]
    return [*kept, *argv[at : at + 1], *moved, *argv[at + 1 :]]


def _find_version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - a third of the time that --help takes

    return version("penstock")


class _PrintVersion(argparse.Action):
    """Prints the version of the installed package."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"penstock {_find_version()}")
        parser.exit()


class _PrintCompletion(argparse.Action):
    """Prints a script that lets a shell complete command lines."""

    def __call__(self, parser: argparse.ArgumentParser, _: object, shell: object, *__: object) -> NoReturn:
        from penstock.cli.completion import write_completion  # noqa: PLC0415 - for this option alone

        print(write_completion(str(shell), COMMANDS, make_parsers(*COMMANDS)[1]), end="")
        parser.exit()


def make_parsers(*names: str) -> tuple[CommandParser, dict[str, CommandParser]]:
    """Return the parser of the command line, and those of the commands.

    Args:
        names: Names of the commands whose arguments are needed.
    """
    parser = CommandParser(
        prog="penstock",
        description="Convert raw data to TFRecord data sets, and train, evaluate and use multi-input models.",
        epilog="Run 'penstock COMMAND --help' for the help of a command, or 'penstock demo' for a tour. "
        f"Set {DEBUG_VARIABLE}=1 to print errors with their traceback.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    parser.add_argument(
        "--completion",
        action=_PrintCompletion,
        choices=SHELLS,
        help="print a script that lets a shell complete commands and options, and exit",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
    commands = {}
    for each, command in COMMANDS.items():
        commands[each] = subparsers.add_parser(
            each,
            help=command.summary,
            description=command.description,
            epilog=f"example:\n  {command.example}",
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
    for name in names:
        COMMANDS[name].add_arguments(commands[name])
        add_common(commands[name])
        commands[name].main_options = tuple(COMMANDS[name].main_options.split())
    return parser, commands


def _refuse_leading_option(argv: Sequence[str], command: str, parser: CommandParser) -> None:
    """Refuse an option of a command that was given before the command."""
    at = argv.index(command)
    option = argv[0].partition("=")[0] if at else "--help"
    if option != "--help" and option in parser.list_options():
        corrected = shlex.join(["penstock", *argv[at:], *argv[:at]])
        parser.error(f"option {option} must follow the command: {corrected}")


def _refuse_unknown(parser: CommandParser, unknown: list[str]) -> NoReturn:
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    if not word.startswith("-"):
        parser.error(f"unexpected argument {word!r}. See '{parser.prog} --help'.")
    option = word.partition("=")[0]
    nearest = find_nearest(option, parser.list_options())
    advice = f"Did you mean {nearest}?" if nearest else f"See '{parser.prog} --help'."
    parser.error(f"unknown option {option}. {advice}")


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
