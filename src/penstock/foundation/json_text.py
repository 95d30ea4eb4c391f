"""JSON text: written quickly, one value per line; parsed strictly; and how deep a text is nested.

In: plain dicts, lists and scalars, or JSON text. Out: text, values, or where it is nested too deep for
parsers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any, Final

import numpy as np

from penstock.foundation.wording import show

_COMPACT = json.JSONEncoder(allow_nan=False).encode

MAX_DEPTH: Final = 100
"""Maximum depth of nested lists and objects."""

_ESCAPE: Final = re.compile(rb"\\.")
_ALL_BUT_OPENS: Final = bytes(set(range(256)) - set(b"[{\n"))
_ALL_BUT_MARKS: Final = bytes(set(range(256)) - set(b'[]{}"\n'))


def write_json(value: Any, indent: int) -> str:
    """Return a value as JSON, indented by `indent` spaces per level.

    Example:
        >>> print(write_json({"ages": [3, 4]}, 1))
        {
         "ages": [
          3,
          4
         ]
        }
    """
    parts: list[str] = []
    _write(value, "\n", " " * indent, parts.append)
    return "".join(parts)


def _write(value: Any, line: str, step: str, add: Callable[[str], None]) -> None:
    kind = type(value)
    if kind is str:
        add(encode_basestring_ascii(value))
    elif isinstance(value, dict) and value:
        inner = line + step
        start = "{" + inner
        for key, item in value.items():
            name = encode_basestring_ascii(key) if type(key) is str else _write_key(key)
            if type(item) is str:  # most values are: one call less for each
                add(f"{start}{name}: {encode_basestring_ascii(item)}")
            else:
                add(f"{start}{name}: ")
                _write(item, inner, step, add)
            start = "," + inner
        add(line + "}")
    elif isinstance(value, list | tuple) and value:
        inner = line + step
        start = "[" + inner
        for item in value:
            add(start)
            _write(item, inner, step, add)
            start = "," + inner
        add(line + "]")
    elif kind is int:
        add(repr(value))
    elif kind is bool:
        add("true" if value else "false")
    else:
        add(_COMPACT(value))


def _write_key(key: Any) -> str:
    return _COMPACT({key: None})[1:-7]


def parse_json(text: bytes, *, takes_nan: bool = False) -> Any:
    """Return the value of a JSON text in which no object has a key twice.

    `takes_nan`: whether `NaN` and `Infinity`, which are no JSON, are accepted, for a reader that names their
    path.

    Example:
        >>> parse_json(b'{"ages": [3], "ages": [4]}')
        Traceback (most recent call last):
        ValueError: the key 'ages' twice in one object
    """
    try:
        return json.loads(
            text, object_pairs_hook=_make_object, parse_constant=float if takes_nan else _refuse_constant
        )
    except RecursionError:
        raise ValueError("too many nested levels") from None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in result if keys.count(key) > 1)
        raise ValueError(f"the key {show(duplicate)} twice in one object")
    return result


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name}, which is not a JSON number")


def find_deep(text: bytes) -> int | None:
    """Return the number of lines before the first text that is nested too deeply, or None."""
    if not _may_be_deep(text):
        return None
    bare = _ESCAPE.sub(b"", text) if b"\\" in text else text
    marks = np.frombuffer(bare.translate(None, _ALL_BUT_MARKS), np.uint8)
    is_end = marks == ord("\n")
    quotes = np.cumsum(marks == ord('"'))
    # Strings may contain brackets of any kind, but no line end.
    is_outside = (quotes - np.maximum.accumulate(np.where(is_end, quotes, 0))) % 2 == 0
    opens = ((marks == ord("[")) | (marks == ord("{"))) & is_outside
    closes = ((marks == ord("]")) | (marks == ord("}"))) & is_outside
    deep = np.flatnonzero(np.cumsum(opens.view(np.int8) - closes.view(np.int8), dtype=np.int64) > MAX_DEPTH)
    return int(np.count_nonzero(is_end[: deep[0]])) if len(deep) else None


def is_deep(text: bytes) -> bool:
    """Return whether lists or objects are nested too deeply."""
    return find_deep(text) is not None


def _may_be_deep(text: bytes) -> bool:
    """Return whether a line has many brackets, or not every line looks like one object."""
    if len(text) <= MAX_DEPTH or text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return False
    # If every line end has a brace before and after it, no valid value spans two lines.
    num_ends = text.count(b"\n") - text.endswith(b"\n")
    if text.count(b"}\n{") + text.count(b"}\r\n{") != num_ends:
        return True
    opens = np.frombuffer(text.translate(None, _ALL_BUT_OPENS), np.uint8)
    ends = np.flatnonzero(opens == ord("\n"))
    return bool((np.diff(ends, prepend=-1, append=len(opens)) - 1 > MAX_DEPTH).any())
