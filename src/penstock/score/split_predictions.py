"""Predict a split in one pass.

In: a predictor, its pipeline and tasks, a split. Out: aligned truths and predictions of every record that
could be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.columns import Dense
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import count, show
from penstock.model.task import Task
from penstock.model.usable_records import Labelled, find_labelled
from penstock.score.evaluation_batches import (
    EvaluationPipeline,
    Inputs,
    Predict,
    predict_each,
    read_batches,
)
from penstock.score.slices import Slicer
from penstock.settings.loading import LoadOptions
from penstock.settings.prediction import EvaluateOptions
from penstock.transform.pipeline import Pipeline

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
