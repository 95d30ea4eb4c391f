"""Wording of messages: values, counts, lists of names, and suggestions for misspelled names.

In: values and names from users or files. Out: short text, or an error that names the path of the value.
"""

from __future__ import annotations

import json
import reprlib
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeGuard

from penstock.errors import SchemaError, UnknownNameError, shorten

_MAX_SHOWN_CHARS = 100
_MAX_KEY_CHARS = 100

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _MAX_SHOWN_CHARS

# Comparing is quadratic in the length of the names, and a file can have thousands of keys of 64 kB.
_MAX_COMPARED_NAMES = 10_000
_MAX_COMPARED_CHARS = 200
_MAX_LISTED_NAMES = 8


def refuse(owner: str, attribute: str, *, expected: str, got: str, advice: str = "") -> SchemaError:
    """Return the error for one attribute of a declaration.

    `owner`: owner of the attribute: `Tensor`, `field 'age'`. `attribute`: name of the attribute, with an
    index if it has parts: `shape[1]`. It becomes the `field` of the error. `got`: description of the value;
    see `show`.
    """
    return SchemaError(f"{attribute} of {owner}", field=attribute, expected=expected, got=got, advice=advice)


def show(value: object) -> str:
    """Return any value as text of at most one line: values come from files and may be huge."""
    if isinstance(value, int) and value.bit_length() > 128:
        # Python refuses to print ints of several thousand digits.
        return f"an int of {value.bit_length()} bits"
    return shorten(" ".join(_REPR.repr(value).split()), _MAX_SHOWN_CHARS)


def join_path(path: str, key: str) -> str:
    """Return the path of a key: `$.fields.age`, or `$.fields["a b"]` if it is not a plain name."""
    if key.isidentifier() and key.isascii() and len(key) <= _MAX_KEY_CHARS:
        return f"{path}.{key}" if path else key
    text = json.dumps(key)
    return f"{path}[{text}]" if len(text) <= _MAX_KEY_CHARS else f'{path}[{text[: _MAX_KEY_CHARS - 1]}…"]'


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number that a float64 can hold: JSON and YAML also have ints such as 10^400."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: it has no unpaired surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_text(value: bytes) -> str | bytes:
    """Return a text; bytes that are not UTF-8 stay bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 value`, `2 values`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_size(num_bytes: float) -> str:
    """Return a size as text.

    Example:
        >>> format_size(12345)
        '12.3 kB'
    """
    if num_bytes < 1000:
        return f"{num_bytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        num_bytes /= 1000
        if num_bytes < 999.95:
            return f"{num_bytes:.1f} {unit}"
    return f"{num_bytes / 1000:.1f} TB"


def list_counts(counts: Mapping[Any, int]) -> str:
    """Return counts by name as text: `3 jpeg, 1 png`."""
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def list_texts(texts: Iterable[str], most: int = 3) -> str:
    """Return some texts as `'a', 'b' and 'c'`; of many texts, the first ones."""
    shown = [show(text) for text in texts]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""


def list_choices(choices: Iterable[str]) -> str:
    """Return strings as `'a', 'b' or 'c'`."""
    *rest, last = [repr(choice) for choice in choices]
    return f"{', '.join(rest)} or {last}" if rest else last


def find_nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the existing name that is most similar, or equal but for case; None if none is similar."""
    known = {other[:_MAX_COMPARED_CHARS]: other for other in islice(names, _MAX_COMPARED_NAMES)}
    begin = name[:_MAX_COMPARED_CHARS]
    folded = {other.casefold(): whole for other, whole in known.items()}
    if (same := folded.get(begin.casefold())) is not None:
        return same
    if close := get_close_matches(begin, known, n=1):
        return known[close[0]]
    close = get_close_matches(begin.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def unknown_name(name: object, names: Iterable[str], *, what: str = "field") -> UnknownNameError:
    """Return the error for a field, or another named object, that does not exist."""
    known = list(names)
    nearest = find_nearest(name, known) if isinstance(name, str) else None
    if nearest is not None:
        advice = f"Did you mean {show(nearest)}?"
    elif known:
        listed = ", ".join(show(other) for other in known[:_MAX_LISTED_NAMES])
        more = ", …" if len(known) > _MAX_LISTED_NAMES else ""
        advice = f"There are {listed}{more}."
    else:
        advice = f"There is no {what} at all."
    return UnknownNameError(f"no {what} {show(name)}", field=str(name), got=show(name), advice=advice)


def argument(name: str, value: object) -> str:
    """Return a keyword argument in the form that messages name it in: `` `drop=['age']` ``.

    Advice names options as Python has them, between backquotes. The command line shows its flags instead:
    `settings/advice.py` translates them.
    """
    code = f"{name}={value!r}"
    return _quote_code(code) if "`" in code else f"`{code}`"


def declare(name: str, form: str) -> str:
    """Return the argument that declares the type of a field, such as `Number()` or `Tensor((64, 64))`."""
    return _quote_code(f"fields={{{name!r}: ps.fields.{form}}}")


def override(name: str, transform: str) -> str:
    """Return the call that gives a field another transform, or leaves it out with `None`."""
    given = f"{name}={transform}" if name.isidentifier() else f"**{{{name!r}: {transform}}}"
    return _quote_code(f"Pipeline.fit(data, {given})")


def _quote_code(code: str) -> str:
    return "`" + code.replace("`", "\\x60") + "`"
