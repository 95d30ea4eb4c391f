"""Compile a model: losses with class weights, metrics, optimizer and learning rate schedule.

In: a model, its tasks, a `CompilePlan`. Out: the model, compiled.
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
from penstock.model.logits import find_logits
from penstock.model.task import Task
from penstock.schema.date import DAY
from penstock.settings.training import TrainOptions
from penstock.training.members import MOST_PARTS_WEIGHT, PART_WEIGHT, MeanMetric, WrappedMetric


class TaskLoss(keras.losses.Loss):  # type: ignore[misc]
    """Loss of a target.

    Cross-entropy for classes; for numbers the squared error in units of their standard deviation, so that the
    losses of several targets have a similar size. Returns one number per record.

    Attributes:
        task: Task of the target.
        from_logits: Whether outputs are logits.
        class_weights: Weight of the records of each class, by code; None weights all classes alike.
        num_members: Number of members of an ensemble, which are an axis of the outputs; 0 without that axis.
            The value of the loss is the loss of their mean prediction; its gradient is the gradient of the
            mean of their losses, and of the weighted losses of further outputs on that axis.
        is_robust: Whether errors of numbers beyond one standard deviation count linearly, as in Huber's loss.
    """

    def __init__(
        self,
        task: Task,
        *,
        from_logits: bool = False,
        class_weights: tuple[float, ...] | None = None,
        num_members: int = 0,
        is_robust: bool = False,
    ) -> None:
        super().__init__(name=f"{task.kind}_loss")
        self.task = task
        self.from_logits = from_logits
        self.class_weights = class_weights
        self.num_members = num_members
        self.is_robust = is_robust

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each record."""
        if not self.num_members:
            return self._lose(y_true, y_pred)
        num_outputs = y_pred.shape[1]
        num_values = 1 if self.task.kind == "multiclass" else self.task.units  # of the target of a record
        expected = ops.reshape(y_true, (-1, 1, num_values))
        each = self._lose(
            ops.repeat(expected, num_outputs, axis=1), ops.reshape(y_pred, (-1, self.task.units))
        )
        each = ops.reshape(each, (-1, num_outputs))
        loss = ops.mean(each[:, : self.num_members], axis=-1)
        num_parts = num_outputs - self.num_members
        if num_parts:
            weight = min(PART_WEIGHT, MOST_PARTS_WEIGHT / num_parts)
            loss += weight * ops.sum(each[:, self.num_members :], axis=-1)
        together = self._lose(y_true, ops.mean(y_pred[:, : self.num_members], axis=1))
        return loss + ops.stop_gradient(together - loss)

    def _lose(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each row of predictions."""
        task = self.task
        if task.kind == "multiclass":
            codes = ops.cast(ops.reshape(y_true, (-1,)), "int32")
            values = ops.sparse_categorical_crossentropy(codes, y_pred, from_logits=self.from_logits)
            return self._weigh(values, codes)
        # Both as (n, k): for two vectors Keras would return the mean over the batch, not one loss per record.
        expected = ops.reshape(y_true, (-1, task.units))
        predicted = ops.reshape(y_pred, (-1, task.units))
        if task.kind == "regression":
            errors = (predicted - expected) / (task.deviation or 1.0)
            squares = ops.square(errors)
            if self.is_robust:
                # The tangent of the square at 1: value and slope continue there.
                sizes = ops.abs(errors)
                squares = ops.where(sizes <= 1, squares, 2 * sizes - 1)
            return ops.mean(squares, axis=-1)
        values = ops.mean(ops.binary_crossentropy(expected, predicted, from_logits=self.from_logits), axis=-1)
        if task.kind == "multilabel":
            return values
        return self._weigh(values, ops.cast(ops.reshape(y_true, (-1,)), "int32"))

    def _weigh(self, values: Any, codes: Any) -> Any:
        if self.class_weights is None:
            return values
        weights = ops.convert_to_tensor(self.class_weights, dtype=values.dtype)
        return values * ops.take(weights, codes, axis=0)


class MetricInDays(WrappedMetric):
    """An error of dates in days; `days` are the days of one unit of the dates in a batch."""

    def __init__(self, metric: keras.metrics.Metric, days: float) -> None:
        super().__init__(metric)
        self.days = days

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add the records of a batch."""
        self.metric.update_state(y_true * self.days, y_pred * self.days, sample_weight)


class WarmupCosine(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Learning rate that rises linearly to a peak, and then falls along a cosine.

    Attributes:
        peak: Highest learning rate.
        warmup_steps: Number of steps until the peak.
        total_steps: Number of steps of the run; None keeps the rate at its peak.
        floor: Learning rate at the end of the run and after it, as a share of the peak.

    Example:
        >>> [round(float(WarmupCosine(1.0, 2, 6)(step)), 3) for step in range(7)]
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
        """Return the learning rate of a step, counted from 0."""
        number = ops.cast(step, "float32")
        # The first step has a rate above 0.
        rising = ops.minimum((number + 1.0) / max(self.warmup_steps, 1), 1.0)
        if self.total_steps is None:
            return self.peak * rising
        span = max(self.total_steps - self.warmup_steps, 1)
        part = ops.clip((number - self.warmup_steps) / span, 0.0, 1.0)
        falling = self.floor + (1.0 - self.floor) * 0.5 * (1.0 + ops.cos(math.pi * part))
        return self.peak * rising * falling

    def get_config(self) -> dict[str, float | None]:
        """Return the constructor's arguments, which Keras requires of every schedule."""
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
_FLOORS: Final = {"cosine": 0.01, "one_cycle": 0.001}  # last learning rates, as shares of the highest
_AVERAGES: Final = 10  # lengths of the average of weights in a run, at least
_DECAYING: Final = ("adamw", "lion")
# Decay of shifts and scales does not regularize a model.
_NOT_DECAYED: Final = ("bias", "gamma", "beta")


@dataclass(frozen=True, kw_only=True)
class CompilePlan:
    """Options for compiling a model.

    Attributes:
        optimizer: Name of the optimizer.
        learning_rate: Highest learning rate.
        weight_decay: Weight decay per step, times the learning rate, except for biases and normalization
            layers. Only used by "adamw" and "lion".
        warmup_steps: Number of steps in which the learning rate rises.
        total_steps: Number of steps of the run, over which the learning rate falls; None keeps it constant.
        floor: Learning rate at the end of the run, as a share of the highest.
        clip: Maximum global norm of the gradients of a step; 0 or None does not clip.
        averaging: Momentum of the moving average of the weights; 0 does not average.
        class_weights: One weight per class, by target, for targets that have class weights.
        loss_weights: Weight of the loss of each target; 1 by default.
        robust: Names of targets of numbers with Huber's loss instead of the squared error.
    """

    optimizer: OptimizerName = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    warmup_steps: int = 0
    total_steps: int | None = None
    floor: float = 0.01
    clip: float | None = 1.0
    averaging: float = 0.0
    class_weights: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    loss_weights: Mapping[str, float] = field(default_factory=dict)
    robust: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(OptimizerName):
            expected = list_choices(get_args(OptimizerName))
            raise OptionError("optimizer", field="optimizer", expected=expected, got=show(self.optimizer))
        _check_number("learning_rate", self.learning_rate, above=True)
        _check_number("weight_decay", self.weight_decay)
        _check_count("warmup_steps", self.warmup_steps)
        if self.total_steps is not None:
            _check_count("total_steps", self.total_steps)
        _check_number("floor", self.floor)
        _check_number("clip", self.clip or 0)
        _check_number("averaging", self.averaging)
        for name, weights in self.class_weights.items():
            for i, weight in enumerate(weights):
                _check_number(f"class_weights[{name!r}][{i}]", weight)
        for name, weight in self.loss_weights.items():
            _check_number(f"loss_weights[{name!r}]", weight)


def plan_compilation(options: TrainOptions, num_steps: int) -> CompilePlan:
    """Return how to compile a model for a run of so many steps; options must be resolved."""
    # The average begins with the weights of the first step, which would be most of it in a short run.
    averaging = min(options.averaging or 0.0, max(0.0, 1 - _AVERAGES / max(1, num_steps)))
    return CompilePlan(
        optimizer=options.optimizer,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay or 0.0,
        warmup_steps=round(num_steps * (options.warmup or 0.0)),
        total_steps=None if options.schedule == "constant" else num_steps,
        floor=_FLOORS.get(options.schedule or "", 0.0) if options.final_rate is None else options.final_rate,
        averaging=averaging,
        clip=options.clip,
        loss_weights=options.loss_weights,
    )


def compile_model(
    model: keras.Model,
    tasks: Mapping[str, Task],
    plan: CompilePlan,
    logits: Mapping[str, bool] | None = None,
    members: Mapping[str, int] | None = None,
) -> None:
    """Compile a model with an optimizer, one loss per target, and the metrics of each task.

    The logs contain `loss`, and for a single target its metrics by name; for several targets,
    `<target>_loss` and `<target>_<metric>`. Weights of records apply to losses and metrics.

    `logits`: whether the model returns logits, by target; found out from the model if not given. `members`:
    number of members of an ensemble by target, if outputs have an axis of members; see `members.py`.
    """
    _check_targets(tasks, plan)
    found = find_logits(model, tasks) if logits is None else logits
    losses: dict[str, TaskLoss] = {}
    metrics: dict[str, list[keras.metrics.Metric]] = {}
    for name, task in tasks.items():
        is_logits = bool(found.get(name, False))
        weights, num_members = plan.class_weights.get(name), (members or {}).get(name, 0)
        losses[name] = TaskLoss(
            task,
            from_logits=is_logits,
            class_weights=weights,
            num_members=num_members,
            is_robust=name in plan.robust,
        )
        metrics[name] = make_metrics(task, from_logits=is_logits)
        if num_members:
            metrics[name] = [MeanMetric(each, num_members) for each in metrics[name]]
    shares = {name: float(plan.loss_weights.get(name, 1.0)) for name in tasks}
    is_single = len(tasks) == 1
    only = next(iter(tasks))
    model.compile(
        optimizer=make_optimizer(plan),
        loss=losses[only] if is_single else losses,
        loss_weights=shares[only] if is_single else shares,
        weighted_metrics=metrics[only] if is_single else metrics,
        # XLA where it helps: "auto" compiles on JAX and on accelerators, not for TensorFlow on a CPU.
        jit_compile="auto",
    )


def make_optimizer(plan: CompilePlan) -> keras.optimizers.Optimizer:
    """Return a new optimizer with the learning rate schedule of a plan."""
    rate = WarmupCosine(plan.learning_rate, plan.warmup_steps, plan.total_steps, plan.floor)
    decay = plan.weight_decay if plan.optimizer in _DECAYING else 0.0
    optimizer = _OPTIMIZERS[plan.optimizer](
        learning_rate=rate,
        weight_decay=decay or None,
        global_clipnorm=plan.clip or None,
        use_ema=bool(plan.averaging),
        ema_momentum=plan.averaging,
    )
    if decay:
        optimizer.exclude_from_weight_decay(var_names=list(_NOT_DECAYED))
    return optimizer


def make_metrics(task: Task, *, from_logits: bool = False) -> list[keras.metrics.Metric]:
    """Return new metrics for a task, with short names."""
    kinds = keras.metrics
    if task.kind == "binary":
        # A logit of 0 is a probability of 0.5.
        accuracy = kinds.BinaryAccuracy(name="accuracy", threshold=0.0 if from_logits else 0.5)
        return [accuracy, kinds.AUC(name="auc", from_logits=from_logits)]
    if task.kind == "multiclass":
        return [kinds.SparseCategoricalAccuracy(name="accuracy")]
    if task.kind == "multilabel":
        # Over all labels at once: a label that a small split lacks would have a score of 0.
        return [kinds.AUC(name="auc", from_logits=from_logits)]
    errors = [kinds.MeanAbsoluteError(name="mae"), kinds.RootMeanSquaredError(name="rmse")]
    return errors if task.unit is None else [MetricInDays(each, _find_days(task)) for each in errors]


def _find_days(task: Task) -> float:
    """Return the days of one unit of a date in a batch; on the log scale, units have no length."""
    if task.method == "log1p":
        return 1.0
    length = 1.0 if task.method == "none" else 1 / task.factor
    return length / DAY if task.unit == "microseconds" else length


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
            expected = "a target with one class per record"
            raise OptionError(f"class_weights[{name!r}]", field=name, expected=expected, got=task.describe())
        if len(weights) != len(task.labels):
            expected = f"{len(task.labels)} weights, one per class"
            raise OptionError(f"class_weights[{name!r}]", field=name, expected=expected, got=len(weights))


def _check_number(option: str, value: object, *, above: bool = False) -> None:
    if not is_finite(value) or value < 0 or (above and value == 0):
        expected = "a number above 0" if above else "a number of at least 0"
        raise OptionError(option, field=option, expected=expected, got=show(value))


def _check_count(option: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionError(option, field=option, expected="a whole number of at least 0", got=show(value))
