"""Evaluates what predicts: one pass over a split, and what is found in it.

In: a predictor, its pipeline and tasks, a split. Out: an `Evaluation`. Predictions are held in memory, four
bytes for each record and label; inputs never are, but for a bounded sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from penstock.batch.build import LoadedSplit
from penstock.dataset import Split
from penstock.foundation.wording import count
from penstock.model.finite import check_finite
from penstock.model.task import Task
from penstock.schema.schema import Schema
from penstock.score.class_report import describe_classes, describe_confusion
from penstock.score.evaluation import Evaluation, SliceScores
from penstock.score.importance import Importance, Predict, draw_sample, measure_importance
from penstock.score.intervals import find_intervals
from penstock.score.judgement import Judged, OnProgress, judge
from penstock.score.mistakes import find_mistakes
from penstock.score.options import EvaluateOptions
from penstock.score.scores import is_sound, score
from penstock.score.slices import check_slices
from penstock.score.traced_batches import fit_batch_size
from penstock.transform.pipeline import Pipeline


def evaluate_split(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    split: Split,
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
        FieldError: A record has a target that no label stands for, or a number that is not finite.
    """
    options = options or EvaluateOptions()
    if options.batch_size is None:
        options = replace(options, batch_size=fit_batch_size(pipeline))
    tell = on_progress or (lambda *_: None)
    check_slices(options.slices, split.schema)
    check_finite(split, pipeline, is_described=False)
    source = split.as_source()
    judged = judge(predict, pipeline, tasks, source, options, tell)
    notes = _note(tasks, judged, source.name)
    slices, more = _score_slices(tasks, judged, split.schema)
    importance = Importance(0, {}, {})
    if options.importance:
        importance = _weigh_inputs(predict, pipeline, tasks, source, judged, options, tell)
    pairs = {name: (task, judged.truths[name], judged.predictions[name]) for name, task in tasks.items()}
    targets = {name: score(*each) for name, each in pairs.items()}
    return Evaluation(
        split=split.name,
        records=len(judged.rows),
        tasks=dict(tasks),
        targets=targets,
        intervals={
            name: find_intervals(*each, options.bootstrap, options.seed, targets[name])
            for name, each in pairs.items()
        },
        classes={name: describe_classes(*each) for name, each in pairs.items() if each[0].labels},
        confusion={name: describe_confusion(*each) for name, each in pairs.items() if each[0].labels},
        slices=slices,
        importance_by_target=importance.fields,
        ablation_by_target=importance.modalities,
        importance_records=importance.records,
        mistakes={
            name: find_mistakes(*each, judged.rows, split, tasks, options.mistakes)
            for name, each in pairs.items()
        },
        notes=(*notes, *more),
    )


def _note(tasks: Mapping[str, Task], judged: Judged, split: str) -> list[str]:
    notes = []
    if judged.labelled.num_missing:
        notes.append(f"{judged.labelled.describe(split)}: they are left out")
    num_lost = judged.labelled.num_records - len(judged.rows)
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
        if slicer.is_by_length:
            items = "items" if schema[name].type_name == "sequence" else "characters"
            notes.append(f"{name}: sliced by the number of its {items}")
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
        batch_size=options.batch_size or 1,
        seed=options.seed,
        on_pass=lambda done, total: tell("which input matters", done, total),
    )
