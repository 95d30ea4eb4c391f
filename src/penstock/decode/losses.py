"""What becomes of records that cannot be used: one policy, one ceiling, one account.

In: the error of each bad record. Out: the error raised, or the record counted and named.
"""

from __future__ import annotations

import logging

from penstock.errors import PenstockError, TooManySkippedError
from penstock.foundation.option_checks import OnError
from penstock.foundation.process import ProcessLock

_log = logging.getLogger("penstock")


class Losses:
    """Counts each bad record of a split once, however often it is met."""

    def __init__(self, on_error: OnError, max_skipped: int) -> None:
        self.on_error = on_error
        self._max_skipped = max_skipped
        self._lock = ProcessLock()
        self._errors: dict[int, PenstockError] = {}

    def add(self, row: int, error: PenstockError) -> None:
        """Account for a bad record.

        Raises:
            PenstockError: The error itself, under "raise".
            TooManySkippedError: One record too many, under "skip" and "collect".
        """
        if self.on_error == "raise":
            raise error
        with self._lock:
            if row in self._errors:
                return
            # One too many is not taken into the account: it is refused again when it is met again.
            count = len(self._errors) + 1
            if count <= self._max_skipped:
                self._errors[row] = error
        if count > self._max_skipped:
            raise TooManySkippedError(
                f"{count} records could not be used",
                path=error.path,
                record=error.record,
                expected=f"at most {self._max_skipped} (max_skipped)",
                got=count,
                advice="Run 'penstock verify', or raise max_skipped ('penstock convert --max-rejects').",
            ) from error
        if self.on_error == "skip":
            _log.warning("skipped: %s", error)

    def __len__(self) -> int:
        return len(self._errors)

    def first(self) -> tuple[int, PenstockError]:
        """Return the first row lost, and why."""
        row = min(self._errors)
        return row, self._errors[row]

    def errors(self) -> list[PenstockError]:
        """Return the errors of all records lost so far, in the order of rows."""
        with self._lock:
            return [self._errors[row] for row in sorted(self._errors)]
