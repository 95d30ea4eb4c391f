"""How deep JSON is nested: asked before any parser sees it, as those call themselves level by level.

In: JSON text. Out: where it goes too deep. A deep one ends pyarrow's parser, and the process with it.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

MAX_DEPTH: Final = 100
"""Lists and objects inside one another, at most."""

_ESCAPE: Final = re.compile(rb"\\.")
_ALL_BUT_OPENS: Final = bytes(set(range(256)) - set(b"[{\n"))
_ALL_BUT_MARKS: Final = bytes(set(range(256)) - set(b'[]{}"\n'))


def find_deep(text: bytes) -> int | None:
    """Return how many lines stand before the first place that is too deep; None if there is no such."""
    if not _may_be_deep(text):
        return None
    bare = _ESCAPE.sub(b"", text) if b"\\" in text else text
    marks = np.frombuffer(bare.translate(None, _ALL_BUT_MARKS), np.uint8)
    is_end = marks == ord("\n")
    quotes = np.cumsum(marks == ord('"'))
    # Strings may hold brackets of any kind, but no line end.
    is_outside = (quotes - np.maximum.accumulate(np.where(is_end, quotes, 0))) % 2 == 0
    opens = ((marks == ord("[")) | (marks == ord("{"))) & is_outside
    closes = ((marks == ord("]")) | (marks == ord("}"))) & is_outside
    deep = np.flatnonzero(np.cumsum(opens.view(np.int8) - closes.view(np.int8), dtype=np.int64) > MAX_DEPTH)
    return int(np.count_nonzero(is_end[: deep[0]])) if len(deep) else None


def is_deep(text: bytes) -> bool:
    """Return whether lists or objects lie too deep in one another."""
    return find_deep(text) is not None


def _may_be_deep(text: bytes) -> bool:
    """Return whether a line has many brackets, or lines do not look like an object each."""
    if len(text) <= MAX_DEPTH or text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    # A brace before and behind every line end: then no sound value spans two lines.
    num_ends = text.count(b"\n") - text.endswith(b"\n")
    if text.count(b"}\n{") + text.count(b"}\r\n{") != num_ends:
        return True
    opens = np.frombuffer(text.translate(None, _ALL_BUT_OPENS), np.uint8)
    ends = np.flatnonzero(opens == ord("\n"))
    return bool((np.diff(ends, prepend=-1, append=len(opens)) - 1 > MAX_DEPTH).any())
