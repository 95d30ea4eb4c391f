"""Class weights: weight the records of rare classes up, so that the model learns these classes too.

In: the number of training records of each class. Out: one weight per class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, is_finite, show
from penstock.model.task import Task

_LEAST_SHARE: Final = 0.5  # of an equal share: a class with less is rare


def balance(counts: Sequence[int]) -> tuple[float, ...]:
    """Return weights that give all classes the same total weight, with a mean of 1 over the records.

    The weight of a class without records is 1.

    Example:
        >>> balance([30, 10])
        (0.6666666666666666, 2.0)
    """
    num_classes = sum(count > 0 for count in counts)
    total = sum(counts)
    return tuple(total / (num_classes * count) if count > 0 else 1.0 for count in counts)


def choose_class_weights(counts: Sequence[int]) -> tuple[float, ...] | None:
    """Return balanced weights if a class is rare, else None: the choice of "auto".

    A class is rare if it has less than half of the records that it would have if all had equally many.

    Example:
        >>> choose_class_weights([30, 10]), choose_class_weights([40, 9])
        (None, (0.6125, 2.7222222222222223))
    """
    found = [count for count in counts if count > 0]
    if len(found) < 2:
        return None
    is_rare = min(found) < _LEAST_SHARE * sum(found) / len(found)
    return balance(counts) if is_rare else None


_SINGLE: Final = ("binary", "multiclass")  # kinds of task with one class per record
_MOST_NAMED: Final = 5


def compute_class_weights(
    counts: Mapping[str, tuple[int, ...]], tasks: Mapping[str, Task], chosen: str | Mapping[str, Any]
) -> dict[str, tuple[float, ...]]:
    """Return the class weights of the targets that have any.

    `chosen`: "auto", "balanced", "none", or weights by label by target.
    """
    single = {name: task for name, task in tasks.items() if task.kind in _SINGLE}
    if isinstance(chosen, Mapping):
        return {str(name): _read_weights(str(name), given, single) for name, given in chosen.items()}
    weights: dict[str, tuple[float, ...]] = {}
    for name in single if chosen != "none" else ():
        found = balance(counts[name]) if chosen == "balanced" else choose_class_weights(counts[name])
        if found is not None:
            weights[name] = found
    return weights


def count_classes(
    batches: Iterable[Mapping[str, NDArray[Any]]], tasks: Mapping[str, Task]
) -> dict[str, tuple[int, ...]]:
    """Return the number of records of each class, by target; only for targets with one class per record.

    `batches`: targets of all training records, as codes of the pipeline.
    """
    counts: dict[str, NDArray[np.int64]] = {
        name: np.zeros(len(task.labels), np.int64) for name, task in tasks.items() if task.kind in _SINGLE
    }
    for targets in batches if counts else ():
        for name, found in counts.items():
            codes = np.asarray(targets[name]).astype(np.int64)
            np.add(found, np.bincount(codes, minlength=len(found))[: len(found)], out=found)
    return {name: tuple(found.tolist()) for name, found in counts.items()}


def list_single_record_classes(
    counts: Mapping[str, tuple[int, ...]], tasks: Mapping[str, Task]
) -> Iterator[str]:
    """Yield a note for each target that has classes with a single training record."""
    for name, found in counts.items():
        labels = [label for label, number in zip(tasks[name].labels, found, strict=True) if number == 1]
        if labels:
            shown = ", ".join(map(show, labels[:_MOST_NAMED])) + (", …" if len(labels) > _MOST_NAMED else "")
            classes = "class has" if len(labels) == 1 else "classes have"
            yield (
                f"Target {name!r}: {len(labels)} {classes} only one training record, too few to "
                f"generalize from: {shown}."
            )


def _read_weights(name: str, given: Any, tasks: Mapping[str, Task]) -> tuple[float, ...]:
    what = f"class_weights[{name!r}]"
    if name not in tasks:
        nearest = find_nearest(name, tasks)
        advice = f"Did you mean {nearest!r}?" if nearest else ""
        expected = "a target with one class per record"
        raise OptionError(what, expected=expected, got=repr(name), advice=advice)
    if not isinstance(given, Mapping):
        raise OptionError(what, expected="weights by label", got=show(given))
    labels = {str(label): number for number, label in enumerate(tasks[name].labels)}
    weights = [1.0] * len(labels)
    for label, weight in given.items():
        if str(label) not in labels:
            raise OptionError(what, expected=f"one of the labels {', '.join(labels)}", got=show(label))
        if not is_finite(weight) or weight < 0:
            raise OptionError(f"{what}[{label!r}]", expected="a number of at least 0", got=show(weight))
        weights[labels[str(label)]] = float(weight)
    return tuple(weights)
