"""Which columns of new raw data are which fields, how they hold them, and which are kept as they are.

In: the columns of a source with its first block, the inputs of a pipeline, and the recipe of the data that it
was fitted to. Out: `RawLayout`. No type is guessed: only how a column holds its values is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from penstock.foundation.wording import find_nearest, show, unknown_name
from penstock.jobs.predict.feeding import can_lack, find_absent
from penstock.jobs.predict.kept_columns import Keeping
from penstock.jobs.predict.recipe import Recipe
from penstock.plan.inference import find_form
from penstock.plan.plan import ColumnPlan
from penstock.plan.survey import survey_column
from penstock.schema.declaration import Form, Told
from penstock.schema.field import Field
from penstock.schema.scalar import Image
from penstock.source.block import Block, Source
from penstock.transform.pipeline import Pipeline

IMAGE: Final = "image"
"""The column of images, where the data is nothing else."""

_HEAVY: Final = ("image", "bytes")
_TYPED: Final = ("number", "category", "text")
_OPEN: Final = ("text", "empty")  # what columns hold that can be read in several ways
_TIMES: Final[tuple[Form, ...]] = ("date", "time")
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Wanted:
    """What is asked of new data.

    Attributes:
        inputs: What the model is fed with.
        recipe: How the data that it was trained on was made.
        keep: Columns that are carried into the output.
        is_images: Whether the data is images alone, which are named by their paths.
    """

    inputs: Pipeline
    recipe: Recipe
    keep: tuple[str, ...] = ()
    is_images: bool = False


class RawLayout:
    """What becomes of the columns.

    Attributes:
        columns: The column of each field that has one.
        absent: The fields that are fed, and count as missing in all rows.
        keeping: What is carried into the output.
        plans: How the columns that are read become fields.
        cautions: What predictions depend on, sentence by sentence.
        notes: What else a person should hear.
    """

    def __init__(self, source: Source, first: Block | None, wanted: Wanted) -> None:
        """Look at the first block; None where there are no rows.

        Raises:
            SchemaError: A column is not there, and may not be missing.
            UnknownNameError: A column that is to be kept is not there.
        """
        self._source = source
        self._first = first
        self._wanted = wanted
        there = _list_columns(source, first)
        self.columns: Mapping[str, str] = self._match(there)
        self.absent: list[str] = []
        if there is not None:
            self.absent = find_absent(wanted.inputs, self.columns, there, source.name)
        self.keeping = self._find_kept(there)
        fed = [name for name in wanted.inputs.fields if name not in self.absent]
        read = [name for name in dict.fromkeys([*fed, *self.keeping.fields]) if name in self.columns]
        self._guessed: list[tuple[str, Form]] = []
        self.plans = tuple(map(self._plan, read))
        used = {*self.columns.values(), *(each.source for each in self.keeping.entries.values())}
        extra = [column for column in there or () if column not in used]
        self.cautions = tuple(self._list_cautions(extra))
        more = ", …" if len(extra) > _MOST_NAMED else ""
        listed = ", ".join(map(show, extra[:_MOST_NAMED]))
        self.notes = (f"not read: {listed}{more}",) if extra else ()

    @property
    def is_heavy(self) -> bool:
        """Whether values are so large that few rows should be in memory at once."""
        return any(plan.field.type_name in _HEAVY for plan in self.plans)

    def _match(self, there: list[str] | None) -> dict[str, str]:
        """Find the columns; the name that one had in training goes before that of its field."""
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
            # Images alone are what the model's only image is, whatever that was called.
            found = {name: column for name, column in found.items() if column != IMAGE}
            found[images[0]] = IMAGE
        return found

    def _find_kept(self, there: list[str] | None) -> Keeping:
        """Find what names a row, and what was asked for."""
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
        """Keep a column: typed as its field where it holds plain values, and as it is elsewhere."""
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
        return ColumnPlan(
            self.columns[name],
            name,
            field,
            self._find_form(name, field),
            missing=recipe.words.get(name, ()),
            nan=recipe.nans.get(name, "missing"),
        )

    def _find_form(self, name: str, field: Field) -> Form:
        """Return how a column holds its field: as the source says, as in training, or as its values look."""
        column = self.columns[name]
        declared = self._source.forms.get(column)
        if declared is not None and (declared != "path" or field.type_name in _HEAVY):
            return declared
        if self._first is None:
            return "value"
        facts = survey_column([self._first.columns[column]], self._first.folder).facts
        told = self._wanted.recipe.forms.get(name)
        if told is not None and (facts.kind in _OPEN or {told, facts.kind} <= {*_TIMES}):
            return told
        attributes = Told.from_field(field, is_whole=True).attributes
        found = find_form(cast("Any", field.type_name), attributes, facts)
        if found in _TIMES:
            self._guessed.append((column, found))
        return found

    def _list_cautions(self, extra: list[str]) -> Iterator[str]:
        for name in self.absent:
            nearest = find_nearest(name, extra)
            hint = f"; is it {show(nearest)}?" if nearest else ""
            yield f"no column {show(name)}: it counts as missing in all rows{hint}"
        for column, form in self._guessed:
            unit = {"date": "days", "time": "microseconds"}[form]
            yield f"{show(column)} is read as {unit} since 1970: nothing tells how it was in training"


def _list_columns(source: Source, first: Block | None) -> list[str] | None:
    """Return the columns; None where there are no rows, and nothing else tells."""
    if first is not None:
        return list(first.columns)
    schema = getattr(source, "schema", None)
    return list(schema.names) if schema is not None and schema.names else None
