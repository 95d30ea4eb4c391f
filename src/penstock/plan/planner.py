"""Make the plan of a conversion: what a person told, what the source declares, and what its first rows show.

In: a source and what was told. Out: a `Plan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.errors import OptionError, SchemaError
from penstock.foundation.wording import refuse, show, unknown_name
from penstock.plan.inference import (
    choose_encoding,
    find_attributes,
    find_form,
    guess_type,
    merge_attributes,
    need_shape,
)
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.profile import ColumnFacts, SourceFacts
from penstock.plan.survey import survey_blocks
from penstock.plan.warnings import list_doubts
from penstock.schema.declaration import (
    FIELD_CLASSES,
    NanMeaning,
    Told,
    ToldForm,
    TypeName,
    declare_field,
    load_form,
)
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.source.block import Peeked, Source

_TOLD, _NOT_IN_SCHEMA = "told", "not in the schema that was told"
_ABSENT: Final = "told; the source has no such column, so that it is missing in all rows"
_NOTHING: Final = Told()
ASKED_FOR: Final = (_TOLD, _NOT_IN_SCHEMA)
"""Why a column is left out, where a person asked for that."""


@dataclass(frozen=True, kw_only=True)
class PlanOverrides:
    """What a person told about the columns; a name is that of a column, or the one that `rename` gives it.

    Attributes:
        schema: All fields, by name: other columns are left out. Optional ones need not have a column.
        fields: Fields of some columns.
        types: Only the types of some columns, with attributes or without; the rest is taken from the data.
        target: What a model is to predict.
        weight: The column that weighs each row.
        id: The column that names each row.
        drop: Columns to leave out.
        rename: Names of fields, by column.
        form: A plan file, as `load_yaml` returns it.
        nan: What NaN means in columns of which the plan file does not say it.

    Fields count before types, types before the plan file, and that before what the source declares.
    """

    schema: Mapping[str, Field] | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    types: Mapping[str, TypeName | Told] = field(default_factory=dict)
    target: str | SequenceOf[str] | None = None
    weight: str | None = None
    id: str | None = None
    drop: SequenceOf[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Any] | None = None
    nan: NanMeaning = "missing"

    def __post_init__(self) -> None:
        for name, given in (("schema", self.schema), ("fields", self.fields)):
            is_right = isinstance(given, Mapping) and all(isinstance(each, Field) for each in given.values())
            if given is not None and not is_right:
                expected, advice = "fields by name, such as {'photo': fields.Image()}", ""
                if isinstance(given, Mapping) and any(_is_transform(each) for each in given.values()):
                    advice = "Transforms, of penstock.transform, are for Pipeline.fit."
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


def make_plan(source: Source, overrides: PlanOverrides | None = None) -> Plan:
    """Decide what becomes of every column of a source.

    Only the first rows are looked at. A source whose blocks can be read but once is to be given as `Peeked`,
    which still has them for the conversion.

    Raises:
        UnknownNameError: Something was told of a column that is not there.
        SchemaError: What was told cannot be.
    """
    peeked = source if isinstance(source, Peeked) else Peeked(source)
    columns = list(peeked.head[0].columns if peeked.head else peeked.declared)
    if not columns:
        raise SchemaError(f"{source.name}: columns", expected="at least one", got="none")
    told = _Telling(columns, _list_declared(peeked), overrides or PlanOverrides())
    words = {name: each.missing for name, each in told.columns.items() if each.missing is not None}
    facts = survey_blocks(
        peeked.head, is_whole=peeked.is_whole, targets=told.with_role("target"), words=words
    )
    planner = _Planner(facts, told)
    for column in columns:
        if column in told.dropped:
            planner.dropped[column] = told.dropped[column]
        else:
            planner.add(column)
    absent = [
        ColumnPlan(name, name, each, reason=_ABSENT, is_absent=True) for name, each in told.absent.items()
    ]
    peeked.add_absent(told.absent)
    plan = Plan((*planner.plans, *absent), planner.dropped)
    if not planner.plans:
        why = "; ".join(f"{show(column)} is left out: {why}" for column, why in plan.dropped.items())
        raise SchemaError(f"{source.name}: plan", expected="at least one column to keep", got=why or "none")
    return plan


class _Telling:
    """What was told, by column: all layers in one, the lowest first.

    Attributes:
        columns: What the source declares, and what was told over it.
        told: Of which columns a person said something.
        dropped: Columns to leave out, with the reason.
        absent: Fields of a whole schema that may be missing, and for which there is no column.
        nan: What NaN means where nothing was said of the column.
    """

    def __init__(
        self, columns: SequenceOf[str], declared: Mapping[str, Told], overrides: PlanOverrides
    ) -> None:
        self._names = dict.fromkeys(columns)  # asked for every name that was told
        self.columns = dict(declared)
        self.told: dict[str, Told] = {}
        self.absent: dict[str, Field] = {}
        self.nan = overrides.nan
        form = ToldForm({}) if overrides.form is None else load_form(overrides.form)
        self._need([*form.columns, *form.drop, *overrides.rename, *overrides.drop])
        for column, entry in form.columns.items():
            self._put(column, entry)
        self._renamed = {each.name: column for column, each in form.columns.items() if each.name is not None}
        for column, name in overrides.rename.items():
            self._renamed[name] = column
            self._put(column, Told(name=name))
        for name, told in overrides.types.items():
            self._put(self._find(name), told if isinstance(told, Told) else Told(told))
        self.dropped = dict.fromkeys([*form.drop, *overrides.drop], _TOLD)
        if overrides.schema is not None:
            self._keep_schema(overrides.schema)
        for name, given in overrides.fields.items():
            self._put(self._find(name), Told.from_field(given))
        for role, names in (("target", overrides.target), ("weight", overrides.weight), ("id", overrides.id)):
            self._give_role(role, [names] if isinstance(names, str) else list(names or ()))
        self._refuse_contradiction()

    def with_role(self, role: str) -> tuple[str, ...]:
        """Return the columns that were told to have a role."""
        return tuple(name for name, told in self.columns.items() if told.attributes.get("role") == role)

    def _keep_schema(self, schema: Mapping[str, Field]) -> None:
        kept = set()
        for name, declared in schema.items():
            if declared.optional and name not in self._names and name not in self._renamed:
                self.absent[name] = declared
                continue
            column = self._find(name)
            kept.add(column)
            self._put(column, Told.from_field(declared, is_whole=True))
        for column in self._names:
            if column not in kept:
                self.told.pop(column, None)
                self.dropped.setdefault(column, _NOT_IN_SCHEMA)

    def _give_role(self, role: str, names: Iterable[str]) -> None:
        told = [self._find(name) for name in names]
        if not told:
            return
        for column in self.with_role(role):
            if column not in told:
                self.columns[column] = self.columns[column].with_role("input")
        for column in told:
            self._put(column, Told(attributes={"role": role}))

    def _put(self, column: str, told: Told) -> None:
        self.columns[column] = told.over(self.columns.get(column))
        self.told[column] = told.over(self.told.get(column))

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
            if column in self.told and why == _TOLD:
                got = "both told"
                advice = "Leave one of them out."
                raise refuse(
                    f"column {show(column)}",
                    "use",
                    expected="a field or to be dropped",
                    got=got,
                    advice=advice,
                )


def _refuse_column(column: str, role: str, facts: ColumnFacts, reason: str) -> SchemaError:
    """Return the error for a declared column whose values tell no type."""
    if role == "target" and facts.kind == "empty":
        what, expected = f"target {show(column)}", "a label in at least one row"
        advice = "Name another target: --target NAME, in Python target='NAME'; or fill in its labels."
    else:
        what, expected = f"column {show(column)}", "values that a field can hold"
        advice = "Declare its type, or leave it out of the declaration."
    return SchemaError(what, field=column, expected=expected, got=reason, advice=advice)


class _Planner:
    """Plans column after column; only one of them can be the id."""

    def __init__(self, facts: SourceFacts, telling: _Telling) -> None:
        self._facts = facts
        self._telling = telling
        self._has_id = bool(telling.with_role("id"))
        self._fields: dict[tuple[object, ...], Field] = {}
        self.plans: list[ColumnPlan] = []
        self.dropped: dict[str, str] = {}

    def add(self, column: str) -> None:
        """Plan a column, or leave it out where no field can hold it."""
        facts = self._facts.columns.get(column) or ColumnFacts(kind="empty", type_text="nothing", num_rows=0)
        given = self._telling.columns.get(column, _NOTHING)
        told = self._telling.told.get(column)
        role = given.attributes.get("role", "input")
        nan = given.nan or self._telling.nan
        facts = facts.with_nan() if nan == "value" else facts
        guess = guess_type(column, facts, is_target=role == "target", is_whole=self._facts.is_whole)
        type_name = given.type_name or guess.type_name
        if type_name is None:
            if told is not None:
                raise _refuse_column(column, role, facts, guess.reason)
            self.dropped[column] = guess.reason
            return
        attributes = self._fill(column, type_name, given, facts)
        if type_name != "number" and attributes.get("dtype") != "int64" and facts.markers:
            facts = facts.with_markers()
            attributes = self._fill(column, type_name, given, facts)
        if guess.is_id and "role" not in given.attributes and not self._has_id and given.type_name is None:
            self._has_id = True
            attributes["role"] = "id"
        form = given.form or find_form(type_name, attributes, facts)
        # What the data say needs no check, and tables of a hundred thousand columns no time for it.
        if given.attributes or type_name == "tensor":
            declared = declare_field(column, type_name, attributes)
        else:
            declared = self._make_field(type_name, attributes)
        doubts = list_doubts(column, facts, declared, form, is_declared=given.type_name is not None)
        is_cautious = declared.optional and declared.default is None and not facts.num_missing
        self.plans.append(
            ColumnPlan(
                column,
                given.name or column,
                declared,
                form,
                _word_reason(told, given, guess.type_name, guess.reason),
                doubts if facts.num_present or told is None else (),
                is_cautious and "optional" not in given.attributes,
                missing=tuple(facts.markers) if given.missing is None else given.missing,
                nan=nan if _may_hold_nan(declared) else "missing",
            )
        )

    def _make_field(self, type_name: TypeName, attributes: Mapping[str, Any]) -> Field:
        """Return a field; columns of one declaration share it."""
        key = (type_name, *attributes.items())
        try:
            field = self._fields.get(key)
        except TypeError:  # lists of values, which hardly any two columns share
            return FIELD_CLASSES[type_name](**attributes)
        if field is None:
            field = self._fields[key] = FIELD_CLASSES[type_name](**attributes)
        return field

    def _fill(self, column: str, type_name: TypeName, given: Told, facts: ColumnFacts) -> dict[str, Any]:
        """Take from the data what was left open."""
        attributes = dict(given.attributes)
        if not given.is_whole:
            found = find_attributes(type_name, facts, is_whole=self._facts.is_whole)
            attributes = merge_attributes(found, given.attributes)
            is_target = attributes.get("role") == "target"
            may_lack = facts.num_missing > 0 or (not self._facts.is_whole and not is_target)
            if may_lack:
                attributes.setdefault("optional", True)
        if type_name == "tensor":
            need_shape(column, attributes)
            if attributes.get("encoding", "auto") == "auto":
                attributes |= choose_encoding(attributes)
        return attributes


def _may_hold_nan(field: Field) -> bool:
    return isinstance(field, Number) and field.dtype != "int64"


def _list_declared(source: Peeked) -> dict[str, Told]:
    return {
        column: replace(Told.from_field(declared), form=source.forms.get(column))
        for column, declared in source.declared.items()
    }


def _word_reason(told: Told | None, given: Told, guessed: TypeName | None, reason: str) -> str:
    if given.type_name is None:
        return reason
    said = "told" if told is not None and told.type_name is not None else "the source says so"
    return f"{said}; {reason}" if given.type_name == guessed else said


def _is_transform(value: object) -> bool:
    """Whether a value is an object of `penstock.transform`, which this stage must not import."""
    return type(value).__module__.startswith("penstock.transform.")
