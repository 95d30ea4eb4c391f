"""Merging schemas, so that data sets written with different ones can be read together.

In: schemas. Out: the merged schema, or a `SchemaError` that shows the differences.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Any, Final

from penstock.errors import SchemaError
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.comparison import say_field, show_value
from penstock.schema.date import Date
from penstock.schema.field import Field, identify
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.schema import Schema

_MAX_SHOWN: Final = 5


def merge_schemas(schemas: SequenceOf[Schema], names: SequenceOf[str] | None = None) -> Schema:
    """Return one schema for data written with several schemas, to open the data together.

    A field that only some schemas have must be optional; records without it get its default. The values of a
    category are combined. A field that is optional in one schema is optional in the result.

    `schemas`: schemas to merge, at least one. `names`: names of the schemas in errors. Defaults to their
    numbers.
    """
    called = [f"schema {number}" for number in range(1, len(schemas) + 1)] if names is None else list(names)
    merged: dict[str, Field] = {}
    clashes: list[str] = []
    for name in dict.fromkeys(name for schema in schemas for name in schema):
        having = [(who, schema[name]) for who, schema in zip(called, schemas, strict=True) if name in schema]
        lacking = [who for who, schema in zip(called, schemas, strict=True) if name not in schema]
        first, merged[name] = having[0]
        for who, field in having[1:]:
            found = _merge_fields(merged[name], field)
            if isinstance(found, str):
                clashes.append(f"field {show(name)}: {found} ({first}, {who})")
                break
            merged[name] = found
        if lacking and not merged[name].optional:
            clashes.append(f"field {show(name)}: required in {first}, absent from {lacking[0]}")
    if clashes:
        more = f"; and {len(clashes) - _MAX_SHOWN} more" if len(clashes) > _MAX_SHOWN else ""
        raise SchemaError(
            "schemas are not compatible",
            expected="fields of the same type in all schemas, and optional if a schema lacks them",
            got="; ".join(clashes[:_MAX_SHOWN]) + more,
            advice="Open the data sets one by one, or pass one `schema` for all.",
        )
    return Schema(merged)


def _merge_fields(one: Field, other: Field) -> Field | str:
    """Return a field that reads the records of both, or a description of the difference."""
    if type(one) is not type(other) or one.key != other.key:
        same_type = type(one) is type(other)
        return (
            f"key {show(one.key)}, key {show(other.key)}"
            if same_type
            else f"{say_field(one)}, {say_field(other)}"
        )
    if one.role != other.role:
        return f"role {one.role}, role {other.role}"
    if (
        one.default is not None
        and other.default is not None
        and identify(one.default) != identify(other.default)
    ):
        return f"default {show_value(one.default)}, default {show_value(other.default)}"
    changed = WIDER[type(one)](one, other)
    common = {
        "default": one.default if other.default is None else other.default,
        "optional": one.optional or other.optional,
    }
    try:
        left, right = (replace(field, **{**common, **changed}) for field in (one, other))
    except SchemaError as error:
        return f"{say_field(one)}, {say_field(other)}: {error}"
    return left if left == right else f"{say_field(one)}, {say_field(other)}"


def _widen_values(one: Category, other: Category) -> dict[str, Any]:
    if one.values == other.values:
        return {}
    is_known = one.values is not None and other.values is not None
    return {"values": tuple({*(one.values or ()), *(other.values or ())}) if is_known else None}


def _widen_encoding(one: Tensor, other: Tensor) -> dict[str, Any]:
    if one.kind != other.kind:
        return {}
    return {"encoding": one.encoding if other.encoding == "auto" else other.encoding}


def _widen_nothing(*_: Field) -> dict[str, Any]:
    return {}


# Attributes that two fields of one type share once they are merged, by that type.
WIDER: Final[dict[type[Field], Callable[[Any, Any], dict[str, Any]]]] = {
    Number: _widen_nothing,
    Category: _widen_values,
    Date: _widen_nothing,
    Text: _widen_nothing,
    Image: lambda one, other: {} if one.format == other.format else {"format": None},
    Bytes: _widen_nothing,
    Sequence: lambda one, other: {} if one.shape == other.shape else {"shape": None},
    Tensor: _widen_encoding,
}
