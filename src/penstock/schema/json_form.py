"""The JSON form of the fields of a schema, and conflicts between fields.

In: fields by name, or parsed JSON from anywhere. Out: the other, or an error with the path of the fault.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.errors import SchemaError
from penstock.foundation.json_form import Document, JsonValue, dump_value
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field, check_string
from penstock.schema.scalar import Bytes, Category, Image, Number, Text

VERSION: Final = 1
MAX_FIELDS: Final = 1 << 20
"""Ten times the widest tables that are known to be used; a form with more is an attack or a mistake."""

_TYPES: dict[str, type[Field]] = {
    cls.type_name: cls for cls in (Number, Category, Date, Text, Image, Bytes, Sequence, Tensor)
}


class Conflict(NamedTuple):
    """A conflict between fields: field name, attribute, and the parts of the message."""

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
                advice = "Give one of them another role."
                return Conflict(name, "role", f"one {field.role} field", got, advice)
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


def dump_fields(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the JSON form, in plain dicts and lists."""
    forms: dict[int, dict[str, Any]] = {}  # many fields of a wide table are one object
    for field in fields.values():
        if id(field) not in forms:
            forms[id(field)] = _dump_field(field)
    return {"version": VERSION, "fields": {name: dict(forms[id(field)]) for name, field in fields.items()}}


def load_fields(form: object) -> dict[str, Field]:
    """Return the fields that a JSON form declares; the `field` of an error is the path of the fault."""
    root = JsonValue(form, Document("schema"))
    if isinstance(form, str):
        raise root.refuse("an object", advice="Parse the text with json.loads first.")
    root.object("version", "fields")
    root.child("version").version(VERSION)
    declared = root.child("fields").children()
    if len(declared) > MAX_FIELDS:
        raise root.child("fields").refuse(f"at most {MAX_FIELDS} fields", str(len(declared)))
    fields = {}
    for name, value in declared.items():
        try:
            check_string("the schema", "a name", name)
        except SchemaError as error:
            raise value.refuse(error.expected, error.got) from None
        fields[name] = _load_field(value)
    conflict = find_conflict(fields)
    if conflict is not None:
        attribute = declared[conflict.name].child(conflict.attribute)
        raise attribute.refuse(conflict.expected, conflict.got, conflict.advice)
    return fields


def _dump_field(field: Field) -> dict[str, Any]:
    form: dict[str, Any] = {"type": field.type_name}
    for name in field.attribute_names():
        value = getattr(field, name)
        if name == "default":
            if value is not None:
                form[name] = _dump_default(value)
        elif name == "optional":
            # A default implies it.
            if value and field.default is None:
                form[name] = True
        elif name != "key" or value is not None:
            form[name] = list(value) if isinstance(value, tuple) else value
    return form


def _dump_default(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        # Bits, not decimals: a NaN keeps its payload and a double its last digit.
        value = value.astype(value.dtype.newbyteorder("<")).tobytes()
    return dump_value(value)


def _load_field(value: JsonValue) -> Field:
    cls = _TYPES[value.child("type").choice(_TYPES)]
    given = value.children("type", *cls.attribute_names())
    for name in ("shape", "values"):
        if name in given and given[name].value is not None and not isinstance(given[name].value, list):
            raise given[name].refuse("an array")
    if cls is Tensor and "shape" not in given:
        raise value.child("shape").refuse("an array of positive integers")
    default = given.pop("default", None)
    attributes = {name: item.value for name, item in given.items() if name != "type"}
    try:
        field = cls(**attributes)
        if default is None or default.value is None:
            return field
        return dataclasses.replace(field, default=DEFAULTS[cls](default, field))
    except SchemaError as error:
        if error.field is None or error.field.startswith("$"):
            raise
        raise value.refuse(error.expected, error.got, error.advice, at=f".{error.field}") from None


def _load_tensor(value: JsonValue, field: Tensor) -> Any:
    data = value.base64()
    if len(data) != field.num_bytes:
        raise value.refuse(f"{field.num_bytes} bytes", f"{len(data)} bytes")
    raw = np.frombuffer(data, np.dtype(field.dtype).newbyteorder("<"))
    return raw.astype(field.dtype).reshape(field.shape)


# How the default of each type of field is read.
DEFAULTS: Final[dict[type[Field], Callable[[JsonValue, Any], Any]]] = {
    Number: lambda value, field: _load_item(value, field.dtype),
    Category: lambda value, field: _load_item(value, field.dtype),
    Date: lambda value, _: _load_item(value, "int64"),
    Text: lambda value, _: _load_item(value, "string"),
    Image: lambda value, _: _load_item(value, "bytes"),
    Bytes: lambda value, _: _load_item(value, "bytes"),
    Sequence: lambda value, field: _load_list(value, field.dtype, levels=1 if field.shape == () else 2),
    Tensor: _load_tensor,
}


def _load_list(value: JsonValue, dtype: str, levels: int) -> list[Any]:
    if levels == 1:
        return [_load_item(item, dtype) for item in value.elements()]
    return [_load_list(item, dtype, levels - 1) for item in value.elements()]


def _load_item(value: JsonValue, dtype: str) -> Any:
    item = value.value
    if dtype == "bytes":
        return value.base64()
    if dtype in ("float32", "float64") and isinstance(item, Mapping):
        return value.any_number()
    if isinstance(item, float) and not math.isfinite(item):
        raise value.refuse("a number that JSON has", advice=f'Write {{"float": "{item}"}}.')
    return item
