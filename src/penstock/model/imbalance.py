"""How many records each class has, and what the classes weigh.

In: a split, a pipeline, its tasks, and what was chosen. Out: class weights by target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.model.labels import LabelSource
from penstock.model.task import Task
from penstock.model.weights import balance, choose_class_weights
from penstock.schema.nearest import find_nearest
from penstock.schema.refusal import is_finite, show
from penstock.transform.pipeline import Pipeline

_BLOCK_ROWS: Final = 1 << 16


def weigh_classes(
    split: LabelSource, pipeline: Pipeline, tasks: Mapping[str, Task], chosen: str | Mapping[str, Any]
) -> dict[str, tuple[float, ...]]:
    """Return the class weights of the targets that have any.

    Args:
        split: The records to train on.
        pipeline: What codes their classes.
        tasks: What is predicted.
        chosen: "auto", "balanced", "none", or weights by label by target.

    Raises:
        OptionError: Weights were given for what is no target, or no label.
    """
    single = {name: task for name, task in tasks.items() if task.kind in ("binary", "multiclass")}
    if isinstance(chosen, Mapping):
        return {str(name): _read_weights(str(name), given, single) for name, given in chosen.items()}
    weights: dict[str, tuple[float, ...]] = {}
    for name, task in single.items() if chosen != "none" else ():
        counts = count_classes(split, pipeline, task)
        found = balance(counts) if chosen == "balanced" else choose_class_weights(counts)
        if found is not None:
            weights[name] = found
    return weights


def count_classes(split: LabelSource, pipeline: Pipeline, task: Task) -> tuple[int, ...]:
    """Return how many records of a split have each label of a task."""
    counts: NDArray[np.int64] = np.zeros(len(task.labels), np.int64)
    transform = pipeline.transforms.get(task.name)
    for start in range(0, len(split), _BLOCK_ROWS) if transform is not None else ():
        columns = split.columns(start, start + _BLOCK_ROWS, [task.name])
        codes = transform.apply(task.name, columns[task.name], None)[task.name]  # type: ignore[union-attr]
        counts += np.bincount(np.asarray(codes).astype(np.int64), minlength=len(counts))
    return tuple(counts.tolist())


def _read_weights(name: str, given: Any, tasks: Mapping[str, Task]) -> tuple[float, ...]:
    what = f"class_weights[{name!r}]"
    if name not in tasks:
        nearest = find_nearest(name, tasks)
        advice = f"Did you mean {nearest!r}?" if nearest else ""
        expected = "a target with one class a record"
        raise OptionError(what, expected=expected, got=repr(name), advice=advice)
    if not isinstance(given, Mapping):
        raise OptionError(what, expected="weights by label", got=show(given))
    labels = {str(label): number for number, label in enumerate(tasks[name].labels)}
    weights = [1.0] * len(labels)
    for label, weight in given.items():
        if str(label) not in labels:
            raise OptionError(what, expected=f"labels among {', '.join(labels)}", got=show(label))
        if not is_finite(weight) or weight < 0:
            raise OptionError(f"{what}[{label!r}]", expected="a number of at least 0", got=show(weight))
        weights[labels[str(label)]] = float(weight)
    return tuple(weights)
