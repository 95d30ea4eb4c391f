"""The policy for bad records: raise, skip or collect, with one limit and one count.

In: the error of each bad record. Out: the error raised, or the record counted and logged.
"""

from __future__ import annotations

import logging

from penstock.errors import PenstockError, TooManySkippedError
from penstock.foundation.process import ProcessLock
from penstock.settings.groups import OnError

_log = logging.getLogger("penstock")


class Losses:
    """Counts each bad record of a split once, even if it is read several times."""

    def __init__(self, on_error: OnError, max_skipped: int) -> None:
        self.on_error = on_error
        self._max_skipped = max_skipped
        self._lock = ProcessLock()
        self._errors: dict[int, PenstockError] = {}

    def add(self, row: int, error: PenstockError) -> None:
        """Handle a bad record."""
        if self.on_error == "raise":
            raise error
        with self._lock:
            if row in self._errors:
                return
            # The record beyond the limit is not added, so that reading it again raises again.
            count = len(self._errors) + 1
            if count <= self._max_skipped:
                # Without the traceback, whose frames hold the batch that the record was read for.
                self._errors[row] = error.with_traceback(None)
        if count > self._max_skipped:
            raise TooManySkippedError(
                f"{count} bad records were skipped",
                path=error.path,
                record=error.record,
                expected=f"at most {self._max_skipped} (max_skipped)",
                got=count,
                advice="Run 'penstock verify', or allow more: `max_skipped=N`.",
            ) from error
        if self.on_error == "skip":
            _log.warning("skipped: %s", error)

    def __len__(self) -> int:
        return len(self._errors)

    def first(self) -> tuple[int, PenstockError]:
        """Return the first bad row and its error."""
        row = min(self._errors)
        return row, self._errors[row]

    def errors(self) -> list[PenstockError]:
        """Return the errors of all bad records so far, in the order of rows."""
        with self._lock:
            return [self._errors[row] for row in sorted(self._errors)]
