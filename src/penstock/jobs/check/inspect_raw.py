"""Inspection of raw data: what each column would become, and what its first rows hold.

In: raw data of any kind, and its declarations. Out: a `RawInspection`. Only the first rows are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from penstock.encode.raw_rows import show_row
from penstock.jobs.convert.raw_source import list_losses
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.planner import PlanOverrides, make_plan
from penstock.plan.profile import ColumnProfile
from penstock.plan.survey import survey_blocks
from penstock.schema.scalar import Category
from penstock.settings.advice import to_flags
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import TextFiles
from penstock.source.block import Block, PeekedSource
from penstock.source.opening import open_source
from penstock.transform.class_codes import order_classes

_EXAMPLE_ROWS: Final = 20


@dataclass(frozen=True)
class RawInspection:
    """What raw data holds.

    Attributes:
        name: Name of the source.
        plan: What each column would become.
        profiles: Profiles of the columns.
        rows: First rows, by column, with long values shortened.
        num_rows: Number of rows that were read.
        num_bytes: Size of the source, or None if it is unknown.
        is_whole: Whether there are no other rows.
        notes: Notes about the source and the columns that are left out.
        cautions: Those notes that are about values of the source which were lost.
    """

    name: str
    plan: Plan
    profiles: dict[str, ColumnProfile]
    rows: tuple[dict[str, Any], ...]
    num_rows: int
    num_bytes: int | None
    is_whole: bool
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()

    @property
    def classes(self) -> dict[str, tuple[Any, ...]]:
        """Classes of each target in the order of the codes that models get, where all rows were read."""
        return {
            each.name: order_classes(each.field, values)
            for each in self.plan
            if each.field.role == "target" and isinstance(each.field, Category) and self.is_whole
            if each.column in self.profiles and (values := self.profiles[each.column].values)
        }

    def to_json(self) -> dict[str, object]:
        """Return the inspection as a JSON value."""
        form = self.plan.to_form()["columns"]
        columns = {
            each.column: {
                **form.get(each.column, {}),
                "role": each.field.role,
                "missing": self.profiles[each.column].num_missing,
                "distinct": self.profiles[each.column].num_distinct,
                "example": self.find_example(each),
                "reason": each.reason,
                "warnings": [*map(to_flags, each.warnings)],
            }
            for each in self.plan
            if each.column in self.profiles
        }
        return {
            "source": self.name,
            "rows": self.num_rows,
            "is_whole": self.is_whole,
            "bytes": self.num_bytes,
            "columns": columns,
            **(
                {"classes": {name: list(each) for name, each in self.classes.items()}} if self.classes else {}
            ),
            "dropped": {name: to_flags(why) for name, why in self.plan.dropped.items()},
            "notes": [*map(to_flags, self.notes)],
        }

    def find_example(self, column: ColumnPlan) -> Any:
        """Return the first value of a column that is not missing, or None."""
        return next((row[column.column] for row in self.rows if row[column.column] is not None), None)


def inspect_raw(source: object, overrides: PlanOverrides, options: TextFiles, num_rows: int) -> RawInspection:
    """Inspect raw data.

    `source`: data, as for `convert`. `num_rows`: number of first rows to return at least.
    """
    peeked = PeekedSource(open_source(source, options))
    plan = make_plan(peeked, overrides, options.narrow(ConvertOptions))
    profile = survey_blocks(
        peeked.head,
        is_whole=peeked.is_whole,
        words={each.column: each.missing for each in plan if each.missing},
        numbers={each.column: each.numbers for each in plan if each.numbers is not None},
    )
    return RawInspection(
        peeked.name,
        plan,
        dict(profile.columns),
        tuple(_show_rows(peeked.head, max(num_rows, _EXAMPLE_ROWS))),
        profile.num_rows,
        peeked.num_bytes,
        peeked.is_whole,
        (*peeked.notes, *list_losses(plan)),
        peeked.cautions,
    )


def _show_rows(blocks: tuple[Block, ...], num_rows: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for block in blocks:
        rows += [show_row(block, row) for row in range(min(block.num_rows, num_rows - len(rows)))]
    return rows
