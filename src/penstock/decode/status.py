"""What the core's statuses mean.

In: the numbers of native/status.h. Out: words, and the errors that name file, record, offset and field.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from penstock import _native
from penstock.errors import CorruptRecordError, FieldError, MissingFieldError, PenstockError

_PAYLOAD_CRC, _FRAME_CHANGED, _FILE_ENDS, _READ_FAILED = 1, 2, 3, 4
# What a record is found to be where the index is wrong: then the index must be made anew.
INDEX_IS_WRONG = (_FRAME_CHANGED, _FILE_ENDS)
_WRONG_KIND, _WRONG_COUNT, _WRONG_SIZE, _MISSING, _WRONG_STEP_COUNT = 30, 31, 32, 33, 34

_KINDS = {0: "no kind", 1: "bytes", 2: "float", 3: "int64"}

_MALFORMED = {
    10: "a varint takes more bytes than it can",
    11: "a varint ends before its last byte",
    12: "a length runs past what holds it",
    13: "a field has the number 0",
    14: "a field has a wire type that does not exist",
    15: "a field has a wire type that it cannot have",
    16: "a group does not end, or ends as another",
    17: "groups are nested too deep",
    18: "packed floats are no multiple of four bytes",
    19: "a key is not UTF-8",
    20: "an integer has more than 64 bits",
    21: "a key, or the map itself, stands there twice",
}


def describe_malformed(status: int) -> str:
    """Say in words why a payload is no Example."""
    return f"payload is no Example: {_MALFORMED[status]}"


def make_error(  # noqa: PLR0911 - a return for each status
    path: Path, record: int, offset: int, fault: _native.Fault, names: Sequence[str]
) -> PenstockError:
    """Return the error for a fault that the core found in a record."""
    _, status, number, expected, got, detail = fault
    field = names[number] if number >= 0 else None
    verify = f"Run 'penstock verify {path}'."

    def corrupt(what: str, part: str, wanted: object = None, there: object = None) -> PenstockError:
        return CorruptRecordError(
            what,
            path=path,
            record=record,
            offset=offset,
            field=part,
            expected=wanted,
            got=there,
            advice=verify,
        )

    if status == _PAYLOAD_CRC:
        return corrupt("payload CRC", "payload", f"{expected:#010x}", f"{got & 0xFFFFFFFF:#010x}")
    if status == _FRAME_CHANGED:
        return corrupt(
            "header (not the one that was indexed)", "length", f"length {expected}", f"length {got}"
        )
    if status == _FILE_ENDS:
        return corrupt("frame (the file ends inside it)", "payload", f"{expected} bytes", f"{got} bytes")
    if status == _READ_FAILED:
        return corrupt(f"reading failed ({os.strerror(got)})", "payload")
    if status in _MALFORMED:
        part = f"field {field!r}: " if field is not None else ""
        shown = f" (it begins with {detail!r})" if detail else ""
        return corrupt(part + describe_malformed(status) + shown, field or "payload")

    def misfit(
        kind: type[FieldError], what: str, wanted: object, there: object, advice: str
    ) -> PenstockError:
        return kind(
            f"field {field!r}{what}",
            path=path,
            record=record,
            offset=offset,
            field=field,
            expected=wanted,
            got=there,
            advice=advice,
        )

    if status == _MISSING:
        return misfit(
            MissingFieldError,
            " is missing",
            "a value",
            "none",
            "Declare it with a default, or with optional=True.",
        )
    tell = f"Tell what it is with fields={{{field!r}: …}}."
    if status == _WRONG_KIND:
        return misfit(FieldError, ": kind", _KINDS[expected], _KINDS[got], tell)
    if status == _WRONG_COUNT:
        return misfit(FieldError, ": number of values", expected, got, tell)
    if status == _WRONG_STEP_COUNT:
        return misfit(FieldError, ": number of values in a step", expected, got, tell)
    if status == _WRONG_SIZE:
        return misfit(FieldError, ": bytes of the raw tensor", expected, got, tell)
    return corrupt(f"unknown status {status}", "payload")
