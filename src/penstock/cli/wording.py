"""How names, sizes and values are written for people.

In: what files hold, which may be anything. Out: a line of text, with no character that moves a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from penstock.foundation.wording import count
from penstock.jobs.table import escape

__all__ = ["complain", "escape", "write_count", "write_size", "write_value"]

_MAGICS = {
    b"\xff\xd8\xff": "jpeg",
    b"\x89PNG\r\n\x1a\n": "png",
    b"GIF8": "gif",
    b"BM": "bmp",
    b"RIFF": "webp",
}
_MOST_ITEMS = 16  # of a list: more than a line shows
_MOST_CHARS = 400  # of a text: likewise


def write_size(num_bytes: float) -> str:
    """Write a size.

    Example:
        >>> write_size(12345)
        '12.3 kB'
    """
    if num_bytes < 1000:
        return f"{num_bytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        num_bytes /= 1000
        if num_bytes < 999.95:
            return f"{num_bytes:.1f} {unit}"
    return f"{num_bytes / 1000:.1f} TB"


def write_count(number: int, noun: str) -> str:
    """Write a number of things.

    Example:
        >>> write_count(1234, "record")
        '1,234 records'
    """
    return count(number, noun).replace(str(number), f"{number:,}", 1)


def write_value(value: Any) -> str:
    """Write a value of a sample in a line; byte strings by what they are, long lists by how they begin."""
    if isinstance(value, bytes):
        return f"<{_name_bytes(value)} {write_size(len(value))}>"
    if isinstance(value, str):
        # Cut before it is escaped: a text may be of any length.
        return escape(value[:_MOST_CHARS]) + "…" * (len(value) > _MOST_CHARS) or "''"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim):
        return _write_items((write_value(item) for item in islice(value, _MOST_ITEMS)), len(value))
    return str(value)


def _write_items(items: Iterable[str], num_items: int) -> str:
    more = ["…"] if num_items > _MOST_ITEMS else []
    return f"[{', '.join([*items, *more])}]"


def _name_bytes(value: bytes) -> str:
    return next((name for magic, name in _MAGICS.items() if value.startswith(magic)), "bytes")


def complain(message: str) -> None:
    """Write one line about what is wrong to stderr."""
    print(f"penstock: {escape(message)}", file=sys.stderr)
