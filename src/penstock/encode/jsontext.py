"""Text that holds JSON lists.

In: raw columns of text. Out: columns of Python lists, for the encoders of sequences and tensors.
"""

from __future__ import annotations

import json
from typing import Final

from penstock.encode.fault import Report
from penstock.encode.plain import as_objects
from penstock.encode.text import convert_text
from penstock.foundation.json_text import MAX_DEPTH, is_deep
from penstock.foundation.wording import show
from penstock.source.block import RawColumn

EXPECTED: Final = "a JSON list"


def parse_lists(raw: RawColumn, report: Report) -> RawColumn:
    """Return the lists that texts hold; those that hold none are reported, and missing like JSON's null."""
    text = convert_text(raw, report)
    is_there = [True] * len(text) if text.present is None else text.present.tolist()
    cells = enumerate(zip(text, is_there, strict=True))
    return as_objects([_parse(row, value, report) if there else None for row, (value, there) in cells])


def _parse(row: int, value: bytes, report: Report) -> object:
    if is_deep(value):
        report(row, f"{EXPECTED} of at most {MAX_DEPTH} levels", "more levels")
        return None
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    if parsed is None or isinstance(parsed, list):
        return parsed
    report(row, EXPECTED, show(value.decode(errors="replace")))
    return None
