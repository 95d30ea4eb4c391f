"""What the fields of one schema must not do to each other.

In: fields by name, each sound in itself. Out: the first conflict, as facts that an error is made of.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.errors import SchemaError
from penstock.foundation.wording import find_nearest, join_place, list_choices, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.default import check_string
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes, Category, Image, Number, Text


class Conflict(NamedTuple):
    """A field that cannot be beside the others: its name, the attribute at fault, and what to say."""

    name: str
    attribute: str
    expected: str
    got: str
    advice: str


def find_conflict(fields: Mapping[str, Field]) -> Conflict | None:
    """Return the first field that conflicts with those before it, or None."""
    single: dict[str, str] = {}
    keys: dict[tuple[bool, str], str] = {}
    for name, field in fields.items():
        if field.role in ("weight", "id"):
            first = single.setdefault(field.role, name)
            if first != name:
                got = f"a second one beside {show(first)}"
                return Conflict(
                    name, "role", f"one {field.role} field", got, "Give one of them another role."
                )
        if field.role == "weight" and field.kind == "bytes" and not isinstance(field, Tensor):
            return Conflict(name, "role", "numbers as weight", f"a {field.type_name} field", "")
        key = field.wire_key(name)
        owner = keys.setdefault((field.is_feature_list, key), name)
        if owner != name:
            got = f"{show(key)}, which is the key of {show(owner)} too"
            return Conflict(
                name, "key", "a key of its own", got, "Read the key once, and transform it later."
            )
    return None


VERSION: Final = 1

MAX_FIELDS: Final = 1 << 20
"""Ten times the widest tables that are known to be used; a form with more is an attack or a mistake."""

_TYPES: dict[str, type[Field]] = {
    cls.type_name: cls for cls in (Number, Category, Text, Image, Bytes, Sequence, Tensor)
}
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def dump_fields(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the JSON form, in plain dicts and lists."""
    forms: dict[int, dict[str, Any]] = {}  # many fields of a wide table are one object
    for field in fields.values():
        if id(field) not in forms:
            forms[id(field)] = _dump_field(field)
    return {"version": VERSION, "fields": {name: dict(forms[id(field)]) for name, field in fields.items()}}


def load_fields(form: object) -> dict[str, Field]:
    """Return the fields that a form declares.

    Raises:
        SchemaError: The form is not what `dump_fields` makes; `field` and the message give the place.
    """
    root = _need_object("$", form)
    _need_keys("$", root, ("version", "fields"))
    _need_version(root.get("version"))
    declared = _need_object("$.fields", root.get("fields"))
    if len(declared) > MAX_FIELDS:
        raise _fault("$.fields", f"at most {MAX_FIELDS} fields", str(len(declared)))
    fields = {}
    for name, declaration in declared.items():
        place = join_place("$.fields", name)
        try:
            check_string("the schema", "a name", name)
        except SchemaError as error:
            raise _fault(place, str(error.expected), str(error.got)) from None
        fields[name] = _load_field(place, declaration)
    conflict = find_conflict(fields)
    if conflict is not None:
        place = join_place(join_place("$.fields", conflict.name), conflict.attribute)
        raise _fault(place, conflict.expected, conflict.got, conflict.advice)
    return fields


def _dump_field(field: Field) -> dict[str, Any]:
    form: dict[str, Any] = {"type": field.type_name}
    for name in field.attribute_names():
        value = getattr(field, name)
        if name == "default":
            if value is not None:
                form[name] = _dump_value(value)
        elif name == "optional":
            # A default implies it.
            if value and field.default is None:
                form[name] = True
        elif name != "key" or value is not None:
            form[name] = list(value) if isinstance(value, tuple) else value
    return form


def _dump_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        # Bits, not decimals: a NaN keeps its payload and a double its last digit.
        value = value.astype(value.dtype.newbyteorder("<")).tobytes()
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, tuple):
        return [_dump_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers, and parsers differ on `NaN`.
        return {"float": str(value)}
    return value


def _load_field(place: str, declaration: object) -> Field:
    form = dict(_need_object(place, declaration))
    type_name = form.pop("type", None)
    cls = _TYPES.get(type_name) if isinstance(type_name, str) else None
    if cls is None:
        got = "nothing" if type_name is None else show(type_name)
        raise _fault(f"{place}.type", list_choices(_TYPES), got)
    _need_keys(place, form, ("type", *cls.attribute_names()))
    for name in ("shape", "values"):
        if form.get(name) is not None and not isinstance(form[name], list):
            raise _fault(f"{place}.{name}", "an array", show(form[name]))
    if cls is Tensor and "shape" not in form:
        raise _fault(f"{place}.shape", "an array of positive ints", "nothing")
    default = form.pop("default", None)
    try:
        field = cls(**form)
        if default is None:
            return field
        return dataclasses.replace(field, default=_load_default(f"{place}.default", default, field))
    except SchemaError as error:
        if error.field is None or error.field.startswith("$"):
            raise
        raise _fault(f"{place}.{error.field}", str(error.expected), str(error.got), error.advice) from None


def _load_default(place: str, value: object, field: Field) -> Any:
    if isinstance(field, Tensor):
        data = _load_bytes(place, value)
        if len(data) != field.num_bytes:
            raise _fault(place, f"{field.num_bytes} bytes", f"{len(data)} bytes")
        raw = np.frombuffer(data, np.dtype(field.dtype).newbyteorder("<"))
        return raw.astype(field.dtype).reshape(field.shape)
    if isinstance(field, Sequence):
        return _load_list(place, value, field.dtype, levels=1 if field.shape == () else 2)
    dtype = "bytes" if isinstance(field, (Image, Bytes)) else getattr(field, "dtype", "string")
    return _load_value(place, value, dtype)


def _load_list(place: str, value: object, dtype: str, levels: int) -> list[Any]:
    if not isinstance(value, list):
        raise _fault(place, "an array", show(value))
    places = (f"{place}[{i}]" for i in range(len(value)))
    if levels == 1:
        return [_load_value(at, item, dtype) for at, item in zip(places, value, strict=True)]
    return [_load_list(at, item, dtype, levels - 1) for at, item in zip(places, value, strict=True)]


def _load_value(place: str, value: object, dtype: str) -> Any:
    if dtype == "bytes":
        return _load_bytes(place, value)
    if dtype in ("float32", "float64") and isinstance(value, Mapping):
        _need_keys(place, value, ("float",))
        name = value.get("float")
        if not isinstance(name, str) or name not in _NON_FINITE:
            raise _fault(f"{place}.float", list_choices(_NON_FINITE), show(name))
        return _NON_FINITE[name]
    if isinstance(value, float) and not math.isfinite(value):
        raise _fault(place, "a number that JSON has", show(value), f'Write {{"float": "{value}"}}.')
    return value


def _load_bytes(place: str, value: object) -> bytes:
    form = _need_object(place, value)
    _need_keys(place, form, ("base64",))
    text = form.get("base64")
    if not isinstance(text, str):
        raise _fault(f"{place}.base64", "a string", "nothing" if text is None else show(text))
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise _fault(f"{place}.base64", "base64", show(text)) from None


def _need_version(version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _fault("$.version", f"{VERSION}", "nothing" if version is None else show(version))
    if version > VERSION:
        advice = "A newer Penstock wrote this schema: upgrade this one."
        raise _fault("$.version", f"at most {VERSION}", show(version), advice)


def _need_object(place: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        advice = "Parse the text with json.loads first." if place == "$" and isinstance(value, str) else ""
        raise _fault(place, "an object", "nothing" if value is None else show(value), advice)
    for key in value:
        if not isinstance(key, str):
            raise _fault(place, "keys that are strings", show(key))
    return value


def _need_keys(place: str, form: Mapping[str, Any], allowed: Iterable[str]) -> None:
    for key in form:
        if key not in allowed:
            nearest = find_nearest(key, allowed)
            advice = "" if nearest is None else f"Did you mean {nearest!r}?"
            raise _fault(
                join_place(place, key), f"only {list_choices(allowed)}", "a key of another name", advice
            )


def _fault(place: str, expected: str, got: str, advice: str = "") -> SchemaError:
    return SchemaError(f"schema at {place}", field=place, expected=expected, got=got, advice=advice)
