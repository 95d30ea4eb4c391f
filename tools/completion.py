"""Writes the completion scripts of `penstock` from the declared commands.

    python tools/completion.py

In: `penstock.settings.commands`. Out: `penstock/cli/completion/penstock.{bash,zsh,fish}`, which
`penstock --completion SHELL` prints. A test compares the scripts with the commands.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import shtab

import penstock
from penstock.cli.dispatch import SHELLS, make_parser
from penstock.settings.command_line import Command, add_flags
from penstock.settings.commands import COMMANDS

FOLDER = Path(penstock.__file__).parent / "cli" / "completion"
_HEADS = {
    "bash": '# Completion of penstock for bash; in ~/.bashrc: eval "$(penstock --completion bash)"',
    "zsh": '# In ~/.zshrc, after compinit: eval "$(penstock --completion zsh)"',
    "fish": "# Completion of penstock for fish, for the file ~/.config/fish/completions/penstock.fish",
}


def write_script(shell: str) -> str:
    """Return the completion script for a shell."""
    parser = make_parser()
    parser.description = parser.epilog = None
    for flag in ("--quiet", "--verbose"):
        parser.add_argument(flag, action="store_true", help=f"as {flag} of every command")
    commands: Any = parser.add_subparsers(parser_class=argparse.ArgumentParser)
    for name, command in COMMANDS.items():
        each = commands.add_parser(name, help=command.summary, add_help=False, allow_abbrev=False)
        each.description = command.summary
        _add_flags(each, command)
    lines = shtab.complete(parser, shell).rstrip().splitlines()
    at = 1 if shell == "zsh" else 0  # zsh reads the name of the program from the first line
    return "\n".join([*lines[:at], _HEADS[shell], *(line.rstrip() for line in lines[at:])]) + "\n"


def _add_flags(parser: argparse.ArgumentParser, command: Command) -> None:
    add_flags(parser, command)
    kinds = {flag: each.kind for flag, each in command.list_flags().items()}
    for action in parser._actions:
        kind = kinds.get(action.dest)
        is_argument = not action.option_strings and bool(command.arguments)
        if is_argument:
            action.help = " ".join(command.arguments)
        if is_argument or (kind is not None and kind.is_path and action.nargs != 0):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        if action.choices is not None and not all(re.fullmatch(r"\w+", each) for each in action.choices):
            action.choices = None  # shells would have to quote a separator
        if action.help not in (None, argparse.SUPPRESS):
            action.help = re.split(r" \(|;", str(action.help), maxsplit=1)[0]


def main() -> None:
    """Write the scripts."""
    FOLDER.mkdir(exist_ok=True)
    for shell in SHELLS:
        (FOLDER / f"penstock.{shell}").write_text(write_script(shell), encoding="utf-8")


if __name__ == "__main__":
    main()
