"""The loss of a task, with the weights of its classes inside.

In: targets and outputs of a batch. Out: a number a record, which Keras weighs by the record and averages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import keras
from keras import ops

from penstock.errors import OptionError
from penstock.foundation.wording import is_finite, list_choices, show
from penstock.model.outputs import find_logits
from penstock.model.task import Task


class TaskLoss(keras.losses.Loss):  # type: ignore[misc]
    """What a model is to make small for a target.

    Cross-entropy for classes; for numbers the squared error in units of their deviation, so that the losses
    of several targets are of one size.

    Attributes:
        task: The task.
        from_logits: Whether outputs are logits.
        class_weights: By code, how much a record counts; none counts more than others if not given.
    """

    def __init__(
        self, task: Task, *, from_logits: bool = False, class_weights: tuple[float, ...] | None = None
    ) -> None:
        super().__init__(name=f"{task.kind}_loss")
        self.task = task
        self.from_logits = from_logits
        self.class_weights = class_weights

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each record."""
        task = self.task
        if task.kind == "multiclass":
            codes = ops.cast(ops.reshape(y_true, (-1,)), "int32")
            values = ops.sparse_categorical_crossentropy(codes, y_pred, from_logits=self.from_logits)
            return self._weigh(values, codes)
        # As (n, k) both: of two vectors Keras would take the mean over the batch, and lose the records.
        wanted = ops.reshape(y_true, (-1, task.units))
        given = ops.reshape(y_pred, (-1, task.units))
        if task.kind == "regression":
            return ops.mean(ops.square((given - wanted) / (task.deviation or 1.0)), axis=-1)
        values = ops.mean(ops.binary_crossentropy(wanted, given, from_logits=self.from_logits), axis=-1)
        if task.kind == "multilabel":
            return values
        return self._weigh(values, ops.cast(ops.reshape(y_true, (-1,)), "int32"))

    def _weigh(self, values: Any, codes: Any) -> Any:
        if self.class_weights is None:
            return values
        weights = ops.convert_to_tensor(self.class_weights, dtype=values.dtype)
        return values * ops.take(weights, codes, axis=0)


class WarmCosine(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Rises evenly to a peak, and falls along a cosine to a part of it.

    Attributes:
        peak: The highest rate.
        warmup_steps: In how many steps it is reached.
        total_steps: Of the run; if not given, the rate stays at its peak.
        floor: What part of the peak remains at the end, and behind it.

    Example:
        >>> [round(float(WarmCosine(1.0, 2, 6)(step)), 3) for step in range(7)]
        [0.5, 1.0, 1.0, 0.855, 0.505, 0.155, 0.01]
    """

    def __init__(
        self, peak: float, warmup_steps: int = 0, total_steps: int | None = None, floor: float = 0.01
    ) -> None:
        super().__init__()
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.floor = floor

    def __call__(self, step: Any) -> Any:
        """Return the rate of a step, counted from 0."""
        place = ops.cast(step, "float32")
        # The first step is taken at a rate above 0.
        rising = ops.minimum((place + 1.0) / max(self.warmup_steps, 1), 1.0)
        if self.total_steps is None:
            return self.peak * rising
        span = max(self.total_steps - self.warmup_steps, 1)
        part = ops.clip((place - self.warmup_steps) / span, 0.0, 1.0)
        falling = self.floor + (1.0 - self.floor) * 0.5 * (1.0 + ops.cos(math.pi * part))
        return self.peak * rising * falling

    def get_config(self) -> dict[str, Any]:
        """Return what it was made with, as Keras asks of every schedule."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "floor": self.floor,
        }


OptimizerName: TypeAlias = Literal["adamw", "adam", "sgd", "rmsprop", "lion"]

_OPTIMIZERS: Final[Mapping[str, Callable[..., Any]]] = {
    "adamw": keras.optimizers.AdamW,
    "adam": keras.optimizers.Adam,
    "sgd": lambda **options: keras.optimizers.SGD(momentum=0.9, nesterov=True, **options),
    "rmsprop": keras.optimizers.RMSprop,
    "lion": keras.optimizers.Lion,
}
_DECAYING: Final = ("adamw", "lion")
# To pull shifts and scales towards 0 makes no model simpler.
_NOT_DECAYED: Final = ("bias", "gamma", "beta")


@dataclass(frozen=True, kw_only=True)
class CompilePlan:
    """How a model is compiled.

    Attributes:
        optimizer: Its name.
        learning_rate: The highest.
        weight_decay: What of each weight is taken off in a step, times the rate; not of biases and norms. Of
            "adamw" and "lion" alone.
        warmup_steps: In how many steps the rate is reached.
        total_steps: Of the run, over which the rate falls; it stays, if not given.
        clip: The norm beyond which the gradients of a step, all together, are shortened; 0 or None leaves
            them.
        class_weights: By target, a weight a class; of those that have any.
        loss_weights: By target; 1 where nothing is said.
    """

    optimizer: OptimizerName = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    warmup_steps: int = 0
    total_steps: int | None = None
    clip: float | None = 1.0
    class_weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    loss_weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(OptimizerName):
            expected = list_choices(get_args(OptimizerName))
            raise OptionError("optimizer", field="optimizer", expected=expected, got=show(self.optimizer))
        _check_number("learning_rate", self.learning_rate, above=True)
        _check_number("weight_decay", self.weight_decay)
        _check_count("warmup_steps", self.warmup_steps)
        if self.total_steps is not None:
            _check_count("total_steps", self.total_steps)
        _check_number("clip", self.clip or 0)
        for name, weights in self.class_weights.items():
            for i, weight in enumerate(weights):
                _check_number(f"class_weights[{name!r}][{i}]", weight)
        for name, weight in self.loss_weights.items():
            _check_number(f"loss_weights[{name!r}]", weight)


def compile_model(
    model: keras.Model,
    tasks: Mapping[str, Task],
    plan: CompilePlan,
    logits: Mapping[str, bool] | None = None,
) -> None:
    """Give a model its optimizer, a loss a target and the metrics of each task.

    Logs have `loss`, and of one target the metrics by their names; of several, `<target>_loss` and
    `<target>_<metric>`. Records that have weights count by them in losses and metrics.

    Args:
        model: The model.
        tasks: What it is to predict.
        plan: How.
        logits: By target, whether it gives logits; looked for, if not given.

    Raises:
        OptionError: The plan has weights for what is no target, or not one a class.
    """
    _check_targets(tasks, plan)
    found = find_logits(model, tasks) if logits is None else logits
    losses: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    for name, task in tasks.items():
        is_logits = bool(found.get(name, False))
        weights = plan.class_weights.get(name)
        losses[name] = TaskLoss(task, from_logits=is_logits, class_weights=weights)
        metrics[name] = make_metrics(task, from_logits=is_logits)
    shares = {name: float(plan.loss_weights.get(name, 1.0)) for name in tasks}
    is_single = len(tasks) == 1
    only = next(iter(tasks))
    model.compile(
        optimizer=make_optimizer(plan),
        loss=losses[only] if is_single else losses,
        loss_weights=shares[only] if is_single else shares,
        weighted_metrics=metrics[only] if is_single else metrics,
        # XLA where it is of use: "auto" compiles on JAX and on accelerators, not for TensorFlow on a CPU.
        jit_compile="auto",
    )


def make_optimizer(plan: CompilePlan) -> keras.optimizers.Optimizer:
    """Return a new optimizer with the learning rate of a plan."""
    rate = WarmCosine(plan.learning_rate, plan.warmup_steps, plan.total_steps)
    decay = plan.weight_decay if plan.optimizer in _DECAYING else 0.0
    optimizer = _OPTIMIZERS[plan.optimizer](
        learning_rate=rate, weight_decay=decay or None, global_clipnorm=plan.clip or None
    )
    if decay:
        optimizer.exclude_from_weight_decay(var_names=list(_NOT_DECAYED))
    return optimizer


def make_metrics(task: Task, *, from_logits: bool = False) -> list[keras.metrics.Metric]:
    """Return new metrics of a task, by short names."""
    kinds = keras.metrics
    if task.kind == "binary":
        # On logits 0 parts the classes.
        accuracy = kinds.BinaryAccuracy(name="accuracy", threshold=0.0 if from_logits else 0.5)
        return [accuracy, kinds.AUC(name="auc", from_logits=from_logits)]
    if task.kind == "multiclass":
        return [kinds.SparseCategoricalAccuracy(name="accuracy")]
    if task.kind == "multilabel":
        # Over all labels at once: a label that a small split lacks would count as 0 by itself.
        return [kinds.AUC(name="auc", from_logits=from_logits)]
    return [kinds.MeanAbsoluteError(name="mae"), kinds.RootMeanSquaredError(name="rmse")]


def _check_targets(tasks: Mapping[str, Task], plan: CompilePlan) -> None:
    for option, given in (("class_weights", plan.class_weights), ("loss_weights", plan.loss_weights)):
        for name in given:
            if name not in tasks:
                raise OptionError(
                    f"{option}[{name!r}]",
                    field=name,
                    expected=f"a target: {list_choices(tasks)}",
                    got=repr(name),
                )
    for name, weights in plan.class_weights.items():
        task = tasks[name]
        if task.kind not in ("binary", "multiclass"):
            expected = "a target with one class a record"
            raise OptionError(f"class_weights[{name!r}]", field=name, expected=expected, got=task.describe())
        if len(weights) != len(task.labels):
            expected = f"{len(task.labels)} weights, one a class"
            raise OptionError(f"class_weights[{name!r}]", field=name, expected=expected, got=len(weights))


def _check_number(option: str, value: object, *, above: bool = False) -> None:
    if not is_finite(value) or value < 0 or (above and value == 0):
        expected = "a number above 0" if above else "a number of at least 0"
        raise OptionError(option, field=option, expected=expected, got=show(value))


def _check_count(option: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionError(option, field=option, expected="a number of steps", got=show(value))
