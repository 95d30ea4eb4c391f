"""Evaluates what predicts: one pass over a split, and what is found in it.

In: a predictor, its pipeline and tasks, a split. Out: an `Evaluation`. Predictions are held in memory, four
bytes for each record and label; inputs never are, but for a bounded sample.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.batch.options import LoadOptions
from penstock.errors import FieldError
from penstock.model.bootstrap import find_intervals
from penstock.model.breakdown import describe_classes, describe_confusion
from penstock.model.evaluateoptions import EvaluateOptions
from penstock.model.evaluation import Evaluation, SliceScores
from penstock.model.importance import Importance, Predict, draw_sample, measure_importance
from penstock.model.mistakes import Mistake, Samples, find_worst, read_inputs, word_prediction, word_truth
from penstock.model.scores import is_sound, lose, score, to_number
from penstock.model.slices import Slicer, check_slices
from penstock.model.task import Task
from penstock.model.trace import Traced, trace
from penstock.schema.refusal import count, show
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is done, how much of it, of how much."""


class EvaluatedSplit(Samples, Protocol):
    """The records to predict: a split."""

    name: str
    schema: Schema

    def as_source(self) -> LoadedSplit:
        """Return what loaders are told of it."""


@dataclass(frozen=True)
class Judged:
    """What a model made of a split.

    Attributes:
        rows: The numbers of the records, ascending; those that were skipped are not there.
        truths: By target, as codes or stored numbers.
        predictions: By target, as probabilities or numbers.
        slicers: By field, with its values.
    """

    rows: NDArray[np.int64]
    truths: dict[str, NDArray[Any]]
    predictions: dict[str, NDArray[Any]]
    slicers: dict[str, Slicer]


def evaluate_split(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    split: EvaluatedSplit,
    options: EvaluateOptions | None = None,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Predict a split, and say how good that is.

    Records count alike, also where the data has weights: those are for training.

    Args:
        predict: Inputs of a batch to predictions by target: probabilities, or numbers as they are stored.
        pipeline: Makes inputs and targets of stored values.
        tasks: What is predicted, by target.
        split: The records.
        options: What to look into.
        on_progress: Is told how far it is.

    Raises:
        UnknownNameError: The split lacks a field that is needed.
        SchemaError: A field of it is not what the pipeline was fitted to.
        OptionError: It has no records, or there are no slices by such a field.
        FieldError: A record has a target that no label stands for.
    """
    options = options or EvaluateOptions()
    tell = on_progress or (lambda *_: None)
    check_slices(options.slices, split.schema)
    source = split.as_source()
    judged = _judge(predict, pipeline, tasks, source, options, tell)
    notes = _note(tasks, judged, len(source.rows))
    slices, more = _score_slices(tasks, judged, split.schema)
    importance = Importance(0, {}, {})
    if options.importance:
        importance = _weigh_inputs(predict, pipeline, tasks, source, judged, options, tell)
    pairs = {name: (task, judged.truths[name], judged.predictions[name]) for name, task in tasks.items()}
    return Evaluation(
        split=split.name,
        records=len(judged.rows),
        tasks=dict(tasks),
        targets={name: score(*each) for name, each in pairs.items()},
        intervals={
            name: find_intervals(*each, options.bootstrap, options.seed) for name, each in pairs.items()
        },
        classes={name: describe_classes(*each) for name, each in pairs.items() if each[0].labels},
        confusion={name: describe_confusion(*each) for name, each in pairs.items() if each[0].labels},
        slices=slices,
        importance_by_target=importance.fields,
        ablation_by_target=importance.modalities,
        importance_records=importance.records,
        mistakes={
            name: _find_mistakes(*each, judged.rows, split, tasks, options.mistakes)
            for name, each in pairs.items()
        },
        notes=(*notes, *more),
    )


def _judge(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    source: LoadedSplit,
    options: EvaluateOptions,
    tell: OnProgress,
) -> Judged:
    """Predict all records, in the order in which they are stored."""
    slicers = {name: Slicer(source.schema[name]) for name in options.slices}
    rows: list[NDArray[np.int64]] = []
    truths: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    predictions: dict[str, list[NDArray[Any]]] = {name: [] for name in tasks}
    traced = Traced(pipeline, options.slices)
    for batch in trace(source, traced, LoadOptions(batch_size=options.batch_size, augment=False)):
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
    return Judged(
        np.concatenate(rows),
        {name: np.concatenate(pieces) for name, pieces in truths.items()},
        {name: np.concatenate(pieces) for name, pieces in predictions.items()},
        slicers,
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


def _note(tasks: Mapping[str, Task], judged: Judged, num_records: int) -> list[str]:
    notes = []
    num_lost = num_records - len(judged.rows)
    if num_lost:
        notes.append(f"{count(num_lost, 'bad record')} skipped")
    for name, task in tasks.items():
        truth, predicted = judged.truths[name], judged.predictions[name]
        if not is_sound(truth, predicted):
            bad = ~(np.isfinite(truth.reshape(len(truth), -1)).all(axis=1))
            bad |= ~(np.isfinite(predicted.reshape(len(truth), -1)).all(axis=1))
            number = count(int(bad.sum()), "record")
            notes.append(f"{name}: no score is defined, as the truth or prediction of {number} is not finite")
        elif task.kind == "regression" and (num_zeros := int((truth == 0).sum())):
            notes.append(f"{name}: mape leaves out {count(num_zeros, 'number')} whose truth is 0")
        elif task.kind in ("binary", "multiclass") and len(found := np.unique(truth)) < len(task.labels):
            absent = len(task.labels) - len(found)
            notes.append(f"{name}: {count(absent, 'label')} of {len(task.labels)} in no record here")
    return notes


def _score_slices(
    tasks: Mapping[str, Task], judged: Judged, schema: Schema
) -> tuple[dict[str, list[SliceScores]], list[str]]:
    slices, notes = {}, []
    for name, slicer in judged.slicers.items():
        groups, num_left = slicer.groups()
        slices[name] = [
            SliceScores(
                group.value,
                group.low,
                group.high,
                len(group.members),
                {
                    target: score(
                        task, judged.truths[target][group.members], judged.predictions[target][group.members]
                    )
                    for target, task in tasks.items()
                },
            )
            for group in groups
        ]
        if schema[name].type_name == "sequence":
            notes.append(f"{name}: sliced by the number of its items")
        if num_left:
            notes.append(f"{name}: {count(num_left, 'rarer value')} not shown")
    return slices, notes


def _weigh_inputs(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    source: LoadedSplit,
    judged: Judged,
    options: EvaluateOptions,
    tell: OnProgress,
) -> Importance:
    sample = draw_sample(source, pipeline, judged.rows, options.importance_records, options.seed)
    at = np.searchsorted(judged.rows, sample.rows)
    return measure_importance(
        predict,
        pipeline,
        sample,
        tasks,
        {name: judged.truths[name][at] for name in tasks},
        batch_size=options.batch_size,
        seed=options.seed,
        on_pass=lambda done, total: tell("which input matters", done, total),
    )


def _find_mistakes(
    task: Task,
    truth: NDArray[Any],
    predicted: NDArray[Any],
    rows: NDArray[np.int64],
    split: EvaluatedSplit,
    targets: Container[str],
    most: int,
) -> list[Mistake]:
    mistakes, source = [], split.as_source()
    for at in find_worst(task, truth, predicted, most).tolist():
        row = int(rows[at])
        shard, record = source.rows.locate(row)
        loss = to_number(lose(task, truth[at : at + 1], predicted[at : at + 1])[0])
        meant, chance = word_prediction(task, predicted[at])
        inputs = read_inputs(split, row, targets)
        mistakes.append(
            Mistake(row, str(shard.path), record, word_truth(task, truth[at]), meant, chance, loss, inputs)
        )
    return mistakes
