"""How new raw columns become fields: in the same way as in the raw data that the model was trained on.

In: what a run records about its data; the columns of a source with its first block. Out: `Recipe`, which
fields came from which columns and how; `RawLayout`, the same for the new columns. No type is inferred, only
the representation of values in a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from penstock.errors import PenstockError, SchemaError
from penstock.format.manifest import Manifest, load_manifest
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.wording import find_nearest, show, unknown_name
from penstock.jobs.predict.data_columns import Keeping, can_lack, find_absent
from penstock.plan.inference import find_representation
from penstock.plan.plan import ColumnPlan
from penstock.plan.planner import holds_dates, holds_numbers
from penstock.plan.profile import ColumnProfile
from penstock.plan.styled_texts import are_numbers, find_doubt
from penstock.plan.survey import survey_column
from penstock.schema.declaration import ColumnDeclaration, Representation, load_plan_declaration
from penstock.schema.field import Field
from penstock.schema.notation import DateOrder, NanMeaning, NumberFormat
from penstock.schema.scalar import Image
from penstock.schema.schema import Schema
from penstock.settings.conversion import RecordedFormat
from penstock.settings.groups import TextFiles
from penstock.source.block import Block, Source
from penstock.storage.store_path import AnyPath
from penstock.training.recorded_data import RecordedData
from penstock.transform.pipeline import Pipeline

IMAGE: Final = "image"
"""Name of the column of images, if the data has only images."""

HEAVY: Final = ("image", "bytes")
"""Types of fields whose values may be large, and may be given as paths of files."""

_TYPED: Final = ("number", "category", "date", "text")
_OPEN: Final = ("text", "empty")  # kinds of columns that have several representations
_TIMES: Final[tuple[Representation, ...]] = ("date", "time")
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Recipe:
    """How the raw data that a model was trained on became fields.

    Attributes:
        schema: Fields of the data set; fields that the pipeline reads are as in the pipeline.
        columns: Names of raw columns by field, where they differ.
        forms: Representation of values in the columns, by field; "value" is not listed.
        format: How text files were read, and images stored.
        words: Texts that marked a missing value in a column, by field.
        nans: Meaning of NaN in a column, by field; "missing" is not listed.
        numbers: Formats of numbers in texts of a column, by field; plain ones are not listed.
        dates: Orders of dates in texts of a column, by field; those in ISO 8601 are not listed.
    """

    schema: Schema
    columns: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Representation] = field(default_factory=dict)
    format: RecordedFormat = field(default_factory=RecordedFormat)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nans: Mapping[str, NanMeaning] = field(default_factory=dict)
    numbers: Mapping[str, NumberFormat] = field(default_factory=dict)
    dates: Mapping[str, DateOrder] = field(default_factory=dict)


def find_recipe(pipeline: Pipeline, recorded: RecordedData, data: AnyPath | list[AnyPath] | None) -> Recipe:
    """Return how the raw data of a run was encoded.

    `data`: folder of the data set, whose manifest has what the run does not record, if it still exists.
    Otherwise, as for single files, representations are inferred from the new data.
    """
    recorded = complete_recorded(recorded, data)
    plan = recorded.plan or {}
    try:
        whole = Schema({**(recorded.schema or {}), **pipeline.schema})
    except SchemaError:
        whole = pipeline.schema  # the data set was opened with other roles than its manifest has
    recorded_format = _read_format(plan, recorded.reading)
    if not plan:
        return Recipe(whole, format=recorded_format)
    plans = load_plan_declaration({key: plan[key] for key in ("columns", "drop") if key in plan})
    named = {each.name or column: (column, each) for column, each in plans.columns.items()}
    return Recipe(
        whole,
        {name: column for name, (column, _) in named.items() if name != column},
        {name: each.form for name, (_, each) in named.items() if each.form not in (None, "value")},
        recorded_format,
        {name: each.missing for name, (_, each) in named.items() if each.missing},
        {name: each.nan for name, (_, each) in named.items() if each.nan is not None},
        {name: each.numbers for name, (_, each) in named.items() if each.numbers is not None},
        {name: each.dates for name, (_, each) in named.items() if each.dates is not None},
    )


def complete_recorded(recorded: RecordedData, data: AnyPath | list[AnyPath] | None) -> RecordedData:
    """Return what a run records about its data, with the schema and the plan in the manifest if it has none.

    `data`: folder of the data set, which may no longer exist; or single files, which have no manifest.
    """
    if recorded.schema is not None and recorded.plan is not None:
        return recorded
    manifest = _find_manifest(data)
    if manifest is None:
        return recorded
    plan = manifest.plan if recorded.plan is None else recorded.plan
    return replace(recorded, schema=recorded.schema or manifest.schema, plan=plan)


def _read_format(plan: Mapping[str, Any], reading: TextFiles) -> RecordedFormat:
    """Return how the data was read: by the entries of its plan, else by the options of its conversion."""
    known, names = reading.list_given(), RecordedFormat.names
    table = {name: plan[name] for name in names if plan.get(name) is not None}
    found = RecordedFormat.from_json(JsonValue(table, Document("plan of the run", root="$.plan")))
    return RecordedFormat(**{name: known[name] for name in names if name in known} | found.list_given())


def _find_manifest(data: AnyPath | list[AnyPath] | None) -> Manifest | None:
    try:
        return None if data is None or isinstance(data, list) else load_manifest(data)
    except (PenstockError, OSError):
        return None  # a run can be used without its data set


@dataclass(frozen=True)
class Wanted:
    """What a prediction needs from new data.

    Attributes:
        inputs: Pipeline of the inputs of the model.
        recipe: How the data of the run was encoded.
        keep: Columns that are copied into the output.
        is_images: Whether the data has only images, which are identified by their paths.
        numbers: Declared format of numbers in texts; None for the formats of the run, or detected ones.
        dates: Declared order of dates in texts; None for the orders of the run.
        allow_missing: Whether the data may lack columns of inputs that may be missing.
    """

    inputs: Pipeline
    recipe: Recipe
    keep: tuple[str, ...] = ()
    is_images: bool = False
    numbers: NumberFormat | None = None
    dates: DateOrder | None = None
    allow_missing: bool = False


class RawLayout:
    """How the columns of new data become fields.

    Attributes:
        columns: Name of the column by field, for fields that have a column.
        absent: Input fields without a column, which count as missing in all rows.
        keeping: Columns that are copied into the output.
        plans: Plans of the columns that are read.
        cautions: Notes that may change predictions.
        notes: Other notes about the data.
    """

    def __init__(self, source: Source, first: Block | None, wanted: Wanted) -> None:
        """Match the columns of the first block, which is None if there are no rows."""
        self._source = source
        self._first = first
        self._wanted = wanted
        there = _list_columns(source, first)
        self.columns: Mapping[str, str] = self._match(there)
        self.absent: list[str] = []
        if there is not None:
            self.absent = find_absent(
                wanted.inputs, self.columns, there, source.name, is_allowed=wanted.allow_missing
            )
        self.keeping = self._find_kept(there)
        fed = [name for name in wanted.inputs.fields if name not in self.absent]
        read = [name for name in dict.fromkeys([*fed, *self.keeping.fields]) if name in self.columns]
        self._guessed: list[tuple[str, Representation]] = []
        self._styled: list[tuple[str, NumberFormat]] = []
        self._doubts: list[tuple[str, str, str]] = []
        self._profiles: dict[str, ColumnProfile] = {}
        self.plans = tuple(map(self._plan, read))
        used = {*self.columns.values(), *(each.source for each in self.keeping.entries.values())}
        extra = [column for column in there or () if column not in used]
        self.cautions = tuple(self._list_cautions(extra))
        more = ", …" if len(extra) > _MOST_NAMED else ""
        listed = ", ".join(map(show, extra[:_MOST_NAMED]))
        self.notes = (f"not read: {listed}{more}",) if extra else ()

    @property
    def is_heavy(self) -> bool:
        """Whether values are large, so that only a few rows should be in memory at once."""
        return any(plan.field.type_name in HEAVY for plan in self.plans)

    def _match(self, there: list[str] | None) -> dict[str, str]:
        """Return the column of each field, by its name in training if it exists, else by the field name."""
        recipe = self._wanted.recipe
        known = set(recipe.schema if there is None else there)
        found = {}
        for name in recipe.schema:
            for column in (recipe.columns.get(name, name), name):
                if column in known:
                    found[name] = column
                    break
        images = [name for name in self._wanted.inputs.fields if isinstance(recipe.schema[name], Image)]
        if self._wanted.is_images and len(images) == 1:
            # If the data has only images, they are the only image input of the model, regardless of its name.
            found = {name: column for name, column in found.items() if column != IMAGE}
            found[images[0]] = IMAGE
        return found

    def _find_kept(self, there: list[str] | None) -> Keeping:
        """Return the column that identifies a row, and the columns of `keep`."""
        keeping = Keeping()
        identity = self._wanted.recipe.schema.id
        if self._wanted.is_images:
            keeping.add_raw("path", IMAGE)
        elif identity is not None and identity in self.columns:
            self._keep(keeping, identity, identity)
        else:
            keeping.add_row()
        by_column = {column: name for name, column in self.columns.items()}
        for name in self._wanted.keep:
            if there is not None and name not in there and name not in self.columns:
                raise unknown_name(name, [*dict.fromkeys([*there, *self.columns])], what="column")
            if name not in keeping.entries:
                self._keep(keeping, name, name if name in self.columns else by_column.get(name, name))
        return keeping

    def _keep(self, keeping: Keeping, called: str, name: str) -> None:
        """Keep a column: with the type of its field if it has plain values, otherwise unchanged."""
        field = self._wanted.recipe.schema.get(name)
        is_plain = self._wanted.recipe.forms.get(name, "value") == "value"
        if field is not None and is_plain and field.type_name in _TYPED:
            keeping.add_field(called, name, replace(field, role="input", optional=True, default=None))
        else:
            keeping.add_raw(called, self.columns.get(name, name))

    def _plan(self, name: str) -> ColumnPlan:
        inputs, field = self._wanted.inputs, self._wanted.recipe.schema[name]
        if name not in inputs.fields or can_lack(inputs, name):
            field = replace(field, optional=True)
        if isinstance(field, Image):
            field = replace(field, format=None)  # the pipeline knows which formats it decodes
        recipe = self._wanted.recipe
        form = self._find_form(name, field)
        return ColumnPlan(
            self.columns[name],
            name,
            field,
            form,
            numbers=self._find_numbers(name, field) if form == "value" else None,
            dates=self._wanted.dates or recipe.dates.get(name) if holds_dates(field, form) else None,
            missing=recipe.words.get(name, ()),
            nan=recipe.nans.get(name, "missing"),
        )

    def _find_numbers(self, name: str, field: Field) -> NumberFormat | None:
        """Return the format of numbers in texts: declared, as in training, or detected in the first rows."""
        if self._first is None or not holds_numbers(field):
            return None
        column, recipe = self.columns[name], self._wanted.recipe
        raw, words = self._first.columns[column], recipe.words.get(name)
        declared, trained = self._wanted.numbers, recipe.numbers.get(name)
        if declared is None and trained is not None and are_numbers(raw, trained, words or ()):
            if doubt := find_doubt(raw, trained, words or ()):
                self._doubts.append((column, *doubt))
            return trained
        if words is None and declared is None:
            profile = self._survey(self._first, column)
        else:
            profile = survey_column([raw], self._first.files, words, declared).profile
        found = None if profile.text is None else profile.text.numbers
        if found is not None and declared is None:
            self._styled.append((column, found))
        return found

    def _find_form(self, name: str, field: Field) -> Representation:
        """Return the representation of a column: declared by the source, as in training, or inferred."""
        column = self.columns[name]
        declared = self._source.forms.get(column)
        if declared is not None and (declared != "path" or field.type_name in HEAVY):
            return declared
        if self._first is None:
            return "value"
        profile = self._survey(self._first, column)
        trained = self._wanted.recipe.forms.get(name)
        if trained is not None and (profile.kind in _OPEN or {trained, profile.kind} <= {*_TIMES}):
            return trained
        attributes = ColumnDeclaration.from_field(field, is_whole=True).attributes
        found = find_representation(cast("Any", field.type_name), attributes, profile)
        if found == "path" and field.type_name == "bytes" and not self._first.reads_files:
            found = "value"  # in training, texts were values
        if found in _TIMES:
            self._guessed.append((column, found))
        return found

    def _survey(self, block: Block, column: str) -> ColumnProfile:
        """Return the profile of a column of the first block, without declarations; it is made once."""
        if column not in self._profiles:
            self._profiles[column] = survey_column([block.columns[column]], block.files).profile
        return self._profiles[column]

    def _list_cautions(self, extra: list[str]) -> Iterator[str]:
        for name in self.absent:
            nearest = find_nearest(name, extra)
            hint = f"; is it {show(nearest)}?" if nearest else ""
            yield f"no column {show(name)}: it counts as missing in all rows{hint}"
        for column, form in self._guessed:
            unit = {"date": "days", "time": "microseconds"}[form]
            unknown = "the run does not record the unit used in training"
            yield f"{show(column)} is read as {unit} since 1970: {unknown}"
        for column, numbers in self._styled:
            yield (
                f"{show(column)}: numbers are read as {show(numbers.example)}, which differs from training. "
                "Declare it otherwise, such as `decimal='.'` or `thousands=','`"
            )
        for column, text, read in self._doubts:
            yield (
                f"{show(column)}: numbers such as {show(text)} are read as in training, as {read}. "
                "If the point is a decimal point, use `decimal='.'`"
            )


def _list_columns(source: Source, first: Block | None) -> list[str] | None:
    """Return the columns; None if there are no rows, and the source does not declare them."""
    if first is not None:
        return list(first.columns)
    schema = getattr(source, "schema", None)
    return list(schema.names) if schema is not None and schema.names else None
