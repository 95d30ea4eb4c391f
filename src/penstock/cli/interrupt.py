"""Ctrl-C in the `penstock` command: one line and exit status 130, from the first import to the end.

In: the phase of the process. Out: a handler of SIGINT for that phase. While modules are loaded, nothing needs
cleaning up, and libraries may swallow an exception: the process ends at once. While a command works, SIGINT
raises `KeyboardInterrupt` as usual. This module is loaded first and imports almost nothing.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

INTERRUPTED = 130
"""Exit status by the convention of shells: 128 plus the number of the signal."""

_RETRY_SECONDS = 0.05


def watch_interrupts() -> None:
    """Handle SIGINT from now on, unless the process ignores it, as background jobs of a shell do."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        sys.unraisablehook = _interrupt_again
        # Registered first, so it runs last: after it, SIGINT would kill the interpreter with a traceback.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGINT, _leave_at_once(2))


def begin_work() -> None:
    """Let SIGINT raise `KeyboardInterrupt`, so that the command can clean up."""
    if _is_watching():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_work(status: int) -> None:
    """Let SIGINT end the process with its exit status: the work is done, the interpreter shuts down."""
    if _is_watching():
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(status))


class exit_on_interrupt:  # noqa: N801 - a context manager, named like a function
    """Context in which SIGINT ends the process at once; for imports of large modules, before any work.

    `stderr` is the file descriptor for the message, in case stderr is redirected meanwhile.
    """

    def __init__(self, stderr: int = 2) -> None:
        self._stderr = stderr

    def __enter__(self) -> None:
        """Change the handler."""
        if _is_watching():
            self._before = signal.signal(signal.SIGINT, _leave_at_once(self._stderr))

    def __exit__(self, *_: object) -> None:
        """Restore the handler."""
        if _is_watching():
            signal.signal(signal.SIGINT, self._before)


def _is_watching() -> bool:
    return sys.unraisablehook is _interrupt_again


def _leave_at_once(stderr: int) -> Callable[[int, FrameType | None], Any]:
    def leave(_number: int, _frame: FrameType | None) -> None:
        try:
            # A display on a terminal cannot clean up after itself any more.
            restore = b"\r\x1b[J\x1b[?25h" if os.isatty(stderr) else b""
            os.write(stderr, restore + b"penstock: interrupted.\n")
        finally:
            os._exit(INTERRUPTED)

    return leave


def _interrupt_again(unraisable: Any) -> None:
    """Raise an interrupt again that came in a destructor, where Python prints and ignores it."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    from threading import Timer, main_thread  # noqa: PLC0415 - see above

    timer = Timer(_RETRY_SECONDS, signal.pthread_kill, [main_thread().ident, signal.SIGINT])
    timer.daemon = True
    timer.start()
