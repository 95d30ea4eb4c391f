"""Find the records without a target, before the first step, to skip them or to raise an error.

In: a split and the targets of a pipeline. Out: a filter that skips such records, and their number.
Loads no Keras, so that scores can be computed without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from penstock.batch.build import LoadedSplit
from penstock.errors import FieldError, OptionError
from penstock.filter.expression import parse_expression
from penstock.filter.scan import filter_rows
from penstock.foundation.wording import count, show
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

_NUM_NAMED: Final = 5
_UNFILLED: Final = ("error", "mean", None)  # values of `missing` that do not replace a missing target


@dataclass(frozen=True)
class Labelled:
    """The records of a split that have every target.

    Attributes:
        filter: Filter that selects these records, for the option of a loader; None if all have every target.
        num_records: Number of these records.
        num_missing: Number of records that lack a target.
        targets: Names of the targets that records may lack.
        first: Numbers of the first records that lack one.
    """

    filter: str | None
    num_records: int
    num_missing: int = 0
    targets: tuple[str, ...] = ()
    first: tuple[int, ...] = ()

    def describe(self, split: str) -> str:
        """Return a text with the number of records that lack a target."""
        total = self.num_records + self.num_missing
        names = " or ".join(map(show, self.targets))
        return f"{self.num_missing:,} of {total:,} records of {split!r} have no {names}"

    def make_error(self, split: str) -> FieldError:
        """Return the error for records that lack a target, where that is not allowed."""
        rows = ", ".join(map(str, self.first)) + (", …" if self.num_missing > len(self.first) else "")
        return FieldError(
            f"target {' or '.join(map(show, self.targets))} of split {split!r}",
            field=self.targets[0],
            record=self.first[0],
            expected="a value in each record",
            got=f"no value in {count(self.num_missing, 'record')}: {rows}",
            advice="Skip them: `unlabelled='drop'`; or complete the data.",
        )


def find_labelled(source: LoadedSplit, pipeline: Pipeline, num_threads: int = 1) -> Labelled:
    """Find the records of a split that have every target of a pipeline.

    Only the targets that records may lack are read. A target with a default is never missing.
    """
    words = _list_unlabelled(source.schema, pipeline)
    names = tuple(words)
    if not names:
        return Labelled(None, len(source.rows))
    for name in names:
        if "`" in name:
            advice = "Rename it: `ps.convert(SOURCE, OUT, rename={'OLD': 'NEW'})`."
            expected = "a name without a backtick, as a filter selects the records with this target"
            raise OptionError(f"target {show(name)}", field=name, expected=expected, got=name, advice=advice)
    # Search for records that lack a target, not for those that have all: a bad, skipped record is neither.
    lacking = filter_rows(
        source.rows,
        source.schema,
        parse_expression(" or ".join(map(_say_lacking, words.items())), source.schema),
        source.losses,
        strict=source.strict,
        num_threads=num_threads,
    )
    if not len(lacking):
        return Labelled(None, len(source.rows), targets=names)
    text = " and ".join(map(_say_labelled, words.items()))
    first = lacking.select(np.arange(min(_NUM_NAMED, len(lacking)))).tolist()
    return Labelled(text, len(source.rows) - len(lacking), len(lacking), names, tuple(first))


def _say_lacking(target: tuple[str, Sequence[str]]) -> str:
    """Return an expression for the records that lack a target."""
    name, words = target
    return " or ".join([f"`{name}` is None", *(f"`{name}` == {word!r}" for word in words)])


def _say_labelled(target: tuple[str, Sequence[str]]) -> str:
    """Return an expression for the records that have a target."""
    name, words = target
    return " and ".join([f"`{name}` is not None", *(f"`{name}` != {word!r}" for word in words)])


def _list_unlabelled(schema: Schema, pipeline: Pipeline) -> dict[str, list[str]]:
    """Return the targets that may be missing and that no transform replaces by a value.

    With each are the texts of records without a label, except those that are classes of the pipeline.
    """
    classes, roles = pipeline.classes, pipeline.schema
    return {
        name: [each for each in getattr(schema[name], "unlabelled", ()) if each not in classes.get(name, ())]
        for name, transform in pipeline.transforms.items()
        if roles[name].role == "target"
        and name in schema
        and schema[name].optional
        and schema[name].default is None
        and getattr(transform, "missing", "error") in _UNFILLED
    }
