"""Tasks: what a model predicts, one task per target.

In: a fitted pipeline. Out: `Task`s by target, which define output layers, losses, scores and predictions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from penstock.errors import OptionError, TrainingDataError
from penstock.foundation.wording import show
from penstock.schema.date import Date, DateUnit
from penstock.transform.category import Encode
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline
from penstock.transform.scale_range import SMALLEST_SPREAD
from penstock.transform.vocabulary import Entry

Kind: TypeAlias = Literal["binary", "multiclass", "multilabel", "regression"]

_WHOLE_KINDS: Final = "iub"
_INVERTIBLE: Final = ("standard", "minmax", "log1p", "none")
_MAX_LISTED: Final = 10  # names of fields in a message


@dataclass(frozen=True)
class Task:
    """Kind of prediction for one target.

    Attributes:
        name: Name of the target.
        kind: "binary", one of two labels; "multiclass", one of several; "multilabel", any of several;
            "regression", numbers.
        labels: Labels by code; empty for a regression.
        shape: Shape of the target of one record in a batch.
        mean: Mean of a regression target in the train split, as scaled in a batch.
        deviation: Standard deviation of a regression target in the train split, as scaled in a batch.
        method: Scaling method of a regression target in a batch, one of `Scale`.
        shift: Number that scaling subtracts.
        factor: Number that scaling multiplies by.
        unit: Unit of the stored numbers of a date; None for other targets.

    Example:
        >>> Task("adopted", "binary", ("no", "yes")).units
        1
    """

    name: str
    kind: Kind
    labels: tuple[Entry, ...] = ()
    shape: tuple[int, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0
    method: str = "none"
    shift: float = 0.0
    factor: float = 1.0
    unit: DateUnit | None = None

    @property
    def units(self) -> int:
        """Number of units of the output layer."""
        if self.kind in ("multiclass", "multilabel"):
            return len(self.labels)
        return math.prod(self.shape)

    def undo(self, values: Any, ops: Any = np) -> Any:
        """Return numbers of a regression in the units of the stored field, by inverting the scaling.

        Args:
            values: The numbers, an array or a tensor.
            ops: Module of the functions for them: `numpy`, or `keras.ops` or `tf.math` for tensors.
        """
        if self.method == "none":
            return values
        undone = values / self.factor + self.shift
        return ops.sign(undone) * ops.expm1(ops.abs(undone)) if self.method == "log1p" else undone

    def scale(self, values: Any, ops: Any = np) -> Any:
        """Return numbers of a regression as scaled in a batch, the inverse of `undo`.

        Args:
            values: The numbers, an array or a tensor.
            ops: Module of the functions for them: `numpy`, or `keras.ops` for tensors.
        """
        if self.method == "none":
            return values
        logs = ops.sign(values) * ops.log1p(ops.abs(values)) if self.method == "log1p" else values
        return (logs - self.shift) * self.factor

    def restored(self, kind: Kind, num_labels: int) -> Task:
        """Return the task as a user's own loss defined it: whole numbers may have been classes.

        Args:
            kind: Kind that the run has recorded.
            num_labels: Number of labels that the run has recorded.
        """
        if self.kind != "regression" or kind != "multiclass":
            return self
        return replace(self, kind="multiclass", labels=tuple(range(num_labels)))

    def describe(self) -> str:
        """Return a short text for the task."""
        if self.kind == "regression":
            what = f" of {self.units} numbers" if self.shape else " of dates" if self.unit is not None else ""
            return f"regression{what}"
        return f"{self.kind}, {len(self.labels)} labels"


def find_tasks(pipeline: Pipeline) -> dict[str, Task]:
    """Return the task of each target of a pipeline."""
    if not pipeline.targets:
        names = list(pipeline.schema)
        listed = ", ".join(names[:_MAX_LISTED]) + (", …" if len(names) > _MAX_LISTED else "")
        raise OptionError(
            "targets of the pipeline",
            expected="a field to predict",
            got="no target",
            advice=f"Choose one: `target=NAME`. The fields are {listed}.",
        )
    transforms = pipeline.transforms
    for name, transform in transforms.items():
        if name in pipeline.targets and isinstance(transform, Scale) and transform.indicator:
            expected = "a target without an indicator"
            raise _make_error(name, expected, f"{transform!r}, which adds an indicator")
    tasks = {name: _find_task(output, transforms.get(name)) for name, output in pipeline.targets.items()}
    for name, field in pipeline.schema.items():
        is_number = name in tasks and name in transforms and tasks[name].kind == "regression"
        if isinstance(field, Date) and is_number:
            tasks[name] = replace(tasks[name], unit=field.unit)
    return tasks


def _find_task(output: Output, transform: Any) -> Task:
    name, shape = output.name, tuple(dim or 0 for dim in output.shape)
    if output.is_ragged or 0 in shape or len(shape) > 1:
        raise _make_error(name, "a number, a class, a set of classes or a vector", output.describe())
    if isinstance(transform, Encode):
        return _find_classes(name, shape, transform)
    if isinstance(transform, Scale) and transform.fitted is not None:
        if transform.method not in _INVERTIBLE or len(transform.fitted.shift) > 1:
            got = f"{transform!r}, which cannot be undone in predictions"
            raise _make_error(name, "a target that is not scaled, or scaled as a whole", got)
        shift, factor = transform.fitted.shift[0], transform.fitted.factor[0]
        return Task(name, "regression", shape=shape, method=transform.method, shift=shift, factor=factor)
    if isinstance(transform, Keep) and transform.fitted is not None and transform.fitted.spread is not None:
        low, high, mean, deviation = transform.fitted.spread
        is_whole = np.dtype(transform.fitted.dtype).kind in _WHOLE_KINDS
        if is_whole and not shape and low == 0 and high == 1:
            return Task(name, "binary", (0, 1))
        if deviation < SMALLEST_SPREAD:
            deviation = 1.0
        return Task(name, "regression", shape=shape, mean=mean, deviation=deviation)
    if np.dtype(output.dtype).kind == "f":
        return Task(name, "regression", shape=shape)
    advice = "Use another transform for the field, or train your own model in your own loop."
    raise _make_error(name, "a number or a class", output.describe(), advice)


def _find_classes(name: str, shape: tuple[int, ...], transform: Encode) -> Task:
    labels = () if transform.fitted is None else transform.fitted.values
    if transform.output == "multi_hot" and shape == (len(labels),):
        return Task(name, "multilabel", labels, shape)
    if transform.output != "index" or shape or transform.num_codes != len(labels):
        expected = "classes as codes from 0: Encode(unknown='error', missing='error'), or sets of classes"
        advice = (
            "Leave out the settings of this field, such as those in the table `fields` of a "
            "configuration file: they may be from a run that read it as an input."
        )
        raise _make_error(name, expected, repr(transform), advice)
    if len(labels) < 2:
        got = f"{len(labels)}: {show(labels[0])} in all records" if labels else "no class"
        advice = "Choose another target: `target=NAME`; or add records of other classes."
        raise _make_error(name, "at least two classes", got, advice)
    return Task(name, "binary" if len(labels) == 2 else "multiclass", labels)


def _make_error(name: str, expected: str, got: str, advice: str = "") -> TrainingDataError:
    return TrainingDataError(f"target {name!r}", field=name, expected=expected, got=got, advice=advice)
