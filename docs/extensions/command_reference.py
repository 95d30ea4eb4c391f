"""The directive `command-reference`: every command of `penstock`, with every argument.

In: the parsers of the commands, not their help, which may show fewer options. Out: one section per command,
with an example, and its options by group.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from penstock.cli.command import Command
from penstock.cli.dispatch import COMMANDS


def make_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command with all its arguments."""
    parser = argparse.ArgumentParser(prog=f"penstock {name}", allow_abbrev=False)
    COMMANDS[name].add_arguments(parser)
    return parser


def list_groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, list[argparse.Action]]]:
    """Yield title, description and arguments of the groups that have any."""
    for group in parser._action_groups:
        if group._group_actions:
            yield group.title or "", group.description or "", group._group_actions


def name_argument(action: argparse.Action) -> str:
    """Return the flags and the value of an argument, as the usage shows them: `--seed N, -s N`."""
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return value or action.dest
    takes_value = action.nargs != 0
    value = value or action.dest.upper() if takes_value else ""
    value = f"[{value}]" if action.nargs == "?" else value
    return ", ".join(f"{flag} {value}".rstrip() for flag in action.option_strings)


def write_command(name: str, command: Command) -> Iterator[str]:
    """Yield the lines of a section, in reStructuredText."""
    parser = make_parser(name)
    title = f"penstock {name}"
    yield from (f".. _command-{name}:", "", title, "=" * len(title), "")
    yield from (
        _escape(command.description),
        "",
        ".. code-block:: console",
        "",
        f"   $ {command.example}",
        "",
    )
    yield from (f".. program:: penstock {name}", "")
    for title, description, actions in list_groups(parser):
        yield from (f".. rubric:: {title.capitalize()}", "")
        if description:
            yield from (_escape(description), "")
        for action in actions:
            about = action.help if action.help not in (None, argparse.SUPPRESS) else ""
            text = _escape(about % vars(action)) if about else ""
            yield from (f".. option:: {name_argument(action)}", "", f"   {text[:1].upper()}{text[1:]}", "")


def _escape(text: str) -> str:
    text = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in r"\*`|_" else letter for letter in text)


class CommandReference(SphinxDirective):
    """Shows all commands."""

    def run(self) -> list[nodes.Node]:
        """Return one section per command."""
        lines = [line for name, command in COMMANDS.items() for line in write_command(name, command)]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
