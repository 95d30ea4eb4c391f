"""Transforms and what was fitted as JSON: values out, and in again with the place of each fault.

In: values, or parsed JSON from anywhere. Out: the other. Loading trusts nothing: every fault is a
`SchemaError` whose `field` is the place, such as `$.transforms.age.fitted.shift[0]`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from penstock.errors import SchemaError
from penstock.foundation.wording import find_nearest, is_finite, is_utf8, join_place, list_choices, show

_MAX_DEPTH: Final = 8
_NON_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

Load: TypeAlias = Callable[[str, object], Any]
"""Reads one value: (place, form) → value."""


def fault_at(place: str, expected: object, got: object, advice: str = "") -> SchemaError:
    """Make the error for one place of a form."""
    return SchemaError(f"pipeline at {place}", field=place, expected=expected, got=got, advice=advice)


def need_object(place: str, form: object, allowed: Collection[str] | None = None) -> Mapping[str, Any]:
    """Return a form that is an object, with no keys but those allowed."""
    if not isinstance(form, Mapping):
        raise fault_at(place, "an object", _show(form))
    for key in form:
        if not isinstance(key, str):
            raise fault_at(place, "keys that are strings", show(key))
        if allowed is not None and key not in allowed:
            nearest = find_nearest(key, allowed)
            advice = "" if nearest is None else f"Did you mean {nearest!r}?"
            expected = f"only {list_choices(allowed)}"
            raise fault_at(join_place(place, key), expected, "a key of another name", advice)
    return form


def dump_value(value: Any) -> Any:
    """Return a value as JSON has it: a tuple as a list, bytes as base64, a NaN by its name."""
    if isinstance(value, tuple | list):
        return [dump_value(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def load_value(place: str, form: object, depth: int = 0) -> Any:
    """Read what `dump_value` makes; lists come back as tuples.

    Args:
        place: Path of the value, for errors.
        form: The value, after `json.loads`.
        depth: Number of lists around it.
    """
    if isinstance(form, list | tuple):
        # Since Python 3.12 json.loads reads deeper lists than a recursive function can visit.
        if depth == _MAX_DEPTH:
            raise fault_at(place, f"at most {_MAX_DEPTH} nested lists", "more")
        return tuple(load_value(f"{place}[{i}]", item, depth + 1) for i, item in enumerate(form))
    if not isinstance(form, Mapping):
        return form
    given = need_object(place, form, ("base64", "float"))
    if "float" in given:
        return load_number(place, given)
    text = given.get("base64")
    try:
        return base64.b64decode(text.encode("ascii") if isinstance(text, str) else b"?", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise fault_at(f"{place}.base64", "base64", _show(text)) from None


def load_number(place: str, form: object) -> float:
    """Read a number, finite or not."""
    if isinstance(form, Mapping):
        name = need_object(place, form, ("float",)).get("float")
        if not isinstance(name, str) or name not in _NON_FINITE:
            raise fault_at(f"{place}.float", list_choices(_NON_FINITE), _show(name))
        return _NON_FINITE[name]
    if not is_finite(form):
        raise fault_at(place, "a finite number", _show(form))
    return form


def load_count(place: str, form: object) -> int:
    """Read a whole number that is not negative."""
    if not isinstance(form, int) or isinstance(form, bool) or not 0 <= form < 2**63:
        raise fault_at(place, "a whole number that is not negative", _show(form))
    return form


def load_flag(place: str, form: object) -> bool:
    """Read true or false."""
    if not isinstance(form, bool):
        raise fault_at(place, "true or false", _show(form))
    return form


def load_text(place: str, form: object) -> str:
    """Read a text, which UTF-8 can hold: JSON can also write a half of a surrogate pair."""
    if not isinstance(form, str) or not is_utf8(form):
        raise fault_at(place, "a text", _show(form))
    return form


def load_entry(place: str, form: object) -> str | bytes | int:
    """Read an entry of a vocabulary."""
    value = load_value(place, form)
    if isinstance(value, str):
        return load_text(place, value)
    if isinstance(value, bytes) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise fault_at(place, "a text, bytes or a whole number", _show(form))


def load_choice(*choices: str) -> Load:
    """Return a reader of one of some strings."""

    def load(place: str, form: object) -> str:
        if not isinstance(form, str) or form not in choices:
            raise fault_at(place, list_choices(choices), _show(form))
        return form

    return load


def load_list(load_item: Load) -> Load:
    """Return a reader of lists, which come back as tuples."""

    def load(place: str, form: object) -> tuple[Any, ...]:
        if not isinstance(form, list | tuple):
            raise fault_at(place, "an array", _show(form))
        return tuple(load_item(f"{place}[{i}]", item) for i, item in enumerate(form))

    return load


def load_optional(load_item: Load) -> Load:
    """Return a reader of what may be null."""

    def load(place: str, form: object) -> Any:
        return None if form is None else load_item(place, form)

    return load


def _show(value: object) -> str:
    return "nothing" if value is None else show(value)
