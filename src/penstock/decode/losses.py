"""Bad records: the errors for what the core finds in them, and the policy to raise, skip or collect them.

In: the numbers of native/record/status.h. Out: descriptions, and errors that name file, record, offset and
field; each is raised, or counted once and logged, up to one limit.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from penstock import _native
from penstock.errors import (
    CorruptRecordError,
    FieldError,
    MissingFieldError,
    PenstockError,
    TooManySkippedError,
)
from penstock.foundation.process import ProcessLock
from penstock.foundation.wording import declare, show
from penstock.settings.groups import OnError
from penstock.storage.store_path import AnyPath

_PAYLOAD_CRC, _FRAME_CHANGED, _FILE_ENDS = 1, 2, 3  # and 4: reading failed
# The statuses of a record whose index entry is wrong: the index must then be rebuilt.
INDEX_IS_WRONG = (_FRAME_CHANGED, _FILE_ENDS)
_WRONG_KIND, _WRONG_SIZE, _MISSING = 30, 32, 33
_MISFITS = {
    30: "kind",
    31: "number of values",
    32: "bytes of the raw tensor",
    34: "number of values in a step",
}

_KINDS = {0: "no kind", 1: "bytes", 2: "float", 3: "int64"}

_MALFORMED = {
    10: "a varint is too long",
    11: "a varint is truncated",
    12: "a length exceeds the enclosing message",
    13: "a field has the number 0",
    14: "a field has an unknown wire type",
    15: "a field has the wrong wire type",
    16: "a group has no matching end",
    17: "groups are nested too deeply",
    18: "the size of packed floats is not a multiple of four bytes",
    19: "a key is not UTF-8",
    20: "an integer has more than 64 bits",
    21: "a key, or the map itself, appears twice",
}


def describe_malformed(status: int) -> str:
    """Return the reason why a payload is not an Example."""
    return f"payload is not a valid Example: {_MALFORMED[status]}"


class _Wording(NamedTuple):
    """The arguments of the error for a fault."""

    error: type[PenstockError]
    what: str
    field: str
    expected: object = None
    got: object = None
    advice: str = ""


def make_error(
    path: AnyPath, record: int, offset: int, fault: _native.Fault, names: Sequence[str]
) -> PenstockError:
    """Return the error for a fault that the core found in a record."""
    _, status, number, expected, got, detail = fault
    field = names[number] if number >= 0 else None
    if status in _MALFORMED:
        wording = _word_message(status, field, detail)
    elif field is None:
        wording = _word_frame(status, expected, got)
    else:
        wording = _word_misfit(status, field, expected, got)
    return wording.error(
        wording.what,
        path=path,
        record=record,
        offset=offset,
        field=wording.field,
        expected=wording.expected,
        got=wording.got,
        advice=wording.advice or f"Run 'penstock verify {path}'.",
    )


def _word_frame(status: int, expected: int, got: int) -> _Wording:
    if status == _PAYLOAD_CRC:
        crcs = f"{expected:#010x}", f"{got & 0xFFFFFFFF:#010x}"
        return _Wording(CorruptRecordError, "payload CRC", "payload", *crcs)
    if status == _FRAME_CHANGED:
        what = "header (it differs from the index)"
        return _Wording(CorruptRecordError, what, "length", f"length {expected}", f"length {got}")
    if status == _FILE_ENDS:
        what = "frame (the file ends inside it)"
        return _Wording(CorruptRecordError, what, "payload", f"{expected} bytes", f"{got} bytes")
    return _Wording(CorruptRecordError, f"reading failed ({os.strerror(got)})", "payload")


def _word_message(status: int, field: str | None, detail: bytes) -> _Wording:
    prefix = f"field {show(field)}: " if field is not None else ""
    shown = f" (it begins with {detail!r})" if detail else ""
    return _Wording(CorruptRecordError, prefix + describe_malformed(status) + shown, field or "payload")


def _word_misfit(status: int, field: str, expected: int, got: int) -> _Wording:
    if status == _MISSING:
        what, advice = f"field {show(field)} is missing", "Declare it with a default, or with optional=True."
        return _Wording(MissingFieldError, what, field, "a value", "none", advice)
    what = f"field {show(field)}: {_MISFITS[status]}"
    advice = f"Declare its type, such as {declare(field, _suggest_type(status, got))}."
    if status == _WRONG_KIND:
        return _Wording(FieldError, what, field, _KINDS[expected], _KINDS[got], advice)
    return _Wording(FieldError, what, field, expected, got, advice)


def _suggest_type(status: int, got: int) -> str:
    if status == _WRONG_KIND:
        return "Bytes()" if _KINDS[got] == "bytes" else "Number()"
    return "Tensor(...)" if status == _WRONG_SIZE else "Sequence()"


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

    def items(self) -> list[tuple[int, PenstockError]]:
        """Return all bad rows so far with their errors, in order."""
        with self._lock:
            return sorted(self._errors.items(), key=itemgetter(0))

    def errors(self) -> list[PenstockError]:
        """Return the errors of all bad records so far, in the order of rows."""
        return [error for _, error in self.items()]
