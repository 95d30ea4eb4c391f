"""What a person said about the columns of a source, in whole or in part.

In: the form that a plan file holds, field objects, names of types. Out: `Told`, one a column; what it leaves
open is taken from the data. A fault is a `SchemaError` whose `field` is the place: `columns.photo.shape[1]`.
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

Form: TypeAlias = Literal["value", "path", "date", "time", "bool", "json"]
"""How a column holds the values of its field.

- `value`: as they are.
- `path`: as names of files that hold them, relative to where the source lies.
- `date`: as dates, stored as days since 1970-01-01.
- `time`: as points in time, stored as microseconds since 1970-01-01T00:00 UTC; UTC where they name no zone.
- `bool`: as true or false, in any case; stored as 1 and 0.
- `json`: as texts that hold a JSON list.
"""

NanMeaning: TypeAlias = Literal["missing", "value"]
"""What NaN means in a column of single numbers: a missing value, or a value like any other."""

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
class Told:
    """What was said of one column.

    Attributes:
        type_name: Of the field; None leaves it to the data.
        attributes: Of the field, in their JSON form; what is not there is left to the data.
        form: How the column holds the values; None leaves it to the data.
        name: Of the field; None for the column's own.
        missing: Texts of the column that mean a missing value; None leaves it to the data.
        nan: What NaN means in the column; None leaves it to the options.
        is_whole: Whether nothing is left open but the form: a field of a whole schema.
    """

    type_name: TypeName | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    form: Form | None = None
    name: str | None = None
    missing: tuple[str, ...] | None = None
    nan: NanMeaning | None = None
    is_whole: bool = False

    @classmethod
    def from_field(cls, declared: Field, *, is_whole: bool = False) -> Told:
        """Take a field object: it says everything but whether it is optional, unless it says that it is."""
        form = dump_fields({"": declared})["fields"][""]
        type_name = form.pop("type")
        if not is_whole:
            # What a field object does not say looks like its defaults; these of them are taken as not said.
            open_by_default = {"format": None, "values": None, "role": "input"}
            form = {
                key: value
                for key, value in form.items()
                if key not in open_by_default or value != open_by_default[key]
            }
        return cls(type_name, form, is_whole=is_whole)

    def over(self, lower: Told | None) -> Told:
        """Return what results where both were said: this one, and what it leaves open as `lower` has it.

        Of another type than `lower`, only what all types have in common is taken from there.
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

    def with_role(self, role: str) -> Told:
        """Return the same with a role."""
        return replace(self, attributes={**self.attributes, "role": role})


@dataclass(frozen=True)
class ToldForm:
    """A plan file: what was said of some columns, and those that are to be left out."""

    columns: Mapping[str, Told]
    drop: tuple[str, ...] = ()


def load_form(form: object) -> ToldForm:
    """Read `{"columns": {"age": {"type": "number"}}, "drop": ["name"]}`; entries may leave anything open.

    Raises:
        SchemaError: The form is not such a one.
    """
    root = _need_object("", form)
    _need_keys("", root, ("columns", "drop"))
    columns = _need_object("columns", root.get("columns") or {})
    told = {
        column: _load_entry(join_place("columns", column), column, entry) for column, entry in columns.items()
    }
    drop = root.get("drop") or []
    if not isinstance(drop, list) or not all(isinstance(column, str) for column in drop):
        raise _fault(
            "drop",
            "a list of names of columns",
            show(drop),
            "Put names that YAML reads as something else into quotes.",
        )
    for column in drop:
        if column in told:
            raise _fault("drop", "columns that `columns` does not keep", show(column), "Keep it or drop it.")
    return ToldForm(told, tuple(drop))


def declare_field(column: str, type_name: TypeName, attributes: Mapping[str, Any]) -> Field:
    """Make a field from attributes in their JSON form.

    Raises:
        SchemaError: There is no such field.
    """
    form = {"version": VERSION, "fields": {column: {"type": type_name, **attributes}}}
    try:
        return load_fields(form)[column]
    except SchemaError as error:
        place = f"columns{(error.field or '').removeprefix('$.fields')}"
        raise _fault(place, str(error.expected), str(error.got), error.advice) from None


def _load_entry(place: str, column: str, entry: object) -> Told:
    form = dict(_need_object(place, entry))
    type_name = form.pop("type", None)
    if type_name is not None and not (isinstance(type_name, str) and type_name in FIELD_CLASSES):
        raise _unknown(f"{place}.type", type_name, FIELD_CLASSES)
    held = form.pop("from", None)
    if held is not None and held not in get_args(Form):
        raise _unknown(f"{place}.from", held, get_args(Form))
    name = form.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise _fault(f"{place}.name", "a name", show(name), "Put it into quotes.")
    missing, nan = _load_missing(f"{place}.missing", form.pop("missing", None)), form.pop("nan", None)
    if nan is not None and nan not in get_args(NanMeaning):
        raise _unknown(f"{place}.nan", nan, get_args(NanMeaning))
    allowed = _ATTRIBUTES if type_name is None else FIELD_CLASSES[type_name].attribute_names()
    _need_keys(place, form, ("type", "from", "name", "missing", "nan", *allowed))
    if type_name is not None:
        # A shape may be left to the data; all else is checked before any data is read.
        declare_field(column, type_name, {**({"shape": [1]} if type_name == "tensor" else {}), **form})
    return Told(type_name, form, held, name, missing, nan)


def _load_missing(place: str, given: object) -> tuple[str, ...] | None:
    words = [given] if isinstance(given, str) else given
    if words is None:
        return None
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        advice = "Put texts that YAML reads as something else into quotes."
        raise _fault(place, "a list of texts", show(given), advice)
    return tuple(words)


def _unknown(place: str, got: object, choices: Iterable[str]) -> SchemaError:
    nearest = find_nearest(got, choices) if isinstance(got, str) else None
    return _fault(place, list_choices(choices), show(got), f"Did you mean {nearest!r}?" if nearest else "")


def _need_object(place: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _fault(place, "names with something behind each", "nothing" if value is None else show(value))
    for key in value:
        if not isinstance(key, str):
            raise _fault(place, "names that are strings", show(key), "Put it into quotes.")
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
    what = f"plan at {place}" if place else "plan"
    return SchemaError(what, field=place or None, expected=expected, got=got, advice=advice)
