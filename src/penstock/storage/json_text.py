"""JSON with one value per line, written quickly.

In: plain dicts, lists and scalars. Out: the text that `json.dumps(value, indent=…)` makes, which uses no
compiled code where lines are indented: a table of 100,000 columns has millions of values.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any

_COMPACT = json.JSONEncoder(allow_nan=False).encode


def write_json(value: Any, indent: int) -> str:
    """Return a value as JSON, indented by so many spaces per level.

    Raises:
        ValueError: A number is NaN or infinite.

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
    """Return a key that is not a text as JSON has it."""
    return _COMPACT({key: None})[1:-7]
