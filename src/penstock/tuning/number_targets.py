"""Choose how numbers are learned: their scale and their loss, by short trials, compared on validation.

In: a data set, its fitted pipeline, options. Out: the pipeline and the losses to train with, and a record of
the trials for `run.yaml`. The choice depends on data, options and seed alone, so that a run which is killed
during the trials repeats them; a run that has started keeps its choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.model.task import Task, find_tasks
from penstock.schema.scalar import Number
from penstock.score.importance import find_parts
from penstock.score.score_text import format_score
from penstock.training.defaults import count_epochs, fill_in_defaults
from penstock.training.progress import Watcher
from penstock.training.run_facts import NumberChoice
from penstock.training.train_plan import TrainPlan
from penstock.transform.keep import Keep
from penstock.transform.number import Scale
from penstock.transform.pipeline import Pipeline, without_fields
from penstock.tuning.pipeline_fitter import PipelineFitter
from penstock.tuning.trial import MIN_VALIDATION, run_trial

MIN_SKEWNESS: Final = 1.0
"""Numbers of at least 0 that are at least this skewed are tried on a log scale. The skewness of an
exponential distribution is 2; prices and incomes often have more."""

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
learned more slowly, and errors of a skewed target on few records come from its largest numbers."""

_LEAST_STEPS: Final = 300  # of a trial, up to all epochs: with fewer nothing is learned
_LEAST_GAIN: Final = 0.01  # share by which a robust loss must lower the root mean squared error


Errors: TypeAlias = Mapping[str, float]
"""Root mean squared error `rmse` and mean absolute error `mae`, in the units of the data."""


def choose_numbers(
    plan: TrainPlan, fitter: PipelineFitter | None, watcher: Watcher
) -> tuple[TrainPlan, dict[str, NumberChoice]]:
    """Return the plan with the chosen scales and losses, and the choice for each target of numbers.

    Models are trained to choose unless the user gave the model; otherwise "auto" is the usual scale and loss.

    `fitter`: fits the pipeline again with settings of targets; None where the user gave the pipeline. The
    scale of a target whose transform the user gave is not chosen.
    """
    options, may_try = plan.options, plan.model is None
    names = [name for name, task in find_tasks(plan.pipeline).items() if _is_number(task, plan)]
    is_usual = {options.target_scale, options.number_loss} <= {"linear", "squared", "auto"} and not may_try
    if not names or is_usual:
        return plan, {}
    trials = _Trials(plan, watcher, can_try=may_try)
    best, choices = plan, dict.fromkeys(names, NumberChoice())
    for name in names:
        values = trials.read_truths(name)
        transform = plan.pipeline.transforms.get(name)
        choice = NumberChoice(scale="log" if _is_log(transform) else "linear")
        is_given = fitter is None or name in fitter.fields
        if is_given and options.target_scale == "log" and not _is_log(transform):
            raise OptionError(
                "target_scale",
                field=name,
                expected=f"'auto' or 'linear', as the transform of target {name!r} is given",
                got="'log'",
                advice=f"Leave it out, or give the target the transform {LOG_SCALE}.",
            )
        if fitter is not None and not is_given and isinstance(transform, Keep):
            scaled = {each: LOG_SCALE for each, found in choices.items() if found.scale == "log"}
            on_log = partial(fitter.fit, {**scaled, name: LOG_SCALE})
            best, choice = trials.choose_scale(name, values, best, choice, on_log)
        best, choices[name] = trials.choose_loss(name, values, best, choice)
    return best, choices


def describe_choice(name: str, choice: NumberChoice) -> str:
    """Return a note on a choice that is not the usual one; empty if it is."""
    words, options = [], []
    if choice.scale == "log":
        words.append("on a log scale")
        options.append("`target_scale='linear'`")
        if {"linear squared", "log squared"} <= choice.trials.keys():
            words.append("(skewed numbers are, unless RMSE × MAE of a short trial is a tenth higher)")
    if choice.loss == "huber":
        words.append("with a robust loss")
        options.append("`number_loss='squared'`")
        if {f"{choice.scale} squared", f"{choice.scale} huber"} <= choice.trials.keys():
            words.append(f"(the RMSE of a short trial was lower by {_LEAST_GAIN:.0%} or more)")
    if not words:
        return ""
    trials = "; ".join(
        f"{each}: RMSE {format_score(errors['rmse'])}, MAE {format_score(errors['mae'])}"
        for each, errors in choice.trials.items()
    )
    because = f" Trials on validation: {trials}." if trials else ""
    return f"Target {name!r} is learned {' '.join(words)}.{because} To change that: {', '.join(options)}."


class _Trials:
    """Short trainings with the plan, whose errors on the validation records are compared."""

    def __init__(self, plan: TrainPlan, watcher: Watcher, *, can_try: bool) -> None:
        self._plan = plan
        self._watcher = watcher
        self._options = plan.options
        self._loaders = plan.make_loaders()
        self._errors: dict[tuple[str, ...], Errors | None] = {}
        # Images take long, and the choice seldom depends on them: trials are made with the other inputs.
        parts = find_parts(plan.pipeline)
        self._left_out = parts.get("image", ())
        is_enough = self._loaders.num_validation >= MIN_VALIDATION
        self._can_try = can_try and is_enough and set(parts) != {"image"}

    def read_truths(self, name: str) -> NDArray[np.float64]:
        """Return the numbers of a target in the records to train on, in the units of the data."""
        task = find_tasks(self._plan.pipeline)[name]
        found = [np.asarray(targets[name], np.float64) for targets in self._loaders.read_targets()]
        return np.asarray(task.undo(np.concatenate(found)) if found else np.empty(0))

    def choose_scale(
        self,
        name: str,
        values: NDArray[np.float64],
        best: TrainPlan,
        choice: NumberChoice,
        fit: Callable[[], Pipeline],
    ) -> tuple[TrainPlan, NumberChoice]:
        """Return the log scale of a skewed target, unless validation shows that it is worse.

        Both kinds of errors count: the mean squared error alone depends on the few largest numbers.
        """
        wanted, other = self._options.target_scale, replace(choice, scale="log")
        if wanted == "log":
            return replace(best, pipeline=fit()), other
        if wanted == "linear" or not self._can_try or not _is_skewed(values):
            return best, choice
        return self._compare(
            name,
            (best, choice),
            (replace(best, pipeline=fit()), other),
            lambda first, second: (
                second["rmse"] * second["mae"] < _LOG_TOLERANCE * first["rmse"] * first["mae"]
            ),
        )

    def choose_loss(
        self, name: str, values: NDArray[np.float64], best: TrainPlan, choice: NumberChoice
    ) -> tuple[TrainPlan, NumberChoice]:
        """Return the loss with the lower mean squared error; where both are about as good, that error."""
        wanted, other = self._options.number_loss, replace(choice, loss="huber")
        robust = replace(best, losses={**best.losses, name: "huber"})
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
        usual: tuple[TrainPlan, NumberChoice],
        other: tuple[TrainPlan, NumberChoice],
        is_better: Callable[[Errors, Errors], bool],
    ) -> tuple[TrainPlan, NumberChoice]:
        """Return the other one, if its errors are better than the usual ones, or the usual trial failed."""
        labels = [f"{choice.scale} scale, {choice.loss} loss" for _, choice in (usual, other)]
        self._watcher.note(f"Target {name!r}: short trials on validation: {'; '.join(labels)}.")
        found = [self._try(name, plan) for plan, _ in (usual, other)]
        trials = dict(usual[1].trials)
        for (_, choice), errors in zip((usual, other), found, strict=True):
            if errors is not None:
                trials[f"{choice.scale} {choice.loss}"] = errors
        first, second = found
        is_chosen = second is not None and (first is None or is_better(first, second))
        plan, choice = other if is_chosen else usual
        return plan, replace(choice, trials=trials)

    def _try(self, name: str, plan: TrainPlan) -> Errors | None:
        """Return the errors on the validation records after a short training; None if it failed."""
        key = (name, plan.pipeline.fingerprint(), *(f"{each}" for each in sorted(plan.losses.items())))
        if key not in self._errors:
            self._errors[key] = self._measure(name, plan)
        return self._errors[key]

    def _measure(self, name: str, plan: TrainPlan) -> Errors | None:
        steps = max(1, self._loaders.train.num_steps(0))
        whole = count_epochs(fill_in_defaults(self._options, steps, is_validated=True))
        epochs = max(math.ceil(_TRIAL_SHARE * whole), math.ceil(_LEAST_STEPS / steps))
        shorter = replace(plan, pipeline=without_fields(plan.pipeline, self._left_out))
        trial = run_trial(shorter, min(whole, epochs))
        if trial is None:
            return None
        errors = trial.predictions[name] - trial.truths[name]
        rmse, mae = float(np.sqrt(np.mean(errors**2))), float(np.mean(np.abs(errors)))
        return {"rmse": float(f"{rmse:.6g}"), "mae": float(f"{mae:.6g}")}


def _is_number(task: Task, plan: TrainPlan) -> bool:
    field = plan.pipeline.schema[task.name]
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
