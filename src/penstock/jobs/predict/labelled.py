"""Raw labelled rows as a split that a run can be evaluated on.

In: raw data of any kind, and a run's pipeline and recipe. Out: a temporary split of records, made of the same
columns that a prediction on that data would use, and notes about it. Rows without a label are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, take_rows
from penstock.dataset import Split
from penstock.dataset import open as open_dataset
from penstock.encode.records import RecordEncoder
from penstock.errors import FieldError, PenstockError, SourceError
from penstock.foundation.wording import count, show
from penstock.jobs.predict.data_columns import can_lack
from penstock.jobs.predict.new_data import open_new_data
from penstock.jobs.predict.new_rows import DataBlock, Locate, Refusal, RefusalLog, choose_batch_size
from penstock.jobs.predict.options import WITHOUT_LABELS, PredictOptions
from penstock.jobs.predict.raw_layout import Recipe
from penstock.model.finite import find_faults
from penstock.model.task import Task
from penstock.schema.field import Field
from penstock.schema.scalar import Image
from penstock.schema.schema import Schema
from penstock.score.evaluation import Evaluation
from penstock.storage.atomic import write_failure
from penstock.transform.assembly import Faults
from penstock.transform.pipeline import Pipeline

_FILE: Final = "rows.tfrecord"
_MOST_SHOWN: Final = 10
_NAMED: Final = ("field", "expected", "got", "advice")


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows that were stored for an evaluation.

    Attributes:
        split: Their records.
        notes: What a person should know about the data.
        name: What messages call the data.
        rows: The number of each record's row in the data.
        locate: By the first record of each stretch of rows, what names the place of one.
    """

    split: Split
    notes: tuple[str, ...]
    name: str
    rows: NDArray[np.int64]
    locate: Mapping[int, Locate]

    def evaluate(self, score: Callable[[Split], Evaluation]) -> Evaluation:
        """Return an evaluation that names the rows of the data, and not the records of the split.

        Raises:
            PenstockError: See `evaluate`; of a row that does not fit, it names the row.
        """
        try:
            found = score(self.split)
        except FieldError as error:
            raise self._place(error) from error
        mistakes = {
            target: [
                replace(each, row=int(self.rows[each.row]), file=self.name, record=int(self.rows[each.row]))
                for each in several
            ]
            for target, several in found.mistakes.items()
        }
        return replace(found, data=self.name, mistakes=mistakes, notes=(*self.notes, *found.notes))

    def _place(self, error: FieldError) -> PenstockError:
        if error.record is None or not 0 <= error.record < len(self.rows):
            return error
        first = max(start for start in self.locate if start <= error.record)
        bare = FieldError(error.what, **{name: getattr(error, name) for name in _NAMED})
        return self.locate[first](int(self.rows[error.record]), bare)


def store_labelled(
    data: object,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    recipe: Recipe,
    options: PredictOptions,
    folder: Path,
) -> LabelledRows:
    """Write the labelled rows of raw data as records.

    Args:
        data: Anything that `predict` takes as raw data.
        pipeline: What reads the records, targets included.
        tasks: What is predicted, by target.
        recipe: How the data that the run was trained on was made.
        options: How the data is read; `keep` names further fields that are wanted.
        folder: Where the records are written.

    Raises:
        SchemaError: A column of an input or of a target does not exist.
        SourceError: No row has a label.
        PenstockError: The data cannot be read, or a row does not fit.
    """
    targets = [name for name in pipeline.fields if recipe.schema[name].role == "target"]
    open_ended = {name: replace(recipe.schema[name], optional=True) for name in targets}
    recipe = replace(recipe, schema=Schema({**recipe.schema, **open_ended}))
    rows = open_new_data(data, pipeline, recipe, options, choose_batch_size(pipeline))
    checker = _RowChecker(pipeline, tasks, options)
    log = RefusalLog(options.on_error, options.max_rejects)
    kept: list[NDArray[np.int64]] = []
    locate: dict[int, Locate] = {}
    num_kept = num_unlabelled = 0
    encoder: RecordEncoder | None = None
    path = folder / _FILE
    try:
        with path.open("wb") as file:
            for make in rows.blocks():
                block = make()
                block = block.without(find_faults(block.columns, pipeline))
                has_label = _find_labelled(block, targets)
                num_unlabelled += int((~has_label).sum())
                chosen, refusals = checker.check(block, np.flatnonzero(has_label))
                for refusal in sorted([*block.refusals, *refusals], key=lambda each: each.row):
                    log.add(refusal)
                if not len(chosen):
                    continue
                columns = take_rows(block.columns, chosen)
                encoder = encoder or RecordEncoder(_name_fields(columns, pipeline, recipe.schema))
                file.write(_frame(encoder, columns, len(chosen)))
                locate[num_kept] = block.locate
                kept.append(block.rows[chosen])
                num_kept += len(chosen)
    except OSError as error:
        raise write_failure(path, error) from error
    name = _name_data(data)
    if encoder is None:
        left = f", {count(log.num_skipped, 'row')} that did not fit" if log.num_skipped else ""
        raise SourceError(
            "labels",
            path=name,
            field=targets[0],
            expected=f"at least one row with a value of {', '.join(map(repr, targets))}",
            got=f"{count(num_unlabelled, 'row')} without one{left}",
            advice=WITHOUT_LABELS,
        )
    dataset = open_dataset(path, schema=encoder.schema)
    notes = [*rows.cautions, *rows.notes]
    if num_unlabelled:
        notes.append(f"{count(num_unlabelled, 'row')} without a label left out")
    if log.num_skipped:
        notes.append(f"{count(log.num_skipped, 'row')} that did not fit left out")
    return LabelledRows(dataset["all"], tuple(notes), name, np.concatenate(kept), locate)


class _RowChecker:
    """Finds labelled rows that the pipeline refuses, such as those with a class that the run does not know.

    Inputs are checked only where such rows are left out: elsewhere, the evaluation itself raises the error.
    """

    def __init__(self, pipeline: Pipeline, tasks: Mapping[str, Task], options: PredictOptions) -> None:
        is_strict = options.on_error == "raise"
        self._pipeline = pipeline.without_inputs() if is_strict else pipeline
        self._tasks = tasks
        self._most = 0 if is_strict else options.max_rejects
        self._batch_size = choose_batch_size(pipeline)

    def check(self, block: DataBlock, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[Refusal]]:
        """Return which of the chosen rows of a block fit, and why the others do not."""
        fitting: list[NDArray[np.int64]] = []
        refusals: list[Refusal] = []
        for start in range(0, len(chosen), self._batch_size):
            rest = chosen[start : start + self._batch_size]
            while len(rest) and len(refusals) <= self._most:
                faults = self._find_faults(take_rows(block.columns, rest), len(rest))
                if not faults:
                    break
                for at, error in faults.items():
                    row = int(block.rows[rest[at]])
                    refusals.append(Refusal(row, partial(block.locate, row, self._reword(error))))
                rest = np.delete(rest, list(faults))
            fitting.append(rest)
        return np.concatenate(fitting) if fitting else chosen, refusals

    def _find_faults(self, columns: Mapping[str, CodedColumn], num_rows: int) -> Faults:
        """Return errors by row: all that are found at once, or the first."""
        prepared, faults = self._pipeline.prepare(columns)
        if faults:
            return faults
        try:
            targets = self._pipeline.apply(prepared, num_rows)[1]
        except FieldError as error:
            if error.record is None or not 0 <= error.record < num_rows:
                raise
            return {error.record: error}
        return {
            int(at): FieldError("class", field=name, got=show(targets[name][at].item()))
            for name, task in self._tasks.items()
            if task.kind in ("binary", "multiclass")
            for at in np.flatnonzero(~np.isin(targets[name], np.arange(len(task.labels))))
        }

    def _reword(self, error: FieldError) -> FieldError:
        task = self._tasks.get(error.field or "")
        if task is None or not task.labels:
            return error
        labels = task.labels
        more = ", …" if len(labels) > _MOST_SHOWN else ""
        shown = ", ".join(show(label) for label in labels[:_MOST_SHOWN])
        expected = f"one of {shown}{more} (the classes of the run)"
        return FieldError(error.what, field=error.field, expected=expected, got=error.got)


def _find_labelled(block: DataBlock, targets: list[str]) -> NDArray[np.bool_]:
    """Return which rows have a value of every target."""
    found = np.ones(len(block.rows), np.bool_)
    for name in targets:
        present = block.columns[name].present
        if present is not None:
            found &= present
    return found


def _name_fields(columns: Mapping[str, Any], pipeline: Pipeline, schema: Mapping[str, Field]) -> Schema:
    """Return the fields of the records: those that rows may lack as in training, targets not among them."""
    fields: dict[str, Field] = {}
    for name in columns:
        is_target = schema[name].role == "target"
        optional = not is_target and (name not in pipeline.fields or can_lack(pipeline, name))
        field = replace(schema[name], optional=optional, key=None)
        # Rows may hold images of other formats than in training.
        fields[name] = replace(field, format=None) if isinstance(field, Image) else field
    return Schema(fields)


def _frame(encoder: RecordEncoder, columns: Mapping[str, Any], num_rows: int) -> bytes:
    arena, offsets = encoder.encode(columns, num_rows)
    none = np.zeros(num_rows, np.uint32)
    frames, _, _ = _native.compose([arena], none, offsets[:-1], np.diff(offsets), [], encoder.is_sequence)
    return frames.tobytes()


def _name_data(data: object) -> str:
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
        return str(data[0]) if len(data) == 1 else f"{data[0]} and {count(len(data) - 1, 'more file')}"
    return str(data) if isinstance(data, str | Path) else type(data).__name__
