"""The plan of a conversion: which column of the source becomes which field, how, and why.

In: columns with a field each, or the form that a plan file holds. Out: the schema to write, and that form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, get_args

from penstock.errors import SchemaError
from penstock.foundation.wording import list_choices, show
from penstock.schema.declaration import Form, NanMeaning, declare_field, load_form
from penstock.schema.field import Field, check_choice
from penstock.schema.json_form import dump_fields
from penstock.schema.scalar import Number
from penstock.schema.schema import Schema

_FORM_TYPES: Final[dict[Form, tuple[str, ...]]] = {
    "path": ("image", "bytes"),
    "date": ("number",),
    "time": ("number",),
    "bool": ("number", "category"),
    "json": ("sequence", "tensor"),
}


@dataclass(frozen=True)
class ColumnPlan:
    """One column of the source, and the field that it becomes.

    Attributes:
        column: Its name in the source.
        name: Of the field.
        field: What is written.
        form: How the column holds it.
        missing: Texts of the column that mean a missing value, beside those of the whole source.
        nan: What NaN means in a column of single numbers.
        reason: What speaks for this field, one phrase; "told" where a person said it.
        warnings: What a person should look at, one sentence each.
        is_cautious: Whether the field is optional only because not all rows were looked at.
        is_absent: Whether the source has no such column, and all rows lack the field.
    """

    column: str
    name: str
    field: Field
    form: Form = "value"
    reason: str = ""
    warnings: tuple[str, ...] = ()
    is_cautious: bool = False
    is_absent: bool = False
    missing: tuple[str, ...] = ()
    nan: NanMeaning = "missing"

    def __post_init__(self) -> None:
        if self.form == "value" and self.nan == "missing":
            return  # every field may be so, and tables may have 100,000 columns
        owner = f"column {show(self.column)}"
        check_choice(owner, "from", self.form, get_args(Form))
        check_choice(owner, "nan", self.nan, get_args(NanMeaning))
        types = _FORM_TYPES.get(self.form)
        if types is not None and self.field.type_name not in types:
            raise SchemaError(
                f"'from: {self.form}' of {owner}",
                field=self.column,
                expected=f"a field of type {list_choices(types)}",
                got=show(self.field.type_name),
            )
        if self.form in ("date", "time") and isinstance(self.field, Number) and self.field.dtype != "int64":
            raise SchemaError(
                f"dtype of {owner}",
                field=self.column,
                expected="'int64', for days or microseconds",
                got=show(self.field.dtype),
            )


@dataclass(frozen=True)
class Plan:
    """What a conversion does with every column of its source.

    Attributes:
        columns: Those that are kept, in the order of the source.
        dropped: Those that are not, with the reason.

    Example:
        >>> from penstock.fields import Number
        >>> plan = Plan((ColumnPlan("Age", "age", Number("int64")),), {"name": "told"})
        >>> plan.to_form()
        {'columns': {'Age': {'type': 'number', 'dtype': 'int64', 'name': 'age'}}, 'drop': ['name']}
    """

    columns: tuple[ColumnPlan, ...]
    dropped: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        owners: dict[str, str] = {}
        for each in self.columns:
            owner = owners.setdefault(each.name, each.column)
            if owner != each.column:
                raise SchemaError(
                    f"name of column {show(each.column)}",
                    field=each.column,
                    expected="a name of its own",
                    got=f"{show(each.name)}, the name of column {show(owner)} too",
                    advice="Rename one of them, or drop it.",
                )

    @cached_property
    def schema(self) -> Schema:
        """The fields that are written, by name.

        Raises:
            SchemaError: They cannot be in one schema; two ids, for example.
        """
        return Schema({each.name: each.field for each in self.columns})

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should look at, with the column before each sentence."""
        return tuple(f"{show(each.column)}: {warning}" for each in self.columns for warning in each.warnings)

    def settle(self, missing: Mapping[str, int]) -> Schema:
        """Return the schema once all rows were seen.

        Fields that are optional only out of caution are required after all where no row lacks them.

        Args:
            missing: How many rows lack each field, by field name.
        """
        fields = {
            each.name: dataclasses.replace(each.field, optional=False)
            for each in self.columns
            if each.is_cautious and not missing[each.name]
        }
        return self.schema.replace(fields)

    def __iter__(self) -> Iterator[ColumnPlan]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def to_form(self) -> dict[str, Any]:
        """Return the plan as dicts, lists and scalars, for JSON and YAML; without reasons and warnings."""
        kept = [each for each in self.columns if not each.is_absent]
        fields = dump_fields({each.column: each.field for each in kept})["fields"]
        columns = {each.column: _dump_column(each, fields[each.column]) for each in kept}
        return {"columns": columns, **({"drop": list(self.dropped)} if self.dropped else {})}

    @classmethod
    def from_form(cls, form: object) -> Plan:
        """Read the form that `to_form` makes.

        Raises:
            SchemaError: The form is not such a one; the message says where, like `columns.photo.shape[1]`.
        """
        told = load_form(form)
        columns = []
        for column, entry in told.columns.items():
            if entry.type_name is None:
                place = f"columns.{column}.type"
                expected = "the type of the field"
                raise SchemaError(f"plan at {place}", field=place, expected=expected, got="nothing")
            field = declare_field(column, entry.type_name, entry.attributes)
            columns.append(
                ColumnPlan(
                    column,
                    entry.name or column,
                    field,
                    entry.form or "value",
                    "told",
                    missing=entry.missing or (),
                    nan=entry.nan or "missing",
                )
            )
        return cls(tuple(columns), dict.fromkeys(told.drop, "told"))


@cache
def _usual_attributes(cls: type[Field]) -> dict[str, Any]:
    return {item.name: item.default for item in dataclasses.fields(cls)}


def _dump_column(plan: ColumnPlan, declaration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declaration of a field without its defaults, and how the column holds it."""
    usual = _usual_attributes(type(plan.field))
    # The type of a number is said even where it is the usual one: it is what people look for, and change.
    form = {
        key: value
        for key, value in declaration.items()
        if key not in usual or value != usual[key] or (key == "dtype" and value != "string")
    }
    if plan.form != "value":
        form["from"] = plan.form
    if plan.missing:
        form["missing"] = list(plan.missing)
    if plan.nan != "missing":
        form["nan"] = plan.nan
    if plan.name != plan.column:
        form["name"] = plan.name
    return form
