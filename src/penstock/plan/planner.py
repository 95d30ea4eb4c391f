"""Make the plan of a conversion from user overrides, declarations of the source, and its first rows.

In: a source, `PlanOverrides` and options. Out: a `Plan`. User overrides take precedence over declarations of
the source, and these over types inferred from the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.errors import OptionError, SchemaError, UnknownNameError
from penstock.foundation.wording import refuse, show, unknown_name
from penstock.plan.inference import (
    ID_BY_NAME,
    check_shape,
    choose_encoding,
    find_attributes,
    find_representation,
    infer_type,
    merge_attributes,
)
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.plan_file import read_plan
from penstock.plan.profile import ColumnProfile, SourceProfile
from penstock.plan.survey import may_hold_words, survey_blocks
from penstock.plan.warnings import list_warnings
from penstock.schema.date import Date
from penstock.schema.declaration import (
    FIELD_CLASSES,
    ColumnDeclaration,
    PlanDeclaration,
    Representation,
    TypeName,
    declare_field,
    load_plan_declaration,
)
from penstock.schema.field import Field
from penstock.schema.notation import NumberFormat
from penstock.schema.scalar import MISSING_LABELS, Category, Number
from penstock.settings.conversion import ConvertOptions
from penstock.source.block import PeekedSource, Source

_DECLARED, _NOT_IN_SCHEMA = "declared", "not in the given schema"
_ABSENT: Final = "declared; the source has no such column, so the field is missing in all rows"
_NO_DECLARATION: Final = ColumnDeclaration()
REQUESTED_DROPS: Final = (_DECLARED, _NOT_IN_SCHEMA)
"""Reasons of dropped columns that the user asked to drop."""


@dataclass(frozen=True, kw_only=True)
class PlanOverrides:
    """User overrides of the plan.

    Columns are named by their own name or by the name that `rename` gives them.

    Attributes:
        schema: All fields, by name. Other columns are dropped; optional fields need no column.
        fields: Fields of some columns, by name.
        types: Types of some columns, with or without attributes; the rest is inferred from the data.
        target: Name of the column to predict, or several names.
        weight: Name of the column with sample weights.
        id: Name of the column that identifies each row.

    `fields` takes precedence over `types`, `types` over a plan, and a plan over the declarations of the
    source.
    """

    schema: Mapping[str, Field] | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    types: Mapping[str, TypeName | ColumnDeclaration] = field(default_factory=dict)
    target: str | SequenceOf[str] | None = None
    weight: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        for name, given in (("schema", self.schema), ("fields", self.fields)):
            is_right = isinstance(given, Mapping) and all(isinstance(each, Field) for each in given.values())
            if given is not None and not is_right:
                expected, advice = "fields by name, such as {'photo': fields.Image()}", ""
                if isinstance(given, Mapping) and any(_is_transform(each) for each in given.values()):
                    advice = "Pass transforms of penstock.transform to Pipeline.fit."
                raise OptionError(name, expected=expected, got=show(given), advice=advice)
        targets = [self.target] if isinstance(self.target, str) else self.target or []
        for role in ("target", "weight", "id"):
            got = getattr(self, role)
            names = got if role == "target" and isinstance(got, list | tuple) else [got]
            if got is not None and not all(isinstance(name, str) for name in names):
                raise OptionError(role, expected="the name of a column", got=show(got))
        named = [*targets, *(name for name in (self.weight, self.id) if name is not None)]
        for name in named:
            if named.count(name) > 1:
                raise OptionError(f"column {show(name)}", expected="one role", got="two", field=name)


def make_plan(
    source: Source, overrides: PlanOverrides | None = None, options: ConvertOptions | None = None
) -> Plan:
    """Decide which field every column of a source becomes.

    Only the first rows are read. Pass a source that can be read only once as a `PeekedSource`, which keeps
    these rows for the conversion.
    """
    options = options or ConvertOptions()
    peeked = source if isinstance(source, PeekedSource) else PeekedSource(source, options.num_threads)
    columns = list(peeked.head[0].columns if peeked.head else peeked.declared)
    if not columns:
        raise SchemaError(f"{source.name}: columns", expected="at least one", got="none")
    try:
        declarations = _Declarations(columns, _list_declared(peeked), overrides or PlanOverrides(), options)
    except UnknownNameError as error:  # perhaps because of how the file was read
        error.advice = " ".join([error.advice or "", *(f"{note.rstrip('.')}." for note in peeked.notes)])
        raise
    words = {name: each.missing for name, each in declarations.columns.items() if each.missing is not None}
    profile = survey_blocks(
        peeked.head,
        is_whole=peeked.is_whole,
        targets=declarations.with_role("target"),
        words=words,
        numbers=declarations.list_formats(columns),
        labels=declarations.list_labels(),
        num_threads=options.num_threads,
    )
    planner = _Planner(profile, declarations)
    for column in columns:
        if column in declarations.dropped:
            planner.dropped[column] = declarations.dropped[column]
        else:
            planner.add(column)
    absent = [
        ColumnPlan(name, name, each, reason=_ABSENT, is_absent=True)
        for name, each in declarations.absent.items()
    ]
    peeked.add_absent(declarations.absent)
    plan = Plan((*planner.plans, *absent), planner.dropped)
    if not planner.plans:
        why = "; ".join(f"{show(column)} is dropped: {why}" for column, why in plan.dropped.items())
        raise SchemaError(f"{source.name}: plan", expected="at least one column to keep", got=why or "none")
    return plan


class _Declarations:
    """Declarations of all columns: the source's, overridden by the user's.

    Attributes:
        columns: Merged declarations, by column.
        by_user: Declarations of the user alone, by column.
        dropped: Reason of each column that is dropped on request.
        absent: Optional fields of a given schema for which the source has no column.
        nan: Meaning of NaN in columns whose declaration leaves it open.
        dates: Order of dates in columns whose declaration leaves it open.
    """

    def __init__(
        self,
        columns: SequenceOf[str],
        declared: Mapping[str, ColumnDeclaration],
        overrides: PlanOverrides,
        options: ConvertOptions,
    ) -> None:
        self._names = dict.fromkeys(columns)  # a dict, because every given name is looked up
        self.columns = dict(declared)
        self.by_user: dict[str, ColumnDeclaration] = {}
        self.absent: dict[str, Field] = {}
        self.nan = options.nan
        self.dates = options.date_order
        self._numbers = options.numbers
        form = PlanDeclaration({})
        if options.plan is not None:
            form = load_plan_declaration(read_plan(options.plan))
        self._need([*form.columns, *form.drop, *options.rename, *options.drop])
        for column, entry in form.columns.items():
            self._put(column, entry)
        self._renamed = {each.name: column for column, each in form.columns.items() if each.name is not None}
        for column, name in options.rename.items():
            self._renamed[name] = column
            self._put(column, ColumnDeclaration(name=name))
        for name, given in overrides.types.items():
            entry = given if isinstance(given, ColumnDeclaration) else ColumnDeclaration(given)
            self._put(self._find(name), entry)
        self.dropped = dict.fromkeys([*form.drop, *options.drop], _DECLARED)
        if overrides.schema is not None:
            self._keep_schema(overrides.schema)
        for name, each in overrides.fields.items():
            self._put(self._find(name), ColumnDeclaration.from_field(each))
        for role, names in (("target", overrides.target), ("weight", overrides.weight), ("id", overrides.id)):
            self._give_role(role, [names] if isinstance(names, str) else list(names or ()))
        self._refuse_contradiction()

    def list_formats(self, columns: SequenceOf[str]) -> dict[str, NumberFormat]:
        """Return the declared formats of numbers, by column."""
        usual = self._numbers
        declared = {name: each.numbers for name, each in self.columns.items() if each.numbers is not None}
        return declared if usual is None else {**dict.fromkeys(columns, usual), **declared}

    def with_role(self, role: str) -> tuple[str, ...]:
        """Return the columns that are declared to have a role."""
        return tuple(name for name, each in self.columns.items() if each.attributes.get("role") == role)

    def list_labels(self) -> tuple[str, ...]:
        """Return the targets for which neither a type nor texts of missing values are declared."""
        return tuple(
            name
            for name in self.with_role("target")
            if self.columns[name].type_name is None and self.columns[name].missing is None
        )

    def _keep_schema(self, schema: Mapping[str, Field]) -> None:
        kept = set()
        for name, declared in schema.items():
            if declared.optional and name not in self._names and name not in self._renamed:
                self.absent[name] = declared
                continue
            column = self._find(name)
            kept.add(column)
            self._put(column, ColumnDeclaration.from_field(declared, is_whole=True))
        for column in self._names:
            if column not in kept:
                self.by_user.pop(column, None)
                self.dropped.setdefault(column, _NOT_IN_SCHEMA)

    def _give_role(self, role: str, names: Iterable[str]) -> None:
        columns = [self._find(name) for name in names]
        if not columns:
            return
        for column in self.with_role(role):
            if column not in columns:
                self.columns[column] = self.columns[column].with_role("input")
        for column in columns:
            self._put(column, ColumnDeclaration(attributes={"role": role}))

    def _put(self, column: str, declared: ColumnDeclaration) -> None:
        self.columns[column] = declared.over(self.columns.get(column))
        self.by_user[column] = declared.over(self.by_user.get(column))

    def _find(self, name: str) -> str:
        if name in self._names and name not in self._renamed:
            return name
        if name in self._renamed:
            return self._renamed[name]
        raise unknown_name(name, [*self._names, *self._renamed], what="column")

    def _need(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._names:
                raise unknown_name(name, list(self._names), what="column")

    def _refuse_contradiction(self) -> None:
        for column, why in self.dropped.items():
            if column in self.by_user and why == _DECLARED:
                expected = "either a declared field or a dropped column"
                advice = "Remove one of the two declarations."
                raise refuse(f"column {show(column)}", "use", expected=expected, got="both", advice=advice)


def _refuse_column(column: str, role: str, profile: ColumnProfile, reason: str) -> SchemaError:
    """Return the error for a declared column without values that a field can hold."""
    if role == "target" and profile.kind == "empty":
        what, expected = f"target {show(column)}", "a label in at least one row"
        advice = "Choose another target: `target=NAME`; or fill in its labels."
    else:
        what, expected = f"column {show(column)}", "values that a field can hold"
        advice = "Declare its type, or do not declare the column."
    return SchemaError(what, field=column, expected=expected, got=reason, advice=advice)


class _Planner:
    """Plans one column after the other; at most one of them becomes the id."""

    def __init__(self, profile: SourceProfile, declarations: _Declarations) -> None:
        self._profile = profile
        self._declarations = declarations
        self._has_id = bool(declarations.with_role("id"))
        self._labels = frozenset(declarations.list_labels())
        self._has_commas = any(_has_commas(each) for each in profile.columns.values())
        self._fields: dict[tuple[object, ...], Field] = {}
        self.plans: list[ColumnPlan] = []
        self.dropped: dict[str, str] = {}

    def add(self, column: str) -> None:
        """Plan a column, or drop it if no field can hold its values."""
        profile = self._profile.columns.get(column) or ColumnProfile(
            kind="empty", type_text="nothing", num_rows=0
        )
        given = self._declarations.columns.get(column, _NO_DECLARATION)
        by_user = self._declarations.by_user.get(column)
        role = given.attributes.get("role", "input")
        nan = given.nan or self._declarations.nan
        profile = profile.with_nan() if nan == "value" else profile
        if (order := given.dates or self._declarations.dates) is not None:
            profile = profile.with_dates(order)
        inferred = infer_type(column, profile, is_target=role == "target", is_whole=self._profile.is_whole)
        type_name = given.type_name or inferred.type_name
        if type_name is None:
            if by_user is not None:
                raise _refuse_column(column, role, profile, inferred.reason)
            self.dropped[column] = inferred.reason
            return
        becomes_id = inferred.is_id and "role" not in given.attributes and not self._has_id
        is_unused = bool(inferred.left_out) and by_user is None and given.type_name is None and not becomes_id
        attributes = self._fill(column, type_name, given, profile)
        if type_name not in ("number", "date") and attributes.get("dtype") != "int64" and profile.markers:
            profile = profile.with_markers()
            attributes = self._fill(column, type_name, given, profile)
        if becomes_id and given.type_name is None:
            self._has_id = True
            attributes["role"] = "id"
        elif is_unused:
            attributes["role"] = "unused"
        form = given.form or find_representation(type_name, attributes, profile)
        # Inferred attributes need no check, which would take long for a table of a hundred thousand columns.
        if given.attributes or type_name == "tensor":
            planned = declare_field(column, type_name, attributes)
        else:
            planned = self._make_field(type_name, attributes)
        warnings = list_warnings(column, profile, planned, form, is_declared=given.type_name is not None)
        if becomes_id and given.type_name is None and inferred.reason == ID_BY_NAME:
            warnings = (f"it becomes the id: {inferred.left_out}", *warnings)
        elif is_unused:
            warnings = (f"it is stored, and is not an input: {inferred.left_out}", *warnings)
        if self._has_commas and profile.text is not None and profile.text.may_be_grouped:
            warnings += (
                "numbers are read with a decimal point, but other columns have decimal commas. Use "
                "`decimal=','` if the points separate thousands.",
            )
        missing = given.missing
        if missing is None:
            missing = self._find_missing(profile) if column in self._labels else tuple(profile.markers)
        is_cautious = planned.optional and planned.default is None and not profile.num_missing
        order = given.dates or profile.date_order
        self.plans.append(
            ColumnPlan(
                column,
                given.name or column,
                planned,
                form,
                _word_reason(by_user, given, inferred.type_name, inferred.reason),
                warnings if profile.num_present or by_user is None else (),
                is_cautious and "optional" not in given.attributes,
                missing=missing,
                nan=nan if _may_hold_nan(planned) else "missing",
                numbers=_find_numbers(planned, form, profile, given.numbers),
                dates=order if order and holds_dates(planned, form) else None,
            )
        )

    def _find_missing(self, profile: ColumnProfile) -> tuple[str, ...]:
        """Return the texts that mark a missing label in a target."""
        if not may_hold_words(profile):
            return tuple(profile.markers)
        # Rows that were not read may have others.
        return tuple(profile.unlabelled) if self._profile.is_whole else MISSING_LABELS

    def _make_field(self, type_name: TypeName, attributes: Mapping[str, Any]) -> Field:
        """Return a field; columns with equal attributes share one object."""
        key = (type_name, *attributes.items())
        try:
            field = self._fields.get(key)
        except TypeError:  # lists of values, which few columns share
            return FIELD_CLASSES[type_name](**attributes)
        if field is None:
            field = self._fields[key] = FIELD_CLASSES[type_name](**attributes)
        return field

    def _fill(
        self, column: str, type_name: TypeName, given: ColumnDeclaration, profile: ColumnProfile
    ) -> dict[str, Any]:
        """Return the declared attributes, completed by inferred ones."""
        attributes = dict(given.attributes)
        if not given.is_whole:
            found = find_attributes(type_name, profile, is_whole=self._profile.is_whole)
            attributes = merge_attributes(found, given.attributes)
            if profile.num_missing > 0 or not self._profile.is_whole:
                attributes.setdefault("optional", True)
        if type_name == "tensor":
            check_shape(column, attributes)
            if attributes.get("encoding", "auto") == "auto":
                attributes |= choose_encoding(attributes)
        return attributes


def _find_numbers(
    field: Field, form: Representation, profile: ColumnProfile, declared: NumberFormat | None
) -> NumberFormat | None:
    """Return the format of numbers in texts; None if the field does not hold single numbers."""
    if form != "value" or not holds_numbers(field):
        return None
    if declared is not None and declared.decimal is not None:
        return None if declared.is_plain else declared  # rows that were not read may have separators
    return None if profile.text is None else profile.text.numbers


def _has_commas(profile: ColumnProfile) -> bool:
    text = profile.text
    if text is None or text.numbers is None or text.example is None:
        return False
    return text.numbers.decimal == ","


def holds_numbers(field: Field) -> bool:
    """Return whether a field holds one number per row."""
    return isinstance(field, Number) or (isinstance(field, Category) and field.dtype == "int64")


def holds_dates(field: Field, form: Representation) -> bool:
    """Return whether a field holds one date or point in time per row."""
    return isinstance(field, Date) or form in ("date", "time")


def _may_hold_nan(field: Field) -> bool:
    return isinstance(field, Number) and field.dtype != "int64"


def _list_declared(source: PeekedSource) -> dict[str, ColumnDeclaration]:
    return {
        column: replace(ColumnDeclaration.from_field(declared), form=source.forms.get(column))
        for column, declared in source.declared.items()
    }


def _word_reason(
    by_user: ColumnDeclaration | None, given: ColumnDeclaration, inferred: TypeName | None, reason: str
) -> str:
    if given.type_name is None:
        return reason
    origin = "declared" if by_user is not None and by_user.type_name is not None else "declared by the source"
    return f"{origin}; {reason}" if given.type_name == inferred else origin


def _is_transform(value: object) -> bool:
    """Return whether a value is an object of `penstock.transform`, which this stage must not import."""
    return type(value).__module__.startswith("penstock.transform.")
