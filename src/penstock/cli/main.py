"""The entry point of the `penstock` command, which handles Ctrl-C before anything large is imported."""

from __future__ import annotations

import sys

from penstock.cli.interrupt import watch_interrupts

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    `argv`: the arguments after `penstock`; by default, the arguments of the process. Signals are handled in
    that case alone: a program that calls this function keeps its own handlers.
    """
    if argv is None:
        watch_interrupts()
    from penstock.cli.dispatch import dispatch  # noqa: PLC0415 - Ctrl-C is handled before this import

    return dispatch(sys.argv[1:] if argv is None else argv)
