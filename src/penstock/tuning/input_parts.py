"""Choose the parts of the inputs that a model is trained on: table, text, image, sequence, tensor.

In: a plan with all inputs. Out: the plan without parts that make predictions worse, and a record of
the evidence for `run.yaml`. A part is doubtful if predictions of the model with all parts are no worse where
each record has that part of another record; only then, trainings with and without it are compared. The choice
depends on data, options and seed alone, so that a run which is killed before it repeats or continues it; a
run that has started keeps its choice.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.score.importance import find_parts
from penstock.settings.model import BACKBONES, ModelOptions
from penstock.settings.training import AUTO_PARTS
from penstock.training.defaults import count_epochs
from penstock.training.fit import Fit
from penstock.training.history import HISTORY_NAME
from penstock.training.loaders import TrainingLoaders
from penstock.training.progress import MemberWatcher, Watcher
from penstock.training.run_facts import PartChoice, PartTrial
from penstock.training.run_state import STATE_NAME
from penstock.training.run_writer import FOLDER_NAME
from penstock.training.train_plan import Chosen, TrainPlan
from penstock.transform.image import Image
from penstock.transform.pipeline import Pipeline, with_transforms, without_fields
from penstock.tuning.trial import MIN_VALIDATION, Trial, fit_and_predict, run_trial

MOST_RECORDS: Final = 8_000
"""Maximum number of records that a trial is trained on, so that trials take minutes on any data."""

MOST_IMAGES: Final = 4_000
"""Maximum number of images of the records that a trial is trained on."""

MOST_SIDE: Final = 64
"""Larger images are reduced to this height and width in trials: whether images carry anything shows then."""

MOST_PIXELS: Final = 200_000_000
"""Maximum number of pixels that a trial passes through the model while it trains; limits the epochs."""

LEAST_ERRORS: Final = 2.0
"""Standard errors by which predictions must be better without a part. The error is taken of the
mean difference of the losses of the same records: records that are difficult for both do not add to it."""

# Standard errors by which other values of a part must raise the loss; otherwise the part is doubtful. Random
# words that doubled the error raised it by more than one: the model had learned to depend on them.
_DOUBT_ERRORS: Final = 3.0
_COSTLY_DOUBT_ERRORS: Final = 1.0  # where the trial without the part has images, which takes long
_LEAST_EPOCHS: Final = 4
_DIGITS: Final = 5


class PartLosses(NamedTuple):
    """Losses of the validation records after a training with some parts.

    Attributes:
        losses: Loss of each record.
        exchanged: By part: loss of each record where it has that part of other records.
        scores: Main score of each target; higher is better.
    """

    losses: NDArray[np.float64]
    exchanged: Mapping[str, NDArray[np.float64]]
    scores: Mapping[str, float | None] = {}


TryParts: TypeAlias = Callable[[tuple[str, ...]], "PartLosses | None"]


class PartTuning(NamedTuple):
    """The plan with the parts to use, the choice for `run.yaml`, and the watcher of the run; see `Tuner`."""

    plan: TrainPlan
    choice: PartChoice
    watcher: Watcher


def choose_parts(plan: TrainPlan, folder: Path, watcher: Watcher, *, can_fit: bool) -> PartTuning | None:
    """Return the plan with the parts to use, and the choice; None if there is none to make.

    See `remove_parts`.
    """
    parts = find_parts(plan.pipeline)
    if len(parts) < 2 or plan.options.parts != AUTO_PARTS:
        return None
    trials = _Trials(plan, parts, folder, watcher, can_fit=can_fit)
    if trials.num_validation < MIN_VALIDATION:
        return None
    begun = time.monotonic()
    reasons = remove_parts(tuple(parts), trials.find_first, trials.try_parts, trials.costly)
    left_out = {part: parts[part] for part in reasons}
    used = tuple(part for part in parts if part not in reasons)
    choice = PartChoice(used, left_out, trials.found, trials.exchanged, reasons)
    names = [name for fields in left_out.values() for name in fields]
    is_fitted = trials.is_fitted and not left_out
    if trials.is_fitted and left_out:
        _discard_fit(folder)
    before = plan.chosen or Chosen()
    seconds = before.seconds + time.monotonic() - begun - trials.fit_seconds * is_fitted
    pipeline = without_fields(plan.pipeline, names, "predictions of validation are better without it")
    chosen = before._replace(parts=choice, seconds=max(0.0, seconds), is_fitted=is_fitted)
    tuned = replace(plan, pipeline=pipeline, chosen=chosen)
    return PartTuning(tuned, choice, trials.watcher if is_fitted else watcher)


def remove_parts(
    parts: tuple[str, ...],
    find_first: Callable[[], PartLosses | None],
    try_parts: TryParts,
    costly: Collection[str] = (),
) -> dict[str, str]:
    """Return the parts to leave out, and why.

    All parts are used unless there is evidence against one. A part is doubtful if predictions of a model with
    all parts are hardly worse with values of that part from other records. Then a training without the part
    is compared with one that has it, the most doubtful part first; the part is left out if the losses are
    lower without it by more than noise, and no main score is higher with it. One part is always left.

    `find_first`: returns the losses of a model with all parts; None if its training failed. `try_parts`:
    returns the losses of a trial with some parts, on the same records; None if it failed. `costly`: names of
    the parts that make a trial take long.

    Example:
        >>> better, worse = np.full(9, 0.4), np.full(9, 0.9)
        >>> first = PartLosses(better, {"table": worse, "image": better})
        >>> remove_parts(("table", "image"), lambda: first, lambda parts: first)  # equal losses
        {}
    """
    first = find_first()
    if first is None:
        return {}
    gains = {part: _find_errors(first.losses, losses) for part, losses in first.exchanged.items()}
    least = {
        part: _COSTLY_DOUBT_ERRORS if {*costly} - {part} else _DOUBT_ERRORS for part in gains
    }  # by the cost of the trial without the part
    doubtful = sorted((part for part in gains if gains[part] <= least[part]), key=lambda part: gains[part])
    used, reasons = parts, dict[str, str]()
    base = try_parts(parts) if doubtful else None
    for part in doubtful:
        fewer = tuple(each for each in used if each != part)
        without = try_parts(fewer) if fewer and base is not None else None
        if base is None or without is None:
            continue
        errors = _find_errors(without.losses, base.losses)
        if errors > LEAST_ERRORS and not _is_any_higher(base.scores, without.scores):
            before, after = _tell_apart(float(base.losses.mean()), float(without.losses.mean()))
            reasons[part] = (
                f"The validation loss is {before} with it and {after} without it, a difference of "
                f"{errors:.1f} standard errors on {len(base.losses)} records."
            )
            used, base = fewer, without
    return reasons


def _tell_apart(first: float, second: float) -> tuple[str, str]:
    """Return two numbers with three digits, or with as many as it takes to see which one is lower.

    Example:
        >>> _tell_apart(0.53161, 0.52004), _tell_apart(0.531624, 0.531617)
        (('0.532', '0.520'), ('0.531624', '0.531617'))
    """
    for digits in range(3, 17):
        texts = f"{first:#.{digits}g}", f"{second:#.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _find_errors(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Return the rise of the mean of paired losses in standard errors.

    Example:
        >>> round(_find_errors(np.array([1.0, 2.0, 3.0]), np.array([1.5, 3.0, 3.0])), 3)
        1.732
        >>> _find_errors(np.ones(3), np.ones(3))
        0.0
    """
    rises = after - before
    rise = float(rises.mean())
    error = float(rises.std(ddof=1)) / math.sqrt(len(rises)) if len(rises) > 1 else 0.0
    return rise / error if error else math.copysign(math.inf, rise) if rise else 0.0


def _is_any_higher(scores: Mapping[str, float | None], others: Mapping[str, float | None]) -> bool:
    """Return whether the score of any target is higher than the other one; scores without a value are not."""
    pairs = [(score, others.get(name)) for name, score in scores.items()]
    return any(score is not None and other is not None and score > other for score, other in pairs)


class _Trials:
    """Trainings with some parts of the inputs, all with the same records.

    The first one has all parts. Where nothing forbids it, it is the run itself up to its last checkpoint,
    from which the run continues if it keeps all parts.

    `can_fit`: whether nothing but the model forbids that the first one is the run itself.
    """

    def __init__(
        self,
        plan: TrainPlan,
        parts: Mapping[str, Sequence[str]],
        folder: Path,
        watcher: Watcher,
        *,
        can_fit: bool,
    ) -> None:
        self.found: dict[str, PartTrial] = {}
        self.exchanged: dict[str, float] = {}
        self.is_fitted = False
        self.fit_seconds = 0.0
        self.watcher = MemberWatcher(watcher)  # the run shows no note twice
        self._parts = parts
        self._folder = folder
        self._whole = plan
        # In this process, in one stage.
        self._can_fit = can_fit and (plan.model_options or ModelOptions()).image not in BACKBONES
        whole, loaders = plan.prepare()
        self.num_validation = loaders.num_validation
        pipeline = _reduce_images(plan)
        grids = _list_grids(pipeline)
        self.costly = [part for part in parts if _list_grids(pipeline, self._list_inputs(pipeline, (part,)))]
        most = min(MOST_RECORDS, MOST_IMAGES // len(grids)) if grids else MOST_RECORDS
        sample = min(1.0, max(most, 1) / max(1, loaders.num_train))
        # Trials pass over the same records many times; their number and the size of images are limited.
        options = plan.options.replace(cache="memory")
        self._shorter = replace(plan, pipeline=pipeline, options=options, sample=sample)
        is_reduced = pipeline.fingerprint() != plan.pipeline.fingerprint()
        is_shorter = self._choose_epochs(whole, loaders) < count_epochs(whole.options)
        self._is_whole = sample == 1 and not is_reduced and not is_shorter
        self._first: PartLosses | None = None

    def find_first(self) -> PartLosses | None:
        """Return the losses of a model with all parts: of the run itself, or of a trial."""
        if not self._can_fit:
            return self.try_parts(tuple(self._parts))
        inputs = {part: self._list_inputs(self._whole.pipeline, (part,)) for part in self._parts}
        try:
            trial = fit_and_predict(Fit(self._whole, self._folder, self.watcher), inputs)
        except Exception:
            _discard_fit(self._folder)  # the corrected call finds an unused folder
            raise
        self.is_fitted = trial is not None
        if trial is None:
            _discard_fit(self._folder)
            return None
        self.fit_seconds = trial.fit_seconds
        first = self._keep(tuple(self._parts), self._whole, trial)
        if self._is_whole:  # with the records, images and epochs of trials
            self._first = first
        return first

    def try_parts(self, chosen: tuple[str, ...]) -> PartLosses | None:
        """Return the losses of the validation records after a trial with some parts; None if it failed."""
        is_first = chosen == tuple(self._parts)
        if is_first and self._first is not None:
            return self._first
        dropped = [name for part, names in self._parts.items() if part not in chosen for name in names]
        pipeline = without_fields(self._shorter.pipeline, dropped)
        plan = replace(self._shorter, pipeline=pipeline)
        inputs = {part: self._list_inputs(pipeline, (part,)) for part in chosen} if is_first else {}
        without = ", ".join(part for part in self._parts if part not in chosen)
        self.watcher.note(
            f"Short trial on validation: {f'inputs without {without}' if without else 'all inputs'}."
        )
        trial = run_trial(plan, self._choose_epochs(*plan.prepare()), inputs)
        found = None if trial is None else self._keep(chosen, plan, trial)
        if is_first:
            self._first = found
        return found

    def _keep(self, chosen: tuple[str, ...], plan: TrainPlan, trial: Trial) -> PartLosses:
        """Record a trial; a later one with the same parts replaces an earlier one."""
        losses, exchanged = trial.find_losses(plan), trial.find_exchanged_losses(plan)
        scores = {name: None if each is None else _shorten(each) for name, each in trial.score().items()}
        self.found[" + ".join(chosen)] = PartTrial(_shorten(float(losses.mean())), scores)
        self.exchanged |= {part: _shorten(float(each.mean())) for part, each in exchanged.items()}
        return PartLosses(losses, exchanged, scores)

    def _choose_epochs(self, prepared: TrainPlan, loaders: TrainingLoaders) -> int:
        """Return the number of epochs of a trial: as in a run, limited by the pixels that it passes."""
        sides = [math.prod(shape[:2]) for shape in _list_grids(prepared.pipeline)]
        limit = max(_LEAST_EPOCHS, MOST_PIXELS // max(1, loaders.num_train * sum(sides)))
        most = count_epochs(prepared.options)
        return min(most, limit) if sides else most

    def _list_inputs(self, pipeline: Pipeline, parts: Sequence[str]) -> tuple[str, ...]:
        """Return the inputs of a model that are made of some parts."""
        dropped = [name for part, names in self._parts.items() if part not in parts for name in names]
        return tuple(without_fields(pipeline, dropped).inputs)


def _discard_fit(run: Path) -> None:
    """Remove the files of a training with all parts from the folder of the run."""
    for name in (STATE_NAME, HISTORY_NAME):  # first the file that names the checkpoints
        with suppress(FileNotFoundError):
            (run / name).unlink()
    for name in (FOLDER_NAME, "logs"):
        shutil.rmtree(run / name, ignore_errors=True)


def _reduce_images(plan: TrainPlan) -> Pipeline:
    """Return a pipeline whose images are at most as large as in trials.

    Models of `keras.applications` get images of the size that they will have: some refuse small ones.
    """
    pipeline, options = plan.pipeline, plan.model_options
    if options is not None and options.image != ModelOptions().image:
        return pipeline
    smaller = {}
    for name, each in pipeline.transforms.items():
        if isinstance(each, Image) and each.fitted is not None and max(each.fitted.size) > MOST_SIDE:
            height, width = (min(MOST_SIDE, side) for side in each.fitted.size)
            fitted = replace(each.fitted, size=(height, width))
            smaller[name] = replace(each, size=(height, width), fitted=fitted)
    return with_transforms(pipeline, smaller) if smaller else pipeline


def _list_grids(pipeline: Pipeline, names: Collection[str] | None = None) -> list[tuple[int, ...]]:
    """Return the shapes of images, and of tensors of several dimensions, which are encoded like images.

    `names`: names of the inputs to list; None lists all.
    """
    shapes = [output.shape for name, output in pipeline.inputs.items() if names is None or name in names]
    return [shape for shape in shapes if len(shape) > 1 and None not in shape]  # type: ignore[misc]


def _shorten(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
