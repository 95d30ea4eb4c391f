"""The entry point of the `penstock` command, which handles Ctrl-C before anything large is imported."""

from __future__ import annotations

import sys

from penstock.cli.interrupt import watch_interrupts

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    Args:
        argv: The words after `penstock`; those of the process, if not given. Only then are the signals of the
            process handled: a program that calls this keeps its own handlers.
    """
    if argv is None:
        watch_interrupts()
    from penstock.cli.dispatch import dispatch  # noqa: PLC0415 - NumPy and the core, half a second

    return dispatch(sys.argv[1:] if argv is None else argv)
