"""Runs a command: its module is loaded when it runs, so that help and simple errors appear at once.

In: a `Call`. Out: the exit status, or an error that is found before the packages of the command are loaded,
which takes seconds. The module of a command imports its job, and with it pyarrow or Keras, at the top;
nothing else imports that module.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from typing import Final

from penstock.cli.interrupt import exit_on_interrupt
from penstock.cli.terminal import print_detail
from penstock.errors import OptionError, importing
from penstock.foundation.keras_backend import VARIABLE, held_stderr, importing_keras
from penstock.settings.command_line import Call, name_flag
from penstock.settings.training import Workers


def run_command(call: Call) -> int:
    """Load the module of a command, run it, and return the exit status."""
    if not call.command.reads_stdin or "-" not in call.arguments:
        return _run(call)
    # Loaded late: the help of a command does not need it.
    from penstock.cli.standard_input import reading_standard_input  # noqa: PLC0415

    with reading_standard_input(call) as given:
        return _run(given)


def _run(call: Call) -> int:
    _check_early(call)
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


def _check_early(call: Call) -> None:
    """Refuse paths in object stores where only a disk is supported, and what the command itself can check."""
    for flag, each in call.command.list_flags().items():
        value = call.values.get(flag)
        if each.kind.is_local and isinstance(value, str | os.PathLike):
            from penstock.storage.store_path import take_local_path  # noqa: PLC0415 - helps do not need it

            take_local_path(value, flag)
    check = _CHECKS.get(call.command.name)
    if check is not None:
        check(call)


def _refuse_missing_path(path: str) -> None:
    """Refuse a local path that does not exist; objects are looked up when they are opened."""
    from penstock.storage.paths import refuse_missing  # noqa: PLC0415 - NumPy, which the help does not need
    from penstock.storage.store_path import as_path  # noqa: PLC0415 - as above

    refuse_missing(as_path(path))


def _check_run(call: Call) -> None:
    _refuse_missing_path(call.arguments[0])


def _check_train(call: Call) -> None:
    """Find wrong paths and targets, and choose the backend of several workers."""
    from penstock.cli.target_check import check_target  # noqa: PLC0415 - what the help does not need

    for path in call.arguments:
        if not any(sign in path for sign in "*?["):
            _refuse_missing_path(path)
    check_target(call)
    workers = call.read(Workers)
    if workers.engine != "local" or (workers.num_workers or 1) > 1 or (workers.num_devices or 1) > 1:
        # Only JAX trains over several processes. A backend that the user has chosen is refused later.
        os.environ.setdefault(VARIABLE, "jax")


_CHECKS: Final[dict[str, Callable[[Call], None]]] = {
    "train": _check_train,
    "evaluate": _check_run,
    "predict": _check_run,
    "export": _check_run,
}
