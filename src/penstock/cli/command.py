"""Runs a command: its module is loaded when it runs, so that help and simple errors appear at once.

In: a `Call`. Out: the exit status. The module of a command imports its job, and with it pyarrow or Keras, at
the top; nothing else imports that module.
"""

from __future__ import annotations

import importlib
import time

from penstock.cli.early_check import check_early
from penstock.cli.interrupt import exit_on_interrupt
from penstock.cli.terminal import print_detail
from penstock.errors import OptionError, importing
from penstock.foundation.keras_backend import held_stderr, importing_keras
from penstock.settings.command_line import Call, name_flag


def run_command(call: Call) -> int:
    """Load the module of a command, run it, and return the exit status."""
    if not call.command.reads_stdin or "-" not in call.arguments:
        return _run(call)
    # Loaded late: the help of a command does not need it.
    from penstock.cli.standard_input import reading_standard_input  # noqa: PLC0415

    with reading_standard_input(call) as given:
        return _run(given)


def _run(call: Call) -> int:
    check_early(call)
    command = call.command
    name = f"penstock {command.name}"
    packages = importing(name, command.extra) if command.keras is None else importing_keras(name)
    start = time.monotonic()
    with exit_on_interrupt(), packages:
        if command.keras is not None:
            import_quietly(command.keras)
        module = importlib.import_module(command.module)
    print_detail(f"{command.name}: loading packages: {time.monotonic() - start:.2f} s")
    try:
        return int(module.run(call))
    except OptionError as error:  # in the words of the command line
        name_flag(error, {each.name: flag for flag, each in command.list_flags().items()})
        raise


def import_quietly(name: str) -> None:
    """Import a module, and hold back what it and its libraries write to stderr unless the import fails."""
    with held_stderr() as stderr, exit_on_interrupt(stderr):
        importlib.import_module(name)
