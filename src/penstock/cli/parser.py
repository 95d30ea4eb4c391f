"""The parser of a command: a short help with the options that matter, a full one, and errors in one line.

In: the arguments of a command. Out: parsers, with the options that every command has. Imports nothing large.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import Final, NoReturn

from penstock.cli.terminal import print_message

COMMON: Final = ("--json", "--quiet", "--verbose", "--help", "--help-all")
"""Options of every command."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of a text, unless they are wider than the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        if all(len(line) <= width or line.startswith(" ") for line in lines):
            return super()._fill_text(text, width, indent)
        return textwrap.fill(" ".join(lines), width, initial_indent=indent, subsequent_indent=indent)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose help can leave out options.

    Attributes:
        main_options: Options that `--help` shows, in that order, besides those of every command; if there are
            none, it shows all.
    """

    main_options: tuple[str, ...] = ()

    def error(self, message: str) -> NoReturn:
        """Print an error with a hint, and exit with status 2."""
        hint = "" if "--help" in message or message.endswith("?") else f" See '{self.prog} --help'."
        print_message(f"error: {message.rstrip('.')}.{hint}" if hint else f"error: {message}")
        self.exit(2)

    def format_help(self) -> str:
        """Return the help of the options that matter, or of all if none are named."""
        if not self.main_options:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage or _make_usage(self), [], [])
        formatter.add_text(self.description)
        _add_section(formatter, "arguments", self._get_positional_actions())
        _add_section(formatter, "main options", self._find(self.main_options))
        _add_section(formatter, "options of every command", self._find(COMMON))
        num_more = len(self._get_optional_actions()) - len(self.main_options) - len(COMMON)
        formatter.add_text(f"{self.epilog}\n\n{num_more} more options: '{self.prog} --help-all'")
        return formatter.format_help()

    def format_full_help(self) -> str:
        """Return the help of all options, in groups."""
        return super().format_help()

    def list_options(self) -> list[str]:
        """Return the names of all options."""
        return [name for name in self._option_string_actions if name.startswith("--")]

    def _find(self, names: Sequence[str]) -> list[argparse.Action]:
        return [self._option_string_actions[name] for name in names]


class _PrintFullHelp(argparse.Action):
    """Prints the help of all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(parser.format_full_help() if isinstance(parser, CommandParser) else "", end="")
        parser.exit()


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has, except `--json` and `--help`."""
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print results, warnings and errors alone: no progress, notes or next command",
    )
    amount.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also print the options in use, and the time of each stage",
    )
    parser.add_argument("--help-all", action=_PrintFullHelp, nargs=0, help="show all options and exit")


def _make_usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog)
    formatter.add_usage(None, parser._get_positional_actions(), [], "")
    arguments = formatter.format_help().strip().removeprefix(parser.prog).strip()
    return f"{parser.prog} [options] {arguments}"


def _add_section(formatter: argparse.HelpFormatter, title: str, actions: Sequence[argparse.Action]) -> None:
    formatter.start_section(title)
    formatter.add_arguments(actions)
    formatter.end_section()
