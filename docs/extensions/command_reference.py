"""The directive `command-reference`: every command of `penstock`, with every argument.

In: the declared commands. Out: one section per command, with an example, and its options by group.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from penstock.settings.command_line import Command, make_parser
from penstock.settings.commands import COMMANDS


def list_groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, list[argparse.Action]]]:
    """Yield title, description and shown options of the groups that have any."""
    for group in parser._action_groups:
        shown = [each for each in group._group_actions if each.help != argparse.SUPPRESS]
        if shown:
            yield group.title or "", group.description or "", shown


def name_option(action: argparse.Action) -> str:
    """Return the flags and the value of an option, as the usage shows them: `--seed N, -s N`."""
    value = str(action.metavar or "") if action.nargs != 0 else ""
    value = f"[{value}]" if action.nargs == "?" else value
    return ", ".join(f"{flag} {value}".rstrip() for flag in action.option_strings)


def write_command(name: str, command: Command) -> Iterator[str]:
    """Yield the lines of a section, in reStructuredText."""
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
    if command.arguments:
        yield from (".. rubric:: Arguments", "")
    for argument, text in command.arguments.items():
        yield from _write_option(argument, text)
    for title, description, actions in list_groups(make_parser(command)):
        yield from (f".. rubric:: {title.capitalize()}", "")
        if description:
            yield from (_escape(description), "")
        for action in actions:
            yield from _write_option(name_option(action), (action.help or "").replace("%%", "%"))


def _write_option(name: str, text: str) -> Iterator[str]:
    text = _escape(text)
    yield from (f".. option:: {name}", "", f"   {text[:1].upper()}{text[1:]}", "")


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
