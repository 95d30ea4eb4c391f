"""The options of the commands, as their parsers know them."""

import argparse

from penstock.settings.command_line import make_parser
from penstock.settings.commands import COMMANDS

COMMON = ("--json", "--quiet", "--verbose", "--help", "--help-all")
"""Options of every command."""


def list_options(name: str, *, with_earlier: bool = False) -> list[str]:
    """Return the long flags of a command, in the order of its help."""
    known = make_parser(COMMANDS[name])._option_string_actions.items()
    return [
        flag
        for flag, action in known
        if flag.startswith("--") and (with_earlier or action.help != argparse.SUPPRESS)
    ]
