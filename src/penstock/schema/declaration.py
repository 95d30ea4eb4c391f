"""Declarations of columns by a user or a source, complete or partial.

In: the content of a plan file, field objects, names of types. Out: one `ColumnDeclaration` per column; what
it leaves open is inferred from the data. An invalid declaration raises a `SchemaError` whose `field` is the
path, such as `columns.photo.shape[1]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from penstock.errors import SchemaError
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.json_form import VERSION, dump_fields, load_fields
from penstock.schema.notation import DateOrder, DecimalSeparator, NanMeaning, NumberFormat, ThousandsSeparator
from penstock.schema.scalar import Bytes, Category, Image, Number, Text

TypeName: TypeAlias = Literal["number", "category", "date", "text", "image", "bytes", "sequence", "tensor"]

Representation: TypeAlias = Literal["value", "path", "date", "time", "bool", "json"]
"""Representation of the values of a field in a column; `from` in plan files.

- `value`: the values themselves.
- `path`: names of the files that hold the values, relative to the folder of the source.
- `date`: dates, stored as days since 1970-01-01, in a field of type number.
- `time`: points in time, stored as microseconds since 1970-01-01T00:00 UTC, in a field of type number; times
  without a zone are UTC. A field of type date needs neither: its unit says it.
- `bool`: true or false, case ignored; stored as 1 and 0.
- `json`: texts that contain a JSON list.
"""

FIELD_CLASSES: Final[dict[TypeName, type[Field]]] = {
    "number": Number,
    "category": Category,
    "date": Date,
    "text": Text,
    "image": Image,
    "bytes": Bytes,
    "sequence": Sequence,
    "tensor": Tensor,
}
_PLAN: Final = Document("plan", root="")
_COLUMN_KEYS: Final = ("type", "from", "name", "missing", "nan", "decimal", "thousands", "date_order")
_ATTRIBUTES = tuple(dict.fromkeys(name for cls in FIELD_CLASSES.values() for name in cls.attribute_names()))


@dataclass(frozen=True)
class ColumnDeclaration:
    """Declaration of one column, complete or partial.

    Attributes:
        type_name: Type of the field; None to infer it.
        attributes: Attributes of the field in their JSON form; those not listed are inferred.
        form: Representation of the values in the column; None to infer it.
        name: Name of the field; None for the name of the column.
        missing: Texts that mark a missing value in the column; None to infer them.
        nan: Meaning of NaN in the column; None for the default of the conversion.
        numbers: Format of numbers in texts of the column; None to infer it.
        dates: Order of day, month and year in texts of the column; None to infer it.
        is_whole: Whether only the representation is inferred: the field belongs to a complete schema.
    """

    type_name: TypeName | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    form: Representation | None = None
    name: str | None = None
    missing: tuple[str, ...] | None = None
    nan: NanMeaning | None = None
    is_whole: bool = False
    numbers: NumberFormat | None = None
    dates: DateOrder | None = None

    @classmethod
    def from_field(cls, declared: Field, *, is_whole: bool = False) -> ColumnDeclaration:
        """Return the declaration that a field object makes; `optional` is declared only if it is true."""
        form = dump_fields({"": declared})["fields"][""]
        type_name = form.pop("type")
        if not is_whole:
            # A field object cannot express "not declared": these attributes are inferred if they have their
            # default.
            open_by_default = {"format": None, "values": None, "role": "input"}
            form = {
                key: value
                for key, value in form.items()
                if key not in open_by_default or value != open_by_default[key]
            }
        return cls(type_name, form, is_whole=is_whole)

    def over(self, lower: ColumnDeclaration | None) -> ColumnDeclaration:
        """Return this declaration, completed by a lower one, or by its common attributes for another type."""
        if lower is None:
            return self
        is_same = self.type_name in (None, lower.type_name)
        kept = {
            key: value
            for key, value in lower.attributes.items()
            if is_same or key in ("role", "optional", "key")
        }
        return replace(
            self,
            type_name=self.type_name or lower.type_name,
            attributes={**kept, **self.attributes},
            form=self.form or (lower.form if is_same else None),
            name=self.name or lower.name,
            missing=lower.missing if self.missing is None else self.missing,
            nan=self.nan or lower.nan,
            numbers=self.numbers or lower.numbers,
            dates=self.dates or lower.dates,
        )

    def with_role(self, role: str) -> ColumnDeclaration:
        """Return a copy with another role."""
        return replace(self, attributes={**self.attributes, "role": role})


@dataclass(frozen=True)
class PlanDeclaration:
    """Content of a plan file: declarations of columns, and names of columns to drop."""

    columns: Mapping[str, ColumnDeclaration]
    drop: tuple[str, ...] = ()


def load_plan_declaration(form: object) -> PlanDeclaration:
    """Read `{"columns": {"age": {"type": "number"}}, "drop": ["name"]}`; entries may be partial."""
    given = JsonValue(form, _PLAN).children("columns", "drop")
    columns = given["columns"].children() if "columns" in given and given["columns"].value else {}
    declared = {column: _load_entry(column, value) for column, value in columns.items()}
    drop = given["drop"] if "drop" in given and given["drop"].value else JsonValue([], _PLAN)
    if isinstance(drop.value, str):
        raise drop.refuse("a list of column names")
    for column in _load_strings(drop, "a list of column names"):
        if column in declared:
            advice = "Remove it from one of the two."
            raise drop.refuse("columns that are not in `columns`", show(column), advice)
    return PlanDeclaration(declared, tuple(drop.value))


def declare_field(column: str, type_name: TypeName, attributes: Mapping[str, Any]) -> Field:
    """Return a field with the given attributes in their JSON form."""
    form = {"version": VERSION, "fields": {column: {"type": type_name, **attributes}}}
    try:
        return load_fields(form)[column]
    except SchemaError as error:
        columns = JsonValue(None, replace(_PLAN, root="columns"))
        inner = (error.field or "").removeprefix("$.fields")
        raise columns.refuse(error.expected, error.got, error.advice, at=inner) from None


def _load_entry(column: str, value: JsonValue) -> ColumnDeclaration:
    given = {
        key: item for key, item in value.children().items() if item.value is not None or key == "default"
    }
    type_name = given["type"].choice(FIELD_CLASSES) if "type" in given else None
    allowed = _ATTRIBUTES if type_name is None else FIELD_CLASSES[type_name].attribute_names()
    value.object(*_COLUMN_KEYS, *allowed)
    representation = given["from"].choice(get_args(Representation)) if "from" in given else None
    nan = given["nan"].choice(get_args(NanMeaning)) if "nan" in given else None
    missing = _load_strings(given["missing"], "a list of strings") if "missing" in given else None
    if "name" in given and not isinstance(given["name"].value, str):
        raise given["name"].refuse("a name", advice="Quote it.")
    attributes = {key: item for key, item in value.object().items() if key not in _COLUMN_KEYS}
    if type_name is not None:
        # A shape may be inferred later; all other attributes are checked before any data is read.
        declare_field(column, type_name, {**({"shape": [1]} if type_name == "tensor" else {}), **attributes})
    name = given["name"].value if "name" in given else None
    numbers = _load_numbers(given)
    dates = given["date_order"].choice(get_args(DateOrder)) if "date_order" in given else None
    return ColumnDeclaration(
        type_name, attributes, representation, name, missing, nan, numbers=numbers, dates=dates
    )


def _load_numbers(given: Mapping[str, JsonValue]) -> NumberFormat | None:
    decimal = given["decimal"].choice(get_args(DecimalSeparator)) if "decimal" in given else None
    thousands = given["thousands"].choice(get_args(ThousandsSeparator)) if "thousands" in given else None
    if decimal is None and thousands is None:
        return None
    if decimal == thousands:
        raise given["thousands"].refuse("another separator than decimal")
    return NumberFormat(decimal, thousands)


def _load_strings(value: JsonValue, expected: str) -> tuple[str, ...]:
    """Return a list of strings; one string is a list of one."""
    given = [value.value] if isinstance(value.value, str) else value.value
    if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
        raise value.refuse(expected, advice="Quote what YAML would not read as strings.")
    return tuple(given)


def find_forms(plan: Any) -> dict[str, str]:
    """Return how raw columns represent values, by field, from the plan of a conversion."""
    if not isinstance(plan, Mapping):
        return {}
    declared = load_plan_declaration({key: plan[key] for key in ("columns", "drop") if key in plan})
    return {each.name or column: each.form for column, each in declared.columns.items() if each.form}
