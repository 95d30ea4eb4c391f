"""The plan of a conversion: which field each column of the source becomes, how, and why.

In: columns with their fields. Out: the schema to write, and the plan as a dict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, get_args

from penstock.errors import SchemaError
from penstock.foundation.wording import list_choices, show
from penstock.schema.declaration import Representation
from penstock.schema.field import Field, check_choice
from penstock.schema.json_form import dump_fields
from penstock.schema.notation import DateOrder, NanMeaning, NumberFormat
from penstock.schema.scalar import Number
from penstock.schema.schema import Schema

_FORM_TYPES: Final[dict[Representation, tuple[str, ...]]] = {
    "path": ("image", "bytes"),
    "date": ("number",),
    "time": ("number",),
    "bool": ("number", "category"),
    "json": ("sequence", "tensor"),
}


@dataclass(frozen=True)
class ColumnPlan:
    """Plan of one column: the field that it becomes.

    Attributes:
        column: Name of the column in the source.
        name: Name of the field.
        field: Field that is written.
        form: Representation of the field's values in the column.
        missing: Texts that mark a missing value in this column, in addition to those of the source.
        nan: Meaning of NaN in a column of single numbers.
        numbers: Format of numbers in texts, if they are not written as in Python.
        dates: Order of day, month and year in texts, if they are not in ISO 8601.
        reason: Reason for this field, one phrase; "declared" if the user declared it.
        warnings: Warnings about the column, with the option that changes the decision.
        is_cautious: Whether the field is optional only because not all rows were read.
        is_absent: Whether the source has no such column, so that the field is missing in all rows.
    """

    column: str
    name: str
    field: Field
    form: Representation = "value"
    reason: str = ""
    warnings: tuple[str, ...] = ()
    is_cautious: bool = False
    is_absent: bool = False
    missing: tuple[str, ...] = ()
    nan: NanMeaning = "missing"
    numbers: NumberFormat | None = None
    dates: DateOrder | None = None

    def __post_init__(self) -> None:
        if self.form == "value" and self.nan == "missing":
            return  # valid for every field; checks would take long for 100,000 columns
        owner = f"column {show(self.column)}"
        check_choice(owner, "from", self.form, get_args(Representation))
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
    """Plan of a conversion: what becomes of each column of the source.

    Attributes:
        columns: Plans of the columns that are kept, in the order of the source.
        dropped: Reason of each column that is dropped.

    Example:
        >>> from penstock.fields import Number
        >>> plan = Plan((ColumnPlan("Age", "age", Number("int64")),), {"name": "declared"})
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
                    expected="a unique name",
                    got=f"{show(each.name)}, which is also the name of column {show(owner)}",
                    advice="Rename or drop one of them.",
                )

    @cached_property
    def schema(self) -> Schema:
        """Schema of the data set that is written."""
        return Schema({each.name: each.field for each in self.columns})

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about all columns, each after the name of its column."""
        return tuple(f"{show(each.column)}: {warning}" for each in self.columns for warning in each.warnings)

    def finalize_schema(self, missing: Mapping[str, int]) -> Schema:
        """Return the schema after all rows were read: cautious fields that no row lacks are required."""
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
        """Return the plan as a JSON-compatible dict, without reasons and warnings."""
        kept = [each for each in self.columns if not each.is_absent]
        fields = dump_fields({each.column: each.field for each in kept})["fields"]
        columns = {each.column: _dump_column(each, fields[each.column]) for each in kept}
        return {"columns": columns, **({"drop": list(self.dropped)} if self.dropped else {})}


@cache
def _default_attributes(cls: type[Field]) -> dict[str, Any]:
    return {item.name: item.default for item in dataclasses.fields(cls)}


def _dump_column(plan: ColumnPlan, declaration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of a column's plan, without attributes that have their default."""
    defaults = _default_attributes(type(plan.field))
    # The dtype of a number and the unit of a date are written even if they are the default: users look for
    # them and change them.
    form = {
        key: value
        for key, value in declaration.items()
        if key not in defaults
        or value != defaults[key]
        or (key == "dtype" and value != "string")
        or key == "unit"
    }
    if plan.form != "value":
        form["from"] = plan.form
    if plan.missing:
        form["missing"] = list(plan.missing)
    if plan.nan != "missing":
        form["nan"] = plan.nan
    if plan.numbers is not None:
        form |= plan.numbers.to_form()
    if plan.dates is not None:
        form["date_order"] = plan.dates
    if plan.name != plan.column:
        form["name"] = plan.name
    return form
