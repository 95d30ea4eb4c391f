"""Samples from columns: one dict of Python and NumPy objects per row, and their values in few characters.

In: columns and their schema, or any value of a sample. Out: one dict per row, without the fields that the
record lacks; short texts for people, and short values that JSON can hold. Nothing here raises because of a
value, and the work does not grow with the length of displayed values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from penstock.columns import Column, Columns
from penstock.foundation.wording import decode_text
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.date import Date, as_times, show_time
from penstock.schema.field import Field
from penstock.schema.picture import read_picture
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema

Sample = dict[str, Any]

MAX_CHARS: Final = 200
"""Number of characters of a text that are kept."""

MAX_ITEMS: Final = 8
"""Number of items of a list that are kept."""

_SIX_DIGITS: Final = 1e5
_THREE_DIGITS: Final = 100
_LARGEST_EXACT: Final = 1e15  # whole numbers below are written with all their digits


def iterate_samples(columns: Columns, schema: Schema, num_rows: int | None = None) -> Iterator[Sample]:
    """Yield the rows of columns as samples; pass `num_rows` if there may be no column."""
    if num_rows is None:
        num_rows = max((len(column) for column in columns.values()), default=0)
    getters = [(name, column, _getter(schema[name], column)) for name, column in columns.items()]
    for row in range(num_rows):
        yield {
            name: get(row)
            for name, column, get in getters
            if column.present is None or column.present[row] or schema[name].default is not None
        }


def _getter(field: Field, column: Column) -> Callable[[int], Any]:
    decode = decode_text if IS_TEXT[type(field)](field) else bytes
    values = column.unwrap()
    if isinstance(field, Date) and isinstance(values, np.ndarray):
        times = as_times(values, field.unit)
        return lambda row: times[row]
    if isinstance(values, np.ndarray) and values.ndim == 1 and field.type_name != "tensor":
        return lambda row: values[row].item()
    return lambda row: _own(column[row], decode)


def _own(value: Any, decode: Callable[[bytes], Any]) -> Any:
    """Return a value that shares no memory with its column; byte strings are decoded."""
    if isinstance(value, bytes):
        return decode(value)
    if isinstance(value, list):
        return [_own(item, decode) for item in value]
    return value.copy()


# Whether the byte strings of each type of field are texts.
IS_TEXT: dict[type[Field], Callable[[Any], bool]] = {
    Number: lambda _: False,
    Category: lambda _: True,
    Date: lambda _: False,
    Text: lambda _: True,
    Image: lambda _: False,
    BytesField: lambda _: False,
    SequenceField: lambda field: field.dtype == "string",
    Tensor: lambda _: False,
}


def show_number(value: Any) -> str:
    """Return a number as text, with at least six significant digits, and without a power of ten below 1e15.

    Example:
        >>> show_number(3.0), show_number(0.1 + 0.2), show_number(True)
        ('3', '0.3', 'true')
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return str(int(value))
    number = float(value)
    if math.isfinite(number) and number == int(number) and abs(number) < _LARGEST_EXACT:
        return str(int(number))
    return f"{number:.0f}" if _SIX_DIGITS <= abs(number) < _LARGEST_EXACT else f"{number:.6g}"


def round_measure(value: float) -> float:
    """Return a computed number, such as a mean, with three significant digits, or as a whole number.

    Example:
        >>> round_measure(2.36259), round_measure(117.554), round_measure(12345.6)
        (2.36, 118.0, 12346.0)
    """
    if not math.isfinite(value):
        return value
    return float(round(value)) if abs(value) >= _THREE_DIGITS else float(f"{value:.3g}")


def describe_bytes(value: bytes) -> str:
    """Return the number of bytes; of an image also its format and its size in pixels.

    Example:
        >>> describe_bytes(b"GIF89a" + bytes([64, 0, 48, 0])), describe_bytes(b"abc")
        ('gif 64 × 48, 10 bytes', '3 bytes')
    """
    num_bytes = f"{len(value):,} {'byte' if len(value) == 1 else 'bytes'}"
    picture = read_picture(value)
    if picture is None:
        return num_bytes
    size = f" {picture.width} × {picture.height}" if picture.width else ""
    return f"{picture.format}{size}, {num_bytes}"


def show_value(value: Any, max_chars: int = MAX_CHARS) -> str:
    """Return a value as a short text.

    `value`: the value; None if the record lacks it.

    Example:
        >>> show_value([1, 2.5, "a"]), show_value("a long text", max_chars=6), show_value(None)
        ('[1, 2.5, a]', 'a long…', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value if len(value) <= max_chars else f"{value[:max_chars]}…"
    if (text := _describe(value)) is not None:
        return text
    if isinstance(value, np.datetime64):
        return show_time(value)
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    if isinstance(value, list | np.ndarray):
        items = [show_value(each, max_chars) for each in value[:MAX_ITEMS]]
        more = [f"… {len(value) - len(items):,} more"] if len(value) > len(items) else []
        return f"[{', '.join([*items, *more])}]"
    return show_number(value) if isinstance(value, int | float | np.number | np.bool_) else str(value)


def shorten_value(value: Any) -> Any:
    """Return a value as JSON can hold it, in at most a few hundred characters.

    Example:
        >>> shorten_value([1, 2.5, "a"]), shorten_value(b"abc"), shorten_value(float("nan"))
        ([1, 2.5, 'a'], '3 bytes', 'nan')
    """
    if isinstance(value, str | np.datetime64):
        return show_value(value)
    if (text := _describe(value)) is not None:
        return text
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim):
        items = [shorten_value(each) for each in value[:MAX_ITEMS]]
        return [*items, "…"] if len(value) > MAX_ITEMS else items
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _describe(value: Any) -> str | None:
    """Return the description of bytes and of arrays with several sides; None for other values."""
    if isinstance(value, bytes):
        return describe_bytes(value)
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"{value.dtype} ({', '.join(map(str, value.shape))})"
    return None
