"""Declarations of columns by a user or a source, complete or partial.

In: the content of a plan file, field objects, names of types. Out: one `ColumnDeclaration` per column; what
it leaves open is inferred from the data. An invalid declaration raises a `SchemaError` whose `field` is the
path, such as `columns.photo.shape[1]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from penstock.errors import SchemaError
from penstock.foundation.wording import find_nearest, join_place, list_choices, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.json_form import VERSION, dump_fields, load_fields
from penstock.schema.scalar import Bytes, Category, Image, Number, Text

TypeName: TypeAlias = Literal["number", "category", "text", "image", "bytes", "sequence", "tensor"]

Representation: TypeAlias = Literal["value", "path", "date", "time", "bool", "json"]
"""Representation of the values of a field in a column; `from` in plan files.

- `value`: the values themselves.
- `path`: names of the files that hold the values, relative to the folder of the source.
- `date`: dates, stored as days since 1970-01-01.
- `time`: points in time, stored as microseconds since 1970-01-01T00:00 UTC; times without a zone are UTC.
- `bool`: true or false, case ignored; stored as 1 and 0.
- `json`: texts that contain a JSON list.
"""

NanMeaning: TypeAlias = Literal["missing", "value"]
"""Meaning of NaN in a column of single numbers: a missing value, or a value of its own."""

FIELD_CLASSES: Final[dict[TypeName, type[Field]]] = {
    "number": Number,
    "category": Category,
    "text": Text,
    "image": Image,
    "bytes": Bytes,
    "sequence": Sequence,
    "tensor": Tensor,
}
_COMMON = ("role", "default", "optional", "key")
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
        is_whole: Whether only the representation is inferred: the field belongs to a complete schema.
    """

    type_name: TypeName | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    form: Representation | None = None
    name: str | None = None
    missing: tuple[str, ...] | None = None
    nan: NanMeaning | None = None
    is_whole: bool = False

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
        """Return this declaration, completed by one of lower precedence.

        If the types differ, only attributes that all types share are taken from `lower`.
        """
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
    """Read `{"columns": {"age": {"type": "number"}}, "drop": ["name"]}`; entries may be partial.

    Raises:
        SchemaError: The content is not valid.
    """
    root = _check_mapping("", form)
    _check_keys("", root, ("columns", "drop"))
    columns = _check_mapping("columns", root.get("columns") or {})
    declared = {
        column: _load_entry(join_place("columns", column), column, entry) for column, entry in columns.items()
    }
    drop = root.get("drop") or []
    if not isinstance(drop, list) or not all(isinstance(column, str) for column in drop):
        raise _declaration_error(
            "drop",
            "a list of column names",
            show(drop),
            "Quote names that YAML would not read as strings.",
        )
    for column in drop:
        if column in declared:
            raise _declaration_error(
                "drop", "columns that are not in `columns`", show(column), "Remove it from one of the two."
            )
    return PlanDeclaration(declared, tuple(drop))


def declare_field(column: str, type_name: TypeName, attributes: Mapping[str, Any]) -> Field:
    """Return a field with the given attributes in their JSON form.

    Raises:
        SchemaError: An attribute is not valid.
    """
    form = {"version": VERSION, "fields": {column: {"type": type_name, **attributes}}}
    try:
        return load_fields(form)[column]
    except SchemaError as error:
        path = f"columns{(error.field or '').removeprefix('$.fields')}"
        raise _declaration_error(path, str(error.expected), str(error.got), error.advice) from None


def _load_entry(path: str, column: str, entry: object) -> ColumnDeclaration:
    form = dict(_check_mapping(path, entry))
    type_name = form.pop("type", None)
    if type_name is not None and not (isinstance(type_name, str) and type_name in FIELD_CLASSES):
        raise _unknown_choice(f"{path}.type", type_name, FIELD_CLASSES)
    representation = form.pop("from", None)
    if representation is not None and representation not in get_args(Representation):
        raise _unknown_choice(f"{path}.from", representation, get_args(Representation))
    name = form.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise _declaration_error(f"{path}.name", "a name", show(name), "Quote it.")
    missing, nan = _load_missing(f"{path}.missing", form.pop("missing", None)), form.pop("nan", None)
    if nan is not None and nan not in get_args(NanMeaning):
        raise _unknown_choice(f"{path}.nan", nan, get_args(NanMeaning))
    allowed = _ATTRIBUTES if type_name is None else FIELD_CLASSES[type_name].attribute_names()
    _check_keys(path, form, ("type", "from", "name", "missing", "nan", *allowed))
    if type_name is not None:
        # A shape may be inferred later; all other attributes are checked before any data is read.
        declare_field(column, type_name, {**({"shape": [1]} if type_name == "tensor" else {}), **form})
    return ColumnDeclaration(type_name, form, representation, name, missing, nan)


def _load_missing(path: str, given: object) -> tuple[str, ...] | None:
    words = [given] if isinstance(given, str) else given
    if words is None:
        return None
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        advice = "Quote texts that YAML would not read as strings."
        raise _declaration_error(path, "a list of strings", show(given), advice)
    return tuple(words)


def _unknown_choice(path: str, got: object, choices: Iterable[str]) -> SchemaError:
    nearest = find_nearest(got, choices) if isinstance(got, str) else None
    advice = f"Did you mean {nearest!r}?" if nearest else ""
    return _declaration_error(path, list_choices(choices), show(got), advice)


def _check_mapping(path: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _declaration_error(path, "a mapping", "nothing" if value is None else show(value))
    for key in value:
        if not isinstance(key, str):
            raise _declaration_error(path, "strings as keys", show(key), "Quote it.")
    return value


def _check_keys(path: str, form: Mapping[str, Any], allowed: Iterable[str]) -> None:
    for key in form:
        if key not in allowed:
            nearest = find_nearest(key, allowed)
            advice = "" if nearest is None else f"Did you mean {nearest!r}?"
            raise _declaration_error(
                join_place(path, key), f"only {list_choices(allowed)}", "an unknown key", advice
            )


def _declaration_error(path: str, expected: str, got: str, advice: str = "") -> SchemaError:
    what = f"plan at {path}" if path else "plan"
    return SchemaError(what, field=path or None, expected=expected, got=got, advice=advice)
