"""Choose how numbers are learned: their scale and their loss, by short trials, compared on validation.

In: a data set, its fitted pipeline, options. Out: the pipeline and the losses to train with, and a record of
the trials for `run.yaml`. The choice depends on data, options and seed alone, so that a run which is killed
during the trials repeats them; a run that has started keeps its choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.jobs.train.trial import MIN_VALIDATION, run_trial
from penstock.model.task import Task, find_tasks
from penstock.schema.scalar import Number
from penstock.score.importance import find_parts
from penstock.training.progress import SilentWatcher
from penstock.training.train import Training
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.pipeline import Pipeline

MIN_SKEWNESS: Final = 1.0
"""Numbers of at least 0 that are at least this skewed are tried on a log scale. The skewness of an
exponential distribution is 2, that of prices and incomes often more."""

MAX_SKEWNESS_LEFT: Final = 0.5
"""Share of the skewness that may be left on a log scale: shares below 1 stay nearly as they are on it."""

MIN_KURTOSIS: Final = 3.0
"""Numbers with this excess kurtosis have heavy tails, and are tried with a robust loss; a Laplace
distribution has 3, a normal one 0."""

LOG_SCALE: Final[Mapping[str, str]] = {"kind": "scale", "method": "log1p"}

_TRIAL_SHARE: Final = 0.6
"""Share of the epochs of a trial. After a fifth, prices that are products of factors were predicted better on
the linear scale, and after all epochs on the log scale."""

_LOG_TOLERANCE: Final = 1.1
"""The log scale is taken while the product of its errors is below this multiple of the other one: it is
learned more slowly, and errors of a skewed target on few records are those of its largest numbers."""

_LEAST_STEPS: Final = 300  # of a trial, up to all epochs: with fewer nothing is learned
_LEAST_GAIN: Final = 0.01  # share by which a robust loss must lower the root mean squared error


@dataclass(frozen=True)
class NumberChoice:
    """How a target of numbers is learned.

    Attributes:
        scale: "linear" or "log".
        loss: "squared" or "huber".
        trials: Errors on validation in each trial, `rmse` and `mae`, by scale and loss; empty if there was
            none.
    """

    scale: str = "linear"
    loss: str = "squared"
    trials: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        trials = {name: dict(errors) for name, errors in self.trials.items()}
        return {"scale": self.scale, "loss": self.loss, "trials": trials}


class Fitting(NamedTuple):
    """A pipeline, and the losses that are not the usual ones, by target."""

    pipeline: Pipeline
    losses: Mapping[str, str]


Errors: TypeAlias = Mapping[str, float]
"""Root mean squared error `rmse` and mean absolute error `mae`, in the units of the data."""

FitPipeline: TypeAlias = Callable[[Mapping[str, Any]], Pipeline]
"""Fits a pipeline, with settings for some targets."""


def choose_numbers(
    training: Training, fit: FitPipeline, *, given: Collection[str], may_try: bool
) -> tuple[Training, dict[str, NumberChoice]]:
    """Return the training with the chosen scales and losses, and the choice for each target of numbers.

    Args:
        training: The training before the choice.
        fit: Fits the pipeline again with settings of targets.
        given: Targets whose transform the user gave, so that their scale is not chosen.
        may_try: Whether models may be trained to choose; otherwise "auto" is the usual scale and loss.

    Raises:
        OptionError: A log scale is requested for a target with another transform that the user gave.
    """
    options = training.options
    names = [name for name, task in find_tasks(training.pipeline).items() if _is_number(task, training)]
    is_usual = {options.target_scale, options.number_loss} <= {"linear", "squared", "auto"} and not may_try
    if not names or is_usual:
        return training, {}
    trials = _Trials(training, can_try=may_try)
    best, choices = Fitting(training.pipeline, {}), dict.fromkeys(names, NumberChoice())
    for name in names:
        values = trials.read_truths(name)
        transform = training.pipeline.transforms.get(name)
        choice = NumberChoice(scale="log" if _is_log(transform) else "linear")
        if name in given and options.target_scale == "log" and not _is_log(transform):
            raise OptionError(
                "target_scale",
                field=name,
                expected=f"'auto' or 'linear', as the transform of target {name!r} is given",
                got="'log'",
                advice=f"Leave it out, or give the target the transform {LOG_SCALE}.",
            )
        if name not in given and isinstance(transform, Keep):
            scaled = {each: LOG_SCALE for each, found in choices.items() if found.scale == "log"}
            on_log = partial(fit, {**scaled, name: LOG_SCALE})
            best, choice = trials.choose_scale(name, values, best, choice, on_log)
        best, choices[name] = trials.choose_loss(name, values, best, choice)
    return replace(training, pipeline=best.pipeline, losses=best.losses), choices


def describe_choice(name: str, choice: NumberChoice) -> str:
    """Return a note on a choice that is not the usual one; empty if it is."""
    words, flags = [], []
    if choice.scale == "log":
        words.append("on a log scale")
        flags.append("--target-scale linear")
    if choice.loss == "huber":
        words.append("with a robust loss")
        flags.append("--number-loss squared")
    if not words:
        return ""
    trials = "; ".join(
        f"{each}: rmse {errors['rmse']:.4g}, mae {errors['mae']:.4g}"
        for each, errors in choice.trials.items()
    )
    because = f", chosen by short trials on validation ({trials})" if trials else ""
    return f"Target {name!r} is learned {' '.join(words)}{because}. To change that: {' '.join(flags)}."


class _Trials:
    """Short trainings, whose errors on the validation records are compared.

    Args:
        training: The training without the choices.
        can_try: Whether models may be trained.
    """

    def __init__(self, training: Training, *, can_try: bool) -> None:
        self._training = replace(training, watcher=SilentWatcher(), callbacks=(), choose=None)
        self._watcher = training.watcher
        self._options = training.options
        self._loaders = self._training.make_loaders()
        self._errors: dict[tuple[str, ...], Errors | None] = {}
        # Images take long, and the choice seldom depends on them: trials are made with the other inputs.
        parts = find_parts(training.pipeline)
        self._left_out = parts.get("image", ())
        is_enough = self._loaders.num_validation >= MIN_VALIDATION
        self._can_try = can_try and is_enough and set(parts) != {"image"}

    def read_truths(self, name: str) -> NDArray[np.float64]:
        """Return the numbers of a target in the records to train on, in the units of the data."""
        task = find_tasks(self._training.pipeline)[name]
        found = [np.asarray(targets[name], np.float64) for targets in self._loaders.read_targets()]
        return np.asarray(task.undo(np.concatenate(found)) if found else np.empty(0))

    def choose_scale(
        self,
        name: str,
        values: NDArray[np.float64],
        best: Fitting,
        choice: NumberChoice,
        fit: Callable[[], Pipeline],
    ) -> tuple[Fitting, NumberChoice]:
        """Return the log scale of a skewed target, unless validation shows that it is worse.

        Both kinds of errors count: the mean squared error alone depends on the few largest numbers.
        """
        wanted, other = self._options.target_scale, replace(choice, scale="log")
        if wanted == "log":
            return Fitting(fit(), best.losses), other
        if wanted == "linear" or not self._can_try or not _is_skewed(values):
            return best, choice
        return self._compare(
            name,
            (best, choice),
            (Fitting(fit(), best.losses), other),
            lambda first, second: (
                second["rmse"] * second["mae"] < _LOG_TOLERANCE * first["rmse"] * first["mae"]
            ),
        )

    def choose_loss(
        self, name: str, values: NDArray[np.float64], best: Fitting, choice: NumberChoice
    ) -> tuple[Fitting, NumberChoice]:
        """Return the loss with the lower mean squared error; where both are about as good, that error."""
        wanted, other = self._options.number_loss, replace(choice, loss="huber")
        robust = Fitting(best.pipeline, {**best.losses, name: "huber"})
        if wanted == "huber":
            return robust, other
        numbers = np.log1p(values) if choice.scale == "log" else values
        if wanted == "squared" or not self._can_try or not _has_heavy_tails(numbers):
            return best, choice
        return self._compare(
            name,
            (best, choice),
            (robust, other),
            lambda first, second: second["rmse"] < (1 - _LEAST_GAIN) * first["rmse"],
        )

    def _compare(
        self,
        name: str,
        usual: tuple[Fitting, NumberChoice],
        other: tuple[Fitting, NumberChoice],
        is_better: Callable[[Errors, Errors], bool],
    ) -> tuple[Fitting, NumberChoice]:
        """Return the other one, if its errors are better than the usual ones, or the usual trial failed."""
        labels = [f"{choice.scale} scale, {choice.loss} loss" for _, choice in (usual, other)]
        self._watcher.note(f"Target {name!r}: short trials on validation: {'; '.join(labels)}.")
        found = [self._try(name, fitting) for fitting, _ in (usual, other)]
        trials = dict(usual[1].trials)
        for (_, choice), errors in zip((usual, other), found, strict=True):
            if errors is not None:
                trials[f"{choice.scale} {choice.loss}"] = errors
        first, second = found
        is_chosen = second is not None and (first is None or is_better(first, second))
        fitting, choice = other if is_chosen else usual
        return fitting, replace(choice, trials=trials)

    def _try(self, name: str, fitting: Fitting) -> Errors | None:
        """Return the errors on the validation records after a short training; None if it failed."""
        key = (name, fitting.pipeline.fingerprint(), *(f"{each}" for each in sorted(fitting.losses.items())))
        if key not in self._errors:
            self._errors[key] = self._measure(name, fitting)
        return self._errors[key]

    def _measure(self, name: str, fitting: Fitting) -> Errors | None:
        steps = max(1, self._loaders.train.num_steps(0))
        whole = self._options.resolved(steps, is_validated=True).num_epochs
        epochs = max(math.ceil(_TRIAL_SHARE * whole), math.ceil(_LEAST_STEPS / steps))
        pipeline = fitting.pipeline.without_fields(self._left_out)
        training = replace(self._training, pipeline=pipeline, losses=fitting.losses)
        trial = run_trial(training, min(whole, epochs))
        if trial is None:
            return None
        errors = trial.predictions[name] - trial.truths[name]
        rmse, mae = float(np.sqrt(np.mean(errors**2))), float(np.mean(np.abs(errors)))
        return {"rmse": float(f"{rmse:.6g}"), "mae": float(f"{mae:.6g}")}


def _is_number(task: Task, training: Training) -> bool:
    field = training.pipeline.schema[task.name]
    return task.kind == "regression" and not task.shape and isinstance(field, Number)


def _is_log(transform: object) -> bool:
    return isinstance(transform, Scale) and transform.method == LOG_SCALE["method"]


def _is_skewed(values: NDArray[np.float64]) -> bool:
    if not len(values) or values.min() < 0:
        return False
    skewness = _find_moment(values, 3)
    return skewness >= MIN_SKEWNESS and abs(_find_moment(np.log1p(values), 3)) <= MAX_SKEWNESS_LEFT * skewness


def _has_heavy_tails(values: NDArray[np.float64]) -> bool:
    return bool(len(values)) and _find_moment(values, 4) - 3 >= MIN_KURTOSIS


def _find_moment(values: NDArray[np.float64], power: int) -> float:
    """Return a standardized moment; 0 if all numbers are equal."""
    centered = values - values.mean()
    deviation = float(np.sqrt(np.mean(centered**2)))
    return float(np.mean((centered / deviation) ** power)) if deviation > 0 else 0.0
