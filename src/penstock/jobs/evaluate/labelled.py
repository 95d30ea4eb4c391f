"""Raw labelled rows as a split that a run can be evaluated on.

In: raw data of any kind, and a run's pipeline and recipe. Out: a temporary split of records, with the
columns that a prediction on that data would use, and notes about it. Rows without a label are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.maker import Arrays
from penstock.batch.stream import stream_batches
from penstock.columns import CodedColumns, take_rows
from penstock.dataset import Split
from penstock.dataset import open as open_dataset
from penstock.encode.records import RecordEncoder
from penstock.errors import FieldError, PenstockError, SourceError
from penstock.foundation.wording import count, show
from penstock.jobs.predict.data_columns import WITHOUT_LABELS, can_lack
from penstock.jobs.predict.new_data import open_new_data
from penstock.jobs.predict.new_rows import (
    DataBlock,
    Locate,
    RefusalLog,
    choose_batch_size,
    choose_num_threads,
    list_refusals,
)
from penstock.jobs.predict.raw_layout import Recipe
from penstock.model.task import Task
from penstock.model.usable_records import find_faults
from penstock.schema.field import Field
from penstock.schema.scalar import MISSING_LABELS, Image
from penstock.schema.schema import Schema
from penstock.score.evaluation import Evaluation
from penstock.settings.prediction import PredictOptions
from penstock.storage.atomic import write_failure
from penstock.transform.assembly import Faults
from penstock.transform.builder import WholeBatch
from penstock.transform.draws import Draws
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline

_FILE: Final = "rows.tfrecord"
_MOST_SHOWN: Final = 10
_NAMED: Final = ("field", "expected", "got", "advice")


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows that were stored for an evaluation.

    Attributes:
        split: Split of the stored records.
        notes: Notes about the data.
        cautions: Notes that may change predictions.
        missing_columns: Names of inputs that the data does not have.
        name: Name of the data in messages.
        rows: Row number in the data of each record.
        locate: Functions that find the file and line of a row, by the first record of each block.
    """

    split: Split
    notes: tuple[str, ...]
    cautions: tuple[str, ...]
    missing_columns: tuple[str, ...]
    name: str
    rows: NDArray[np.int64]
    locate: Mapping[int, Locate]

    def evaluate(self, score: Callable[[Split], Evaluation]) -> Evaluation:
        """Return an evaluation that names the rows of the data instead of the records of the split."""
        try:
            found = score(self.split)
        except FieldError as error:
            raise self._locate_error(error) from error
        mistakes = {
            target: [
                replace(each, row=int(self.rows[each.row]), file=self.name, record=int(self.rows[each.row]))
                for each in several
            ]
            for target, several in found.mistakes.items()
        }
        return replace(
            found,
            data=self.name,
            mistakes=mistakes,
            missing_columns=self.missing_columns,
            notes=(*self.notes, *found.notes),
            cautions=self.cautions,
        )

    def _locate_error(self, error: FieldError) -> PenstockError:
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

    `data`: raw data, as for `predict`. `options`: options of reading; `keep` names additional fields.
    """
    targets = [name for name in pipeline.fields if recipe.schema[name].role == "target"]
    open_ended = {name: replace(recipe.schema[name], optional=True) for name in targets}
    words = {name: _list_missing(recipe, name, tasks.get(name)) for name in targets}
    recipe = replace(recipe, schema=Schema({**recipe.schema, **open_ended}), words={**recipe.words, **words})
    rows = open_new_data(data, pipeline, recipe, options, choose_batch_size(pipeline))
    is_strict = options.on_error == "raise"
    batches = stream_batches(
        (partial(_choose_labelled, make, pipeline, targets) for make in rows.blocks()),
        _LabelCheck(pipeline, tasks, is_strict=is_strict),
        choose_batch_size(pipeline),
        choose_num_threads(options.num_threads),
        0 if is_strict else options.max_skipped,
    )
    log = RefusalLog(options.on_error, options.max_skipped)
    kept: list[NDArray[np.int64]] = []
    locate: dict[int, Locate] = {}
    num_kept = num_unlabelled = 0
    encoder: RecordEncoder | None = None
    path = folder / _FILE
    try:
        with path.open("wb") as file, closing(batches):
            for batch in batches:
                for refusal in list_refusals(batch):
                    log.add(refusal)
                for (block, _, stop), chosen, _ in batch.by_block():
                    num_unlabelled += block.num_unlabelled if stop == len(block) else 0
                    if not len(chosen):
                        continue
                    columns = take_rows(block.columns, chosen)
                    encoder = encoder or RecordEncoder(name_fields(columns, pipeline, recipe.schema))
                    file.write(frame_records(encoder, columns, len(chosen)))
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
    about = (tuple(notes), rows.cautions, rows.absent)
    return LabelledRows(dataset["all"], *about, name, np.concatenate(kept), locate)


def _list_missing(recipe: Recipe, name: str, task: Task | None) -> tuple[str, ...]:
    """Return the texts that mark a missing label: as in the run, and others that are not its classes."""
    labels = () if task is None else task.labels
    known = recipe.words.get(name, ())
    return (*known, *(text for text in MISSING_LABELS if text not in labels and text not in known))


@dataclass(frozen=True)
class _LabelledBlock(DataBlock):
    """The rows of a block that have a label, and the number of those without one."""

    num_unlabelled: int = 0


def _choose_labelled(make: Callable[[], DataBlock], pipeline: Pipeline, targets: list[str]) -> _LabelledBlock:
    """Return the finite rows of a block that have a value of every target."""
    block = make()
    block = block.without(find_faults(block.columns, pipeline))
    has_label = np.ones(len(block), np.bool_)
    for name in targets:
        has_label &= block.columns[name].mask()
    chosen = np.flatnonzero(has_label)
    return _LabelledBlock(
        take_rows(block.columns, chosen),
        block.rows[chosen],
        block.kept.take(chosen),
        block.refusals,
        block.locate,
        block.num_bytes,
        len(block) - len(chosen),
    )


class _LabelCheck:
    """A pipeline that also refuses classes that the run does not know.

    Inputs are checked only if such rows are left out: otherwise the evaluation itself raises the error.
    """

    def __init__(self, pipeline: Pipeline, tasks: Mapping[str, Task], *, is_strict: bool) -> None:
        self._labels = pipeline.assembly.without_inputs()
        self._pipeline = self._labels if is_strict else pipeline.assembly
        self._tasks = tasks
        self.targets = pipeline.targets
        self.weights: dict[str, Output] = {}

    def begin(self, num_rows: int, num_parts: int) -> WholeBatch:  # noqa: ARG002
        """Return a batch in the making, which is checked as a whole."""
        return WholeBatch(self, num_parts)

    def prepare(self, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Return prepared columns, and the faults of all rows that are found in one pass."""
        prepared, faults = self._pipeline.prepare(columns, draws)
        if not faults:
            num_rows = len(next(iter(columns.values())))
            with suppress(FieldError):  # `apply` raises it again, for one row at a time
                faults = self._find_unknown(self._labels.apply(prepared, num_rows, draws)[1])
        return prepared, {at: self._reword(error) for at, error in faults.items()}

    def apply(
        self, columns: CodedColumns, num_rows: int, draws: Draws | None
    ) -> tuple[Arrays, Arrays, Arrays]:
        """Return the arrays of rows."""
        try:
            parts = self._pipeline.apply(columns, num_rows, draws)
        except FieldError as error:
            raise self._reword(error) from error.__cause__
        faults = self._find_unknown(parts[1])
        if faults:
            raise self._reword(faults[min(faults)])
        return parts

    def _find_unknown(self, targets: Arrays) -> Faults:
        """Return errors of rows with a class that the run does not have."""
        return {
            int(at): FieldError("class", field=name, record=int(at), got=show(targets[name][at].item()))
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
        return FieldError(
            error.what, field=error.field, record=error.record, expected=expected, got=error.got
        )


def name_fields(columns: Iterable[str], pipeline: Pipeline, schema: Mapping[str, Field]) -> Schema:
    """Return the fields of the records; fields that may be missing are optional, targets are not."""
    fields: dict[str, Field] = {}
    for name in columns:
        is_target = schema[name].role == "target"
        optional = not is_target and (name not in pipeline.fields or can_lack(pipeline, name))
        field = replace(schema[name], optional=optional, key=None)
        # Images may have other formats than in training.
        fields[name] = replace(field, format=None) if isinstance(field, Image) else field
    return Schema(fields)


def frame_records(encoder: RecordEncoder, columns: Mapping[str, Any], num_rows: int) -> bytes:
    """Return rows as the records of a TFRecord file."""
    arena, offsets = encoder.encode(columns, num_rows)
    none = np.zeros(num_rows, np.uint32)
    frames, _, _ = _native.compose([arena], none, offsets[:-1], np.diff(offsets), [], encoder.is_sequence)
    return frames.tobytes()


def _name_data(data: object) -> str:
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | Path):
        return str(data[0]) if len(data) == 1 else f"{data[0]} and {count(len(data) - 1, 'more file')}"
    return str(data) if isinstance(data, str | Path) else type(data).__name__
