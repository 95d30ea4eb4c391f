"""Predict a split in one pass, and group its records by the values of fields.

In: a predictor, its pipeline and tasks, a split. Out: aligned truths and predictions of every record that
could be read; slices, groups of records by value, by range, or without a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.columns import Bytes, CodedColumn, Dense, Ragged
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import count, show, unknown_name
from penstock.model.task import Task
from penstock.model.usable_records import Labelled, find_labelled
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.score.evaluation_batches import (
    EvaluationPipeline,
    Inputs,
    Predict,
    predict_each,
    read_batches,
)
from penstock.score.scores import to_number
from penstock.settings.loading import LoadOptions
from penstock.settings.prediction import EvaluateOptions
from penstock.transform.pipeline import Pipeline

_MOST_VALUES: Final = 20
"""Maximum number of groups by value; the most frequent values have groups."""
_NUM_BINS: Final = 5
"""Number of ranges of numbers; each holds about as many records."""

_SLICED: Final = ("category", "text", "number", "date", "sequence")


@dataclass(frozen=True)
class _SliceGroup:
    """Records with the same value of a field, or with values in a range from `low` to `high`.

    The value is None for a range, and for records without a value. `members` are indices among all records.
    """

    value: str | int | float | None
    members: NDArray[np.int64]
    low: float | None = None
    high: float | None = None


def check_slices(names: Sequence[str], schema: Schema) -> None:
    """Raise an error for fields that records cannot be grouped by."""
    for name in names:
        if name not in schema:
            raise unknown_name(name, schema)
        if schema[name].type_name not in _SLICED:
            raise OptionError(
                f"slice {name!r}",
                field=name,
                expected="a category, a number, a date, a text or a sequence",
                got=f"a field of type {schema[name].type_name}",
                advice="Slice by a field that has one value per record.",
            )


class Slicer:
    """Groups records by the values of one field.

    Categories and texts are grouped by value; numbers and dates by ranges that hold about as many records
    each, or by value if there are few; sequences, and texts with too many values, by their length, as
    numbers.

    Attributes:
        is_by_length: Whether records are grouped by length.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        self.is_by_length = field.type_name == "sequence"
        self._pieces: list[NDArray[Any]] = []
        self._missing: list[NDArray[np.bool_]] = []
        self._codes: dict[bytes, int] = {}

    def add(self, column: CodedColumn) -> None:
        """Add the values of further records."""
        is_missing = np.zeros(len(column), np.bool_)
        if column.present is not None and self._field.default is None:
            is_missing = ~column.present
        if self._field.type_name == "sequence":
            values = Ragged.of(column).lengths
        elif isinstance(found := column.unwrap(), np.ndarray):
            values = found.copy()  # the loader reuses its memory
            if values.dtype.kind == "f":
                is_missing |= np.isnan(values)
        else:
            codes = self._codes
            values = np.array([codes.setdefault(each, len(codes)) for each in Bytes.of(column)], np.int64)
        self._pieces.append(values)
        self._missing.append(is_missing)

    def groups(self) -> tuple[list[_SliceGroup], int]:
        """Return the groups, and the number of values that have none.

        Groups by value are sorted by their number of records, the largest first. Records without a value are
        the last group.
        """
        values, missing = np.concatenate(self._pieces), np.concatenate(self._missing)
        present = np.flatnonzero(~missing)
        if self._field.type_name == "text" and self._are_scattered(values[present]):
            # Scores of twenty groups of one record each are useless.
            lengths = [len(each.decode(errors="replace")) for each in self._codes]
            values, self.is_by_length = np.array(lengths, np.int64)[values], True
        distinct, codes = np.unique(values[present], return_inverse=True)
        is_number = self.is_by_length or self._field.type_name in ("number", "date")
        if is_number and len(distinct) > _MOST_VALUES:
            groups, num_left = self._group_by_range(values, present), 0
        else:
            groups, num_left = self._group_by_value(distinct, codes, present)
            if is_number:
                groups.sort(key=lambda group: group.value)  # type: ignore[arg-type,return-value]
        if missing.any():
            groups.append(_SliceGroup(None, np.flatnonzero(missing)))
        return groups, num_left

    def _group_by_value(
        self, distinct: NDArray[Any], codes: NDArray[np.int64], present: NDArray[np.int64]
    ) -> tuple[list[_SliceGroup], int]:
        counts = np.bincount(codes, minlength=len(distinct))
        kept = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
        texts = [] if self.is_by_length else [each.decode(errors="backslashreplace") for each in self._codes]
        groups = []
        for code in kept.tolist():
            value = distinct[code].item()
            groups.append(_SliceGroup(texts[value] if texts else value, present[codes == code]))
        return groups, max(0, len(distinct) - _MOST_VALUES)

    def _are_scattered(self, codes: NDArray[Any]) -> bool:
        """Whether less than half of the records have one of the most frequent values."""
        counts = np.sort(np.bincount(codes))[::-1] if len(codes) else np.zeros(1)
        return bool(2 * counts[:_MOST_VALUES].sum() < len(codes))

    def _group_by_range(self, values: NDArray[Any], present: NDArray[np.int64]) -> list[_SliceGroup]:
        numbers = values[present]
        edges = np.quantile(numbers, np.linspace(0, 1, _NUM_BINS + 1)[1:-1])
        bins = np.searchsorted(np.unique(edges), numbers, side="left")
        groups = []
        for number in np.unique(bins).tolist():
            inside = bins == number
            low, high = to_number(numbers[inside].min()), to_number(numbers[inside].max())
            groups.append(_SliceGroup(None, present[inside], low, high))
        return groups


OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of the current task, its finished part, and the whole of it."""


@dataclass(frozen=True)
class SplitPredictions:
    """Truths and predictions of a split by target: codes or stored numbers, and probabilities or numbers.

    `rows` are ascending, without skipped records. Each field to slice by has a slicer with its values.
    """

    rows: NDArray[np.int64]
    truths: dict[str, NDArray[Any]]
    predictions: dict[str, NDArray[Any]]
    slicers: dict[str, Slicer]
    labelled: Labelled


def predict_split(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    source: LoadedSplit,
    options: EvaluateOptions,
    report: OnProgress,
) -> SplitPredictions:
    """Predict all records that have every target, in the order in which they are stored."""
    labelled = find_labelled(source, pipeline)
    if labelled.num_missing and not labelled.num_records:
        raise OptionError(
            f"target {labelled.targets[0]!r} of split {source.name!r}",
            field=labelled.targets[0],
            expected="at least one value to compare predictions with",
            got=f"no value in any of {count(labelled.num_missing, 'record')}",
            advice="Predict without scores: penstock predict RUN DATA, in Python ps.predict(run, data).",
        )
    slicers = {name: Slicer(source.schema[name]) for name in options.slices}
    rows: list[NDArray[np.int64]] = []
    truths: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    predictions: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    # Batches hold points in time as float32, which rounds them to seconds or minutes.
    dates = [name for name, task in tasks.items() if task.unit is not None]
    traced = EvaluationPipeline(pipeline, dict.fromkeys([*options.slices, *dates]))
    choices = LoadOptions(batch_size=options.batch_size or 1, augment=False, filter=labelled.filter)

    def read() -> Iterator[Inputs]:
        for batch in read_batches(source, traced, choices):
            if not len(batch.rows):
                continue
            for name, task in tasks.items():
                truths[name].append(
                    Dense.of(batch.columns[name]).values.astype(np.float64)
                    if name in dates
                    else _read_truth(task, batch.targets[name], source, batch.rows)
                )
            for name, slicer in slicers.items():
                slicer.add(batch.columns[name])
            rows.append(batch.rows)
            yield batch.inputs

    for number, found in enumerate(predict_each(predict, read())):
        for name in tasks:
            predictions[name].append(np.array(found[name]))  # a copy, as a backend may reuse its memory
        report("predicting", int(rows[number][-1]) + 1, len(source.rows))
    if not rows:
        raise OptionError(
            f"split {source.name!r}",
            expected="at least one valid record",
            got=f"{count(len(source.rows), 'bad record')}",
            advice="Find out what is damaged: penstock verify.",
        )
    return SplitPredictions(
        np.concatenate(rows),
        {name: np.concatenate(pieces) for name, pieces in truths.items()},
        {name: np.concatenate(pieces) for name, pieces in predictions.items()},
        slicers,
        labelled,
    )


def _read_truth(
    task: Task, values: NDArray[Any], source: LoadedSplit, rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the targets of a batch as codes, or as the stored numbers."""
    if task.kind == "regression":
        return np.array(task.undo(np.asarray(values, np.float64)))
    codes = values.astype(np.int64)
    most = 1 if task.kind == "multilabel" else len(task.labels) - 1
    bad = ((codes != values) | (codes < 0) | (codes > most)).reshape(len(codes), -1).any(axis=1)
    if bad.any():
        at = int(np.argmax(bad))
        shard, record = source.rows.locate(int(rows[at]))
        raise FieldError(
            f"target {task.name!r}",
            path=shard.path,
            record=record,
            field=task.name,
            expected=f"one of {len(task.labels)} labels, as a code from 0",
            got=show(values[at].tolist()),
            advice="Evaluate on data that has only labels which the model was trained on.",
        )
    return codes
