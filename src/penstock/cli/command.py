"""Commands whose modules are loaded when they run, so that help and simple errors appear at once.

In: what a command is called with. Out: its exit status. The module of a command imports its job, and with it
pyarrow or Keras, at the top; nothing else imports that module.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.cli.interrupt import exit_on_interrupt
from penstock.cli.terminal import print_detail
from penstock.errors import importing
from penstock.foundation.keras_backend import held_stderr, importing_keras
from penstock.storage.store_path import take_local_path

_LOCAL_OPTIONS: Final = (
    *("config", "plan_file", "pipeline", "cache", "model", "image_weights", "write_model"),
)
"""Options with the path of a local file or folder."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command: its help, its arguments, and the module that runs it.

    Attributes:
        module: Name of the module, whose function `run` takes the parsed arguments and returns the exit
            status.
        summary: One line for the list of commands.
        description: A paragraph for the help of the command.
        example: A command line that shows typical use.
        add_arguments: Adds the arguments to a parser.
        extra: The extra that installs the packages which the module needs; by default, the one that has the
            missing package.
        keras: Name of a module that loads Keras, to be imported first, without what its libraries write to
            stderr; None for a command that does not need Keras.
        check: Finds wrong arguments that need no job to be found, before anything is loaded.
        main_options: Options that `--help` shows, in that order, with spaces between; if empty, it shows all.
    """

    module: str
    summary: str
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    extra: str | None = None
    keras: str | None = None
    check: Callable[[argparse.Namespace], None] | None = None
    main_options: str = ""

    def run(self, args: argparse.Namespace) -> int:
        """Load the module, run the command, and return the exit status.

        Raises:
            OptionError: An option that needs a local path names something in an object store.
            MissingPackageError: A package that the command needs is not installed.
        """
        if "-" not in (getattr(args, "paths", None) or ()):
            return self._run(args)
        # Loaded late: the help of a command does not need it.
        from penstock.cli.standard_input import reading_standard_input  # noqa: PLC0415

        with reading_standard_input(args) as given:
            return self._run(given)

    def _run(self, args: argparse.Namespace) -> int:
        for name in _LOCAL_OPTIONS:
            value = getattr(args, name, None)
            if isinstance(value, str):
                take_local_path(value, f"--{name.replace('_', '-')}")
        if self.check is not None:
            self.check(args)
        name = f"penstock {args.command}"
        packages = importing(name, self.extra) if self.keras is None else importing_keras(name)
        start = time.monotonic()
        with exit_on_interrupt(), packages:
            if self.keras is not None:
                import_quietly(self.keras)
            module = importlib.import_module(self.module)
        print_detail(f"{args.command}: loading packages: {time.monotonic() - start:.2f} s")
        return int(module.run(args))


def import_quietly(name: str) -> None:
    """Import a module, and hold back what it and its libraries write to stderr unless the import fails."""
    with held_stderr() as stderr, exit_on_interrupt(stderr):
        importlib.import_module(name)
