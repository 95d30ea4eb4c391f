"""Predicts a split, in one pass.

In: a predictor, its pipeline and tasks, a split. Out: `Judged`: truths and predictions of every record that
could be read, aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.batch.options import LoadOptions
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import count, show
from penstock.model.task import Task
from penstock.model.unlabelled import Labelled, find_labelled
from penstock.score.importance import Predict
from penstock.score.options import EvaluateOptions
from penstock.score.slices import Slicer
from penstock.score.traced_batches import Traced, trace
from penstock.transform.pipeline import Pipeline

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is done, how much of it, of how much."""


@dataclass(frozen=True)
class Judged:
    """What a model made of a split.

    Attributes:
        rows: The numbers of the records, ascending; those that were skipped are not there.
        truths: By target, as codes or stored numbers.
        predictions: By target, as probabilities or numbers.
        slicers: By field, with its values.
        labelled: Which records have every target: others are left out.
    """

    rows: NDArray[np.int64]
    truths: dict[str, NDArray[Any]]
    predictions: dict[str, NDArray[Any]]
    slicers: dict[str, Slicer]
    labelled: Labelled


def judge(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    source: LoadedSplit,
    options: EvaluateOptions,
    tell: OnProgress,
) -> Judged:
    """Predict all records that have every target, in the order in which they are stored.

    Raises:
        OptionError: There is no record with a target, or none that can be read.
        FieldError: A record has a target that no label stands for.
    """
    labelled = find_labelled(source, pipeline)
    if labelled.num_missing and not labelled.num_records:
        raise OptionError(
            f"target {labelled.targets[0]!r} of split {source.name!r}",
            field=labelled.targets[0],
            expected="a value at least, to compare predictions with",
            got=f"none in all {count(labelled.num_missing, 'record')}",
            advice="Predict without scores: penstock predict RUN DATA, in Python ps.predict(run, data).",
        )
    slicers = {name: Slicer(source.schema[name]) for name in options.slices}
    rows: list[NDArray[np.int64]] = []
    truths: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    predictions: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    traced = Traced(pipeline, options.slices)
    choices = LoadOptions(batch_size=options.batch_size or 1, augment=False, filter=labelled.filter)
    for batch in trace(source, traced, choices):
        if not len(batch.rows):
            continue
        found = predict(batch.inputs)
        for name, task in tasks.items():
            truths[name].append(_read_truth(task, batch.targets[name], source, batch.rows))
            predictions[name].append(np.array(found[name]))  # a copy: a backend may use its memory again
        for name, slicer in slicers.items():
            slicer.add(batch.columns[name])
        rows.append(batch.rows)
        tell("predicting", int(batch.rows[-1]) + 1, len(source.rows))
    if not rows:
        raise OptionError(
            f"split {source.name!r}",
            expected="a record that can be read",
            got=f"{count(len(source.rows), 'bad one')}",
            advice="Run 'penstock verify'.",
        )
    return Judged(
        np.concatenate(rows),
        {name: np.concatenate(pieces) for name, pieces in truths.items()},
        {name: np.concatenate(pieces) for name, pieces in predictions.items()},
        slicers,
        labelled,
    )


def _read_truth(
    task: Task, values: NDArray[Any], source: LoadedSplit, rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return targets of a batch as codes, or as the numbers that are stored.

    Raises:
        FieldError: A code is that of no label.
    """
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
            expected=f"one of {len(task.labels)} labels, coded from 0 on",
            got=show(values[at].tolist()),
            advice="Evaluate data whose labels the model knows.",
        )
    return codes
