"""What Ctrl-C does to the `penstock` command: one line and exit status 130, from its first import to its end.

In: the phase of the process. Out: a handler of SIGINT for it. While modules are loaded nothing needs to be
cleaned up, and libraries turn an exception into anything: the process ends at once. While a command works,
SIGINT is a `KeyboardInterrupt`, as usual. Imports next to nothing: it is what the command loads first.
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
"""The exit status, as shells have it: 128 and the number of the signal."""

_RETRY_SECONDS = 0.05


def watch_interrupts() -> None:
    """Handle SIGINT from now on, unless the process ignores it, as one in the background of a shell does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        sys.unraisablehook = _interrupt_again
        # The first to be registered runs last: after it the interpreter would let SIGINT kill the process.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGINT, _leave_at_once(2))


def begin_work() -> None:
    """Let SIGINT raise `KeyboardInterrupt`: what the command does can be cleaned up."""
    if _is_watching():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_work(status: int) -> None:
    """Let SIGINT end the process with its exit status: the work is done, and the interpreter shuts down."""
    if _is_watching():
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(status))


class loading:  # noqa: N801 - a context manager, named as a function is
    """While large modules are imported, before any work, let SIGINT end the process at once.

    Args:
        stderr: The file descriptor for the message, where stderr is held back meanwhile.
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
            # A display that hides the cursor of a terminal while something is loaded cannot restore it.
            restore = b"\r\x1b[J\x1b[?25h" if os.isatty(stderr) else b""
            os.write(stderr, restore + b"penstock: interrupted.\n")
        finally:
            os._exit(INTERRUPTED)

    return leave


def _interrupt_again(unraisable: Any) -> None:
    """Repeat an interrupt that was raised in a destructor, where Python prints it and continues."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    from threading import Timer, main_thread  # noqa: PLC0415 - see above

    timer = Timer(_RETRY_SECONDS, signal.pthread_kill, [main_thread().ident, signal.SIGINT])
    timer.daemon = True
    timer.start()
