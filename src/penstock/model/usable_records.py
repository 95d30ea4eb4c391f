"""Find records that a model cannot use: without a target, or with NaN or infinity in a float field.

In: a split or columns, and a pipeline. Out: a filter that skips records without a target, and their number;
an error that names the field and its first records, or one error per row. Loads no Keras, so that scores can
be computed without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.columns import CodedColumn, Mask, Ragged
from penstock.dataset import Split
from penstock.errors import FieldError, OptionError
from penstock.filter.expression import parse_expression
from penstock.filter.scan import filter_rows
from penstock.foundation.wording import count, override, show
from penstock.schema.schema import Schema
from penstock.statistics.summary import load_statistics
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.padding import Pad
from penstock.transform.pipeline import Pipeline

_BLOCK_ROWS: Final = 1 << 14
_NUM_NAMED: Final = 5


def check_finite(split: Split, pipeline: Pipeline, *, is_described: bool = True) -> None:
    """Raise an error for a split with numbers that would reach a model as NaN or infinity.

    For the train split, only fields are read that have NaN or infinity by the statistics of the manifest; for
    other splits, which are small, all fields are. Without statistics, the check of the loss finds NaN.
    """
    stored = None if split.manifest is None else split.manifest.statistics
    statistics = {} if stored is None else load_statistics(stored)
    for name, allowed in list_checked(pipeline):
        values = None if name not in statistics else statistics[name].values
        if not is_described or (values is not None and values.num_nan + values.num_inf):
            _check_field(split, name, allowed, pipeline.schema[name].role)


def list_checked(pipeline: Pipeline) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Yield the float fields that must be finite, with whether NaN, and whether infinity, is allowed."""
    for name, transform in pipeline.transforms.items():
        allows_nan = isinstance(transform, Scale) and transform.nan == "missing"
        allows_inf = isinstance(transform, Scale) and transform.method == "clip"
        stored = getattr(pipeline.schema[name], "dtype", "")
        is_fed = isinstance(transform, Scale | Keep | Pad) and str(stored).startswith("float")
        if is_fed and not (allows_nan and allows_inf):
            yield name, (allows_nan, allows_inf)


def find_faults(columns: Mapping[str, CodedColumn], pipeline: Pipeline) -> dict[int, FieldError]:
    """Return an error for each row that would reach a model with NaN or infinity."""
    faults: dict[int, FieldError] = {}
    for name, allowed in list_checked(pipeline):
        for row in _find_rows(columns[name], allowed):
            error = FieldError(
                f"field {name!r}",
                field=name,
                record=row,
                expected="finite numbers, as in training",
                got="NaN or infinity",
            )
            faults.setdefault(row, error)
    return faults


def _check_field(split: Split, name: str, allowed: tuple[bool, bool], role: str) -> None:
    rows: list[int] = []
    for start in range(0, len(split), _BLOCK_ROWS):
        column = split.columns(start, start + _BLOCK_ROWS, [name])[name]
        rows += [start + row for row in _find_rows(column, allowed)]
    if not rows:
        return
    named = ", ".join(map(str, rows[:_NUM_NAMED])) + (", …" if len(rows) > _NUM_NAMED else "")
    scaled = override(name, "Scale(nan='missing')")
    advice = (
        "Fix these records, or store them without a value: training skips records without a target."
        if role == "target"
        else f"Drop the field: {override(name, 'None')}; or treat NaN as missing: {scaled}."
    )
    raise FieldError(
        f"field {name!r} of split {split.name!r}",
        field=name,
        expected="finite numbers",
        got=f"NaN or infinity in {len(rows)} of {len(split)} records: {named}",
        advice=advice,
    )


def _find_bad(values: NDArray[Any], allowed: tuple[bool, bool]) -> Mask:
    """Return where numbers are NaN or infinite, and the transform does not handle them."""
    allows_nan, allows_inf = allowed
    is_bad: Mask = np.isnan(values) & (not allows_nan) | np.isinf(values) & (not allows_inf)
    return is_bad


def _find_rows(column: CodedColumn, allowed: tuple[bool, bool]) -> list[int]:
    if not len(column):
        return []
    dense = column.unwrap()
    if isinstance(dense, np.ndarray):
        values = dense.reshape(len(column), -1).astype(np.float64, copy=False)
        is_bad = _find_bad(values, allowed)
        if column.present is not None:
            is_bad &= column.present[:, None]
        found: list[int] = np.flatnonzero(is_bad.any(axis=1)).tolist()
        return found
    if isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        is_bad = _find_bad(column.values, allowed)
        indices = np.flatnonzero(is_bad.any(axis=tuple(range(1, is_bad.ndim))))
        return sorted(set((np.searchsorted(column.offsets, indices, side="right") - 1).tolist()))
    return []


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
