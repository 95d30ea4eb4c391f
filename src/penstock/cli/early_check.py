"""Faults of a call that are found before the packages of its command are loaded, which takes seconds.

In: a `Call`. Out: nothing, or the error that the command would raise later.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from penstock.foundation.keras_backend import VARIABLE
from penstock.settings.command_line import Call
from penstock.settings.training import Workers


def check_early(call: Call) -> None:
    """Refuse paths in object stores where only a disk is supported, and what the command itself can check."""
    for flag, each in call.command.list_flags().items():
        value = call.values.get(flag)
        if each.kind.is_local and isinstance(value, str | os.PathLike):
            from penstock.storage.store_path import take_local_path  # noqa: PLC0415 - helps do not need it

            take_local_path(value, flag)
    check = _CHECKS.get(call.command.name)
    if check is not None:
        check(call)


def refuse_missing_path(path: str) -> None:
    """Refuse a local path that does not exist; objects are looked up when they are opened."""
    from penstock.storage.paths import refuse_missing  # noqa: PLC0415 - NumPy, which the help does not need
    from penstock.storage.store_path import as_path  # noqa: PLC0415 - as above

    refuse_missing(as_path(path))


def _check_run(call: Call) -> None:
    refuse_missing_path(call.arguments[0])


def _check_train(call: Call) -> None:
    """Find wrong paths and targets, and choose the backend of several workers."""
    from penstock.cli.target_check import check_target  # noqa: PLC0415 - what the help does not need

    for path in call.arguments:
        if not any(sign in path for sign in "*?["):
            refuse_missing_path(path)
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
