"""Jupyter notebooks: whether the program runs in one, and lines of progress in one output that is updated.

In: lines of text. Out: a display of the notebook, as plain text: terminal escapes would be shown as such.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.foundation.terminal import LiveLines, escape, shorten

_COLUMNS: Final = 110
_MAX_LINES: Final = 200  # each update sends all of them
_SECONDS_BETWEEN: Final = 0.5
_MIME: Final = "text/plain"


def is_notebook() -> bool:
    """Whether the program runs in the kernel of a notebook, which has loaded IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class NotebookLines(LiveLines):
    """Lines that stay and lines that are replaced, in one output of a notebook.

    Args:
        show: Publishes the data of a display by MIME type; the second argument is whether it replaces the
            first. By default in the notebook.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        show: Callable[[dict[str, str], bool], None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        size = os.terminal_size((_COLUMNS + 1, _MAX_LINES))
        super().__init__(clock=clock, size=lambda: size, seconds_between=_SECONDS_BETWEEN)
        self._encoding = "utf-8"
        self._show = show or _make_publisher()
        self._kept: list[str] = []
        self._drawn: list[str] = []
        self._num_dropped = 0
        self._is_shown = False
        self.is_live = True

    def draw(self, lines: Sequence[str], *, bold: int | None = None) -> None:  # noqa: ARG002 - plain text
        """Replace the lines that were drawn before."""
        self._drawn = [shorten(escape(line), _COLUMNS) for line in lines]
        self._update()

    def print(self, line: str) -> None:
        """Add a line that stays, above the next drawing; of very many lines, the last ones are shown."""
        self._drawn = []
        self._kept.append(self.clean(line))
        if len(self._kept) > _MAX_LINES:
            del self._kept[0]
            self._num_dropped += 1
        self._update()

    def clear(self) -> None:
        """Remove the lines that were drawn."""
        if self._drawn:
            self._drawn = []
            self._update()

    def _update(self) -> None:
        if self.is_broken:
            return
        before = [f"… {self._num_dropped} lines before"] if self._num_dropped else []
        text = "\n".join([*before, *self._kept, *self._drawn])
        try:
            self._show({_MIME: text}, self._is_shown)
        except Exception:  # the frontend is gone; the work continues without a display
            self.is_broken = True
            self.is_live = False
        self._is_shown = True


def _make_publisher() -> Callable[[dict[str, str], bool], None]:
    """Return a function that publishes one display of the running notebook, and updates it."""
    from IPython.display import display, update_display  # noqa: PLC0415 - a kernel has loaded it

    handles: list[Any] = []

    def publish(data: dict[str, str], is_update: bool) -> None:
        if is_update:
            update_display(data, display_id=handles[0].display_id, raw=True)
        else:
            handles.append(display(data, raw=True, display_id=True))

    return publish
