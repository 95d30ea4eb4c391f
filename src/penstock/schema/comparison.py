"""Differences between schemas, in words, and schemas merged into one.

In: an old and a new schema. Out: a `Comparison`, and whether data of the old one reads with the new one. In:
schemas of data sets that are read together. Out: fields that read all of them, or a `SchemaError` that shows
the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from penstock.errors import SchemaError
from penstock.foundation.wording import count, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field, identify
from penstock.schema.scalar import Bytes, Category, Image, Number, Text

_MAX_SHOWN: Final = 5

_COMPATIBLE: Final = {
    "text": ("category", "bytes", "sequence"),
    "category": ("text", "number", "date", "bytes", "sequence", "tensor"),
    "image": ("bytes",),
    "bytes": (),
}
"""By type, the types that take all of its values, if records hold both alike."""


@dataclass(frozen=True)
class Change:
    """One difference of a field.

    Attributes:
        field: Its name in the new schema; in the old one, if it was removed.
        what: The difference, a phrase.
        is_readable: Whether old records can be read all the same.
        why: What becomes of old records, a phrase.
    """

    field: str
    what: str
    is_readable: bool
    why: str

    def __str__(self) -> str:
        verdict = "reads" if self.is_readable else "does not read"
        return f"{show(self.field)}: {self.what}: {verdict}: {self.why}"


@dataclass(frozen=True)
class Comparison:
    """All differences between an old schema and a new one.

    Example:
        >>> from penstock.fields import Number, Text
        >>> old = {"age": Number("int64")}
        >>> found = compare_schemas(old, {"age": Number("int64"), "name": Text(default="")})
        >>> print(found)
        'name': added: reads: old records get the default ''
    """

    changes: tuple[Change, ...]

    @property
    def is_readable(self) -> bool:
        """Whether data written with the old schema reads with the new one."""
        return all(change.is_readable for change in self.changes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes)) or "no difference"


def compare_schemas(old: Mapping[str, Field], new: Mapping[str, Field]) -> Comparison:
    """Compare schemas field by field; a field with another name but the same key was renamed."""
    changes: list[Change] = []
    by_key = {
        (field.is_feature_list, field.wire_key(name)): name for name, field in old.items() if name not in new
    }
    taken = set()
    for name, field in new.items():
        former = name if name in old else by_key.get((field.is_feature_list, field.wire_key(name)))
        if former is None:
            changes.append(_describe_added(name, field))
            continue
        taken.add(former)
        if former != name:
            why = f"its key {show(field.wire_key(name))} is the same"
            changes.append(Change(name, f"renamed from {show(former)}", True, why))
        changes.extend(_compare_fields(name, former, old[former], field))
    for name in old:
        if name not in taken:
            changes.append(Change(name, "removed", True, "old records hold it, and it is ignored"))
    return Comparison(tuple(changes))


def _describe_added(name: str, field: Field) -> Change:
    if field.default is not None:
        return Change(name, "added", True, f"old records get the default {_show_value(field.default)}")
    if field.optional:
        return Change(name, "added", True, "it is optional, and old records lack it")
    return Change(name, "added", False, "it is required, and old records lack it; give it a default")


def _compare_fields(name: str, former: str, old: Field, new: Field) -> Iterator[Change]:
    if old.wire_key(former) != new.wire_key(name):
        what = f"key {show(old.wire_key(former))} became {show(new.wire_key(name))}"
        yield Change(name, what, False, "old records hold it under the old key")
    if type(old) is not type(new):
        yield _compare_types(name, old, new)
    else:
        yield from ATTRIBUTES[type(old)](name, old, new)
    if old.role != new.role:
        yield Change(name, f"role {old.role} became {new.role}", True, "records have no roles")
    if old.optional and not new.optional:
        yield Change(name, "optional became required", False, "old records may lack it")
    if new.optional and not old.optional:
        yield Change(name, "required became optional", True, "all old records have it")
    elif identify(old.default) != identify(new.default):
        what = f"default {_show_value(old.default)} became {_show_value(new.default)}"
        yield Change(name, what, True, "old records without it get the new one")


def _compare_types(name: str, old: Field, new: Field) -> Change:
    what = f"{_say_field(old)} became {_say_field(new)}"
    if not _holds_alike(old, new):
        return Change(name, what, False, f"old records hold {_say_wire(old)}, not {_say_wire(new)}")
    if new.type_name not in _COMPATIBLE.get(old.type_name, (new.type_name,)):
        return Change(name, what, False, f"not every {old.type_name} value is of type {new.type_name}")
    return Change(name, what, True, "records hold both alike")


def _compare_descriptions(name: str, old: Field, new: Field) -> Iterator[Change]:
    if _say_field(old) != _say_field(new):
        why = f"old records hold {_say_wire(old)}, not {_say_wire(new)}"
        yield Change(name, f"{_say_field(old)} became {_say_field(new)}", False, why)


def _compare_dates(name: str, old: Date, new: Date) -> Iterator[Change]:
    if old.unit != new.unit:
        yield Change(name, f"{old.unit} became {new.unit}", False, f"old records hold {old.unit}")


def _compare_images(name: str, old: Image, new: Image) -> Iterator[Change]:
    if old.format != new.format:
        what = f"format {old.format or 'any'} became {new.format or 'any'}"
        is_wider = new.format is None
        why = "any format is read" if is_wider else "old records hold other formats"
        yield Change(name, what, is_wider, why)


def _compare_categories(name: str, old: Category, new: Category) -> Iterator[Change]:
    compare = _compare_domains if old.dtype == new.dtype else _compare_descriptions
    yield from compare(name, old, new)


def _compare_domains(name: str, old: Category, new: Category) -> Iterator[Change]:
    if old.values is None or new.values is None:
        if old.values != new.values:
            what = "its values are known now" if old.values is None else "its values are not known any more"
            yield Change(name, what, True, "declared values are informative only")
        return
    added = [value for value in new.values if value not in set(old.values)]
    removed = [value for value in old.values if value not in set(new.values)]
    if added:
        yield Change(name, f"{_list_values(added)} added", True, "old records do not hold them")
    if removed:
        yield Change(
            name, f"{_list_values(removed)} removed", True, "old records may hold them, and they are read"
        )


def _compare_tensors(name: str, old: Tensor, new: Tensor) -> Iterator[Change]:
    if (old.kind == "bytes") != (new.kind == "bytes"):
        what = f"encoding {old.encoding} became {new.encoding}"
        yield Change(name, what, False, f"old records hold {_say_wire(old)}, not {_say_wire(new)}")
    if old.dtype != new.dtype:
        is_wider = old.kind == new.kind != "bytes" and np.can_cast(old.dtype, new.dtype)
        why = "every old value is one of the new type" if is_wider else "old values need not be such"
        verb = "widened to" if is_wider else "became"
        yield Change(name, f"{old.dtype} {verb} {new.dtype}", is_wider, why)
    if old.shape != new.shape:
        is_same = old.size == new.size
        why = (
            "the number of elements is the same" if is_same else "old records hold another number of elements"
        )
        yield Change(name, f"shape {old.shape} became {new.shape}", is_same, why)


def _compare_sequences(name: str, old: Sequence, new: Sequence) -> Iterator[Change]:
    if old.stored != new.stored:
        yield Change(name, f"{old.stored} became {new.stored}", False, f"old records hold a {old.stored}")
    if old.dtype != new.dtype:
        is_wider = (old.dtype, new.dtype) == ("string", "bytes")
        why = "every text is a byte string" if is_wider else f"old records hold {old.dtype} values"
        yield Change(name, f"{old.dtype} {'widened to' if is_wider else 'became'} {new.dtype}", is_wider, why)
    if old.stored == new.stored and old.shape != new.shape:
        is_wider = new.shape is None
        why = "steps of any length are read" if is_wider else "old steps have other lengths"
        yield Change(name, f"steps of shape {old.shape} became {new.shape}", is_wider, why)


# How two fields of one type are compared, by that type.
ATTRIBUTES: Final[dict[type[Field], Callable[[str, Any, Any], Iterator[Change]]]] = {
    Number: _compare_descriptions,
    Category: _compare_categories,
    Date: _compare_dates,
    Text: _compare_descriptions,
    Image: _compare_images,
    Bytes: _compare_descriptions,
    Sequence: _compare_sequences,
    Tensor: _compare_tensors,
}


def _holds_alike(old: Field, new: Field) -> bool:
    """Return whether records store both fields in the same way."""
    is_raw = [
        not isinstance(field, (Text, Category, Image, Bytes, Sequence)) and field.kind == "bytes"
        for field in (old, new)
    ]
    return (
        (old.kind, old.is_feature_list) == (new.kind, new.is_feature_list)
        and new.num_values in (None, old.num_values)
        and (not is_raw[0] or new.type_name == "bytes")
        and not is_raw[1]
    )


def _say_field(field: Field) -> str:
    """Write the type of a field with its details: `tensor 64 x 64 uint8`."""
    details = field.describe().removeprefix("scalar").strip()
    if isinstance(field, Category):
        details = field.dtype
    return f"{field.type_name} {details}".strip()


def _say_wire(field: Field) -> str:
    if field.is_feature_list:
        return f"a feature list of {field.kind} values"
    number = "any number of" if field.num_values is None else str(field.num_values)
    return f"{number} {field.kind} value{'' if field.num_values == 1 else 's'}"


def _list_values(values: list[Any]) -> str:
    if len(values) > _MAX_SHOWN:
        return f"{count(len(values), 'value')} such as {show(values[0])}"
    return ", ".join(map(show, values))


def _show_value(value: object) -> str:
    return show(value.tolist() if isinstance(value, np.ndarray) else value)


def merge_schemas(
    schemas: SequenceOf[Mapping[str, Field]], names: SequenceOf[str] | None = None
) -> dict[str, Field]:
    """Return the fields of data written with several schemas, to open the data together.

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
    return merged


def _merge_fields(one: Field, other: Field) -> Field | str:
    """Return a field that reads the records of both, or a description of the difference."""
    if type(one) is not type(other):
        return f"{_say_field(one)}, {_say_field(other)}"
    if one.key != other.key:
        return f"key {show(one.key)}, key {show(other.key)}"
    if one.role != other.role:
        return f"role {one.role}, role {other.role}"
    if (
        one.default is not None
        and other.default is not None
        and identify(one.default) != identify(other.default)
    ):
        return f"default {_show_value(one.default)}, default {_show_value(other.default)}"
    changed = WIDER[type(one)](one, other)
    common = {
        "default": one.default if other.default is None else other.default,
        "optional": one.optional or other.optional,
    }
    try:
        left, right = (replace(field, **{**common, **changed}) for field in (one, other))
    except SchemaError as error:
        return f"{_say_field(one)}, {_say_field(other)}: {error}"
    return left if left == right else f"{_say_field(one)}, {_say_field(other)}"


def _widen_values(one: Category, other: Category) -> dict[str, Any]:
    if one.values == other.values:
        return {}
    is_known = one.values is not None and other.values is not None
    return {"values": tuple({*(one.values or ()), *(other.values or ())}) if is_known else None}


def _widen_encoding(one: Tensor, other: Tensor) -> dict[str, Any]:
    if one.kind != other.kind:
        return {}
    return {"encoding": one.encoding if other.encoding == "auto" else other.encoding}


# Attributes that two fields of one type share once they are merged, by that type.
WIDER: Final[dict[type[Field], Callable[[Any, Any], dict[str, Any]]]] = {
    Number: lambda *_: {},
    Category: _widen_values,
    Date: lambda *_: {},
    Text: lambda *_: {},
    Image: lambda one, other: {} if one.format == other.format else {"format": None},
    Bytes: lambda *_: {},
    Sequence: lambda one, other: {} if one.shape == other.shape else {"shape": None},
    Tensor: _widen_encoding,
}
