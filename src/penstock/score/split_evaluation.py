"""Evaluate a predictor on a split, in one pass over its records.

In: a predictor, its pipeline and tasks, a split. Out: an `Evaluation`. Predictions are held in memory, four
bytes per record and label; inputs are not, except a bounded sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from penstock.batch.build import LoadedSplit
from penstock.dataset import Split
from penstock.foundation.wording import count
from penstock.model.task import Task
from penstock.model.usable_records import check_finite
from penstock.schema.schema import Schema
from penstock.score.evaluation import MOST_CLASSES, Evaluation, SliceScores
from penstock.score.evaluation_batches import Predict, fit_batch_size
from penstock.score.importance import Importance, draw_sample, measure_importance
from penstock.score.intervals import find_calibrated_error, find_intervals
from penstock.score.mistakes import find_mistakes
from penstock.score.scores import is_scorable, score, score_baseline, score_threshold
from penstock.score.split_predictions import OnProgress, SplitPredictions, check_slices, predict_split
from penstock.score.target_figures import describe_classes, describe_confusion, describe_curves
from penstock.settings.prediction import EvaluateOptions
from penstock.training.left_out import find_unread
from penstock.transform.pipeline import Pipeline

BY_LENGTH: Final = ": sliced by its number of "
"""Words between a field and its unit in the note on slices by length."""


def evaluate_split(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    split: Split,
    options: EvaluateOptions | None = None,
    on_progress: OnProgress | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> Evaluation:
    """Predict a split, and compare the predictions with its targets.

    All records have the same weight, also where the data has weights: those are only for training.

    `predict`: function from the inputs of a batch to predictions by target: probabilities, or numbers in the
    scale in which they are stored; or what predicts several batches at the same time. `on_progress`: called
    with the current task, its finished part, and the whole of it. `thresholds`: thresholds of binary targets,
    chosen on other records, to give scores for as well.
    """
    options = options or EvaluateOptions()
    if options.batch_size is None:
        options = options.replace(batch_size=fit_batch_size(pipeline))
    report = on_progress or (lambda *_: None)
    check_slices(options.slices, split.schema)
    check_finite(split, pipeline, is_described=False)
    source = split.as_source()
    judged = predict_split(predict, pipeline, tasks, source, options, report)
    notes = _make_notes(tasks, judged, source.name)
    slices, more = _score_slices(tasks, judged, split.schema)
    importance = Importance(0, {}, {})
    if options.importance:
        importance = _measure_inputs(predict, pipeline, tasks, source, judged, options, report)
    pairs = {name: (task, judged.truths[name], judged.predictions[name]) for name, task in tasks.items()}
    targets = {name: score(*each) for name, each in pairs.items()}
    return Evaluation(
        split=split.name,
        records=len(judged.rows),
        tasks=dict(tasks),
        targets=targets,
        baselines={
            name: score_baseline(task, judged.truths[name], has_areas=len(task.labels) <= MOST_CLASSES)
            for name, task in tasks.items()
        },
        intervals={
            name: find_intervals(*each, options.bootstrap, options.seed, targets[name])
            for name, each in pairs.items()
        },
        calibrated={
            name: drawn
            for name, each in pairs.items()
            if (drawn := find_calibrated_error(*each, options.bootstrap, options.seed)) is not None
        },
        classes={name: describe_classes(*each) for name, each in pairs.items() if each[0].labels},
        confusion={name: describe_confusion(*each) for name, each in pairs.items() if each[0].labels},
        thresholds={
            name: score_threshold(*pairs[name][1:], threshold)
            for name, threshold in (thresholds or {}).items()
            if name in tasks and tasks[name].kind == "binary"
        },
        curves={name: describe_curves(*each) for name, each in pairs.items()},
        slices=slices,
        importance_by_target=importance.fields,
        ablation_by_target=importance.modalities,
        parts_by_target=importance.parts,
        importance_records=importance.records,
        unread=find_unread(split.schema, pipeline.fields),
        mistakes={
            name: find_mistakes(*each, judged.rows, split, tasks, options.mistakes)
            for name, each in pairs.items()
        },
        notes=(*notes, *more),
        slice_notes=tuple(more),
    )


def _make_notes(tasks: Mapping[str, Task], judged: SplitPredictions, split: str) -> list[str]:
    notes = []
    if judged.labelled.num_missing:
        notes.append(f"{judged.labelled.describe(split)}: these records are skipped")
    num_lost = judged.labelled.num_records - len(judged.rows)
    if num_lost:
        notes.append(f"{count(num_lost, 'bad record')} skipped")
    for name, task in tasks.items():
        truth, predicted = judged.truths[name], judged.predictions[name]
        if not is_scorable(truth, predicted):
            bad = ~(np.isfinite(truth.reshape(len(truth), -1)).all(axis=1))
            bad |= ~(np.isfinite(predicted.reshape(len(truth), -1)).all(axis=1))
            number = count(int(bad.sum()), "record")
            notes.append(
                f"{name}: scores are undefined, as the truth or prediction of {number} is not finite"
            )
        elif task.kind == "regression" and task.unit is None and (num_zeros := int((truth == 0).sum())):
            notes.append(f"{name}: MAPE ignores {count(num_zeros, 'number')} whose true value is 0")
        elif task.kind in ("binary", "multiclass") and len(found := np.unique(truth)) < len(task.labels):
            absent = len(task.labels) - len(found)
            notes.append(f"{name}: {count(absent, 'label')} of {len(task.labels)} not in this data")
    return notes


def _score_slices(
    tasks: Mapping[str, Task], judged: SplitPredictions, schema: Schema
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
                        task,
                        judged.truths[target][group.members],
                        judged.predictions[target][group.members],
                        # Areas of a thousand classes in hundreds of slices would take hours.
                        has_areas=len(task.labels) <= MOST_CLASSES,
                    )
                    for target, task in tasks.items()
                },
            )
            for group in groups
        ]
        if slicer.is_by_length:
            items = "items" if schema[name].type_name == "sequence" else "characters"
            notes.append(f"{name}{BY_LENGTH}{items}")
        if num_left:
            notes.append(f"{name}: {count(num_left, 'rarer value')} not shown")
    return slices, notes


def _measure_inputs(
    predict: Predict,
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    source: LoadedSplit,
    judged: SplitPredictions,
    options: EvaluateOptions,
    report: OnProgress,
) -> Importance:
    sample = draw_sample(source, pipeline, judged.rows, options.importance_records, options.seed)
    at = np.searchsorted(judged.rows, sample.rows)
    return measure_importance(
        predict,
        pipeline,
        sample,
        tasks,
        {name: judged.truths[name][at] for name in tasks},
        options,
        on_pass=lambda done, total: report("feature importance", done, total),
    )
