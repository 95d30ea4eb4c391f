"""Choose the parts of the inputs that a model is trained on: table, text, image, sequence, tensor.

In: a training with all inputs. Out: the training without parts that do not lower the validation loss, and a
record of the trials for `run.yaml`. The choice depends on data, options and seed alone, so that a run which
is killed during the trials repeats them; a run that has started keeps its choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import list_choices
from penstock.jobs.train.trial import MIN_VALIDATION, run_trial
from penstock.model.options import ModelOptions
from penstock.score.importance import find_parts
from penstock.training.options import ALL_PARTS, AUTO_PARTS
from penstock.training.progress import SilentWatcher
from penstock.training.train import Training
from penstock.transform.image import Image
from penstock.transform.pipeline import Pipeline

MOST_RECORDS: Final = 8_000
"""Maximum number of records that a trial is trained on, so that trials take minutes on any data."""

MOST_IMAGES: Final = 4_000
"""Maximum number of images of the records that a trial is trained on."""

MOST_SIDE: Final = 64
"""Larger images are reduced to this height and width in trials: whether images carry anything shows then."""

MOST_PIXELS: Final = 200_000_000
"""Maximum number of pixels that a trial passes through the model while it trains; limits the epochs."""

LEAST_ERRORS: Final = 0.5
"""Standard errors by which a part must lower the validation loss of the parts before it."""

LEAST_SHARE: Final = 0.01
"""Share of that loss by which a part must lower it: a text of random words once lowered it by 0.6 %, as other
inputs begin with other random weights."""

_TRIAL_SHARE: Final = 0.6  # of the epochs, without images
_MOST_IMAGE_EPOCHS: Final = 40  # of a trial with images, which needs many: a network learns little at first
_LEAST_EPOCHS: Final = 4
_LEAST_STEPS: Final = 300  # of a trial, up to all epochs: with fewer nothing is learned
_DIGITS: Final = 5


@dataclass(frozen=True)
class PartTrial:
    """What a trial with some parts found.

    Attributes:
        loss: Mean loss of the validation records.
        scores: Main score of each target on these records: AUC, accuracy or R².
    """

    loss: float
    scores: Mapping[str, float | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"loss": self.loss, "scores": dict(self.scores)}


@dataclass(frozen=True)
class PartChoice:
    """Which parts of the inputs are used.

    Attributes:
        used: Names of the parts that are used.
        left_out: Fields of the parts that are left out, by part.
        trials: Trials by the names of their parts, joined by " + "; empty if there was none.
    """

    used: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trials: Mapping[str, PartTrial] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "used": list(self.used),
            "left_out": {part: list(fields) for part, fields in self.left_out.items()},
            "trials": {name: each.to_json() for name, each in self.trials.items()},
        }

    def describe(self) -> str:
        """Return a note on the parts that are left out; empty if all are used."""
        if not self.left_out:
            return ""
        parts = [f"{part} ({', '.join(fields)})" for part, fields in self.left_out.items()]
        losses = "; ".join(f"{name}: {each.loss:.4g}" for name, each in self.trials.items())
        because = f": short trials had no lower validation loss with it ({losses})" if losses else ""
        return (
            f"Not used as input: {', '.join(parts)}{because}. To use all inputs: --parts all, in Python "
            "parts='all'."
        )


FindLosses: TypeAlias = Callable[[tuple[str, ...]], "NDArray[np.float64] | None"]


def select_parts(pipeline: Pipeline, wanted: str | Sequence[str]) -> Pipeline:
    """Return the pipeline with the parts that an option names; unchanged if it names none.

    Raises:
        OptionError: The inputs have no such part.
    """
    if wanted in (AUTO_PARTS, ALL_PARTS):
        return pipeline
    parts = find_parts(pipeline)
    for part in wanted:
        if part not in parts:
            expected = f"parts of the inputs: {list_choices(parts)}"
            advice = "Name some of these, or leave the option out to use those that help."
            raise OptionError("parts", field="parts", expected=expected, got=repr(part), advice=advice)
    names = [name for part, fields in parts.items() if part not in wanted for name in fields]
    return pipeline.without_fields(names, "it was left out")


def choose_parts(training: Training) -> tuple[Training, PartChoice | None]:
    """Return the training with the parts that trials prefer, and the choice; None if there is none to make.

    See `add_parts`.
    """
    parts = find_parts(training.pipeline)
    if len(parts) < 2 or training.options.parts != AUTO_PARTS:
        return training, None
    trials = _Trials(training, parts)
    if trials.num_validation < MIN_VALIDATION:
        return training, None
    training.watcher.note(
        f"Inputs are of {len(parts)} kinds, {', '.join(parts)}: short trials on validation decide which "
        "are used."
    )
    used = add_parts(tuple(parts), trials.find_losses, trials.costly, is_sample=trials.is_sample)
    ordered = tuple(part for part in parts if part in used)
    left_out = {part: fields for part, fields in parts.items() if part not in used}
    choice = PartChoice(ordered, left_out, trials.found)
    names = [name for fields in left_out.values() for name in fields]
    reason = "it does not lower the validation loss"
    return replace(training, pipeline=training.pipeline.without_fields(names, reason)), choice


def add_parts(
    parts: Sequence[str], find_losses: FindLosses, costly: Collection[str] = (), *, is_sample: bool = False
) -> list[str]:
    """Return the parts to use.

    Each part is tried alone, except those whose trials take long. The others are added to the best one, in
    the order of their losses, and each is kept if it lowers the loss. Parts whose trials take long come last:
    one trial has them with the parts kept so far, and if they are kept, one has them alone. The other parts
    are then left out if they do not lower the loss of that one.

    Args:
        parts: Names of the parts.
        find_losses: Returns the loss of each validation record for a tuple of parts; None if their trial
            failed.
        costly: Names of the parts whose trials take long.
        is_sample: Whether trials are trained on a sample of the records. A part contributes more when there
            are more records to learn it from, so that a small share of the loss is enough then.
    """
    cheap = [part for part in parts if part not in costly] or list(parts)
    alone = {part: losses for part in cheap if (losses := find_losses((part,))) is not None}
    if not alone:
        return list(parts)
    order = sorted(alone, key=lambda part: float(alone[part].mean()))
    used, losses = [order[0]], alone[order[0]]
    for part in [*order[1:], *(part for part in parts if part not in alone)]:
        together = find_losses(tuple(each for each in parts if each in (*used, part)))
        if together is not None and is_lower(losses, together, is_sample=is_sample):
            used, losses = [*used, part], together
    last = tuple(part for part in parts if part in used and part not in cheap)
    if last:
        without = find_losses(last)
        if without is not None and not is_lower(without, losses, is_sample=is_sample):
            return list(last)
    return used


def is_lower(before: NDArray[np.float64], after: NDArray[np.float64], *, is_sample: bool = False) -> bool:
    """Whether the mean of paired losses fell by more than chance.

    Example:
        >>> is_lower(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 3.0]))
        True
        >>> is_lower(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.5, 2.9]))
        False
    """
    gains = before - after
    gain = float(gains.mean())
    error = float(gains.std(ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    least = 0.0 if is_sample else LEAST_SHARE * float(before.mean())
    return gain > LEAST_ERRORS * error and gain > least


class _Trials:
    """Short trainings with some parts of the inputs, all with the same records.

    Args:
        training: The training with all parts.
        parts: Fields of each part.
    """

    def __init__(self, training: Training, parts: Mapping[str, Sequence[str]]) -> None:
        self.found: dict[str, PartTrial] = {}
        self._parts = parts
        training = replace(training, watcher=SilentWatcher())  # the run itself shows the notes of loaders
        loaders = training.make_loaders()
        self.num_validation = loaders.num_validation
        num_records = loaders.num_train
        pipeline = _reduce_images(training)
        num_grids = len(_list_grids(pipeline))
        self.costly = [part for part, names in parts.items() if _has_grids(pipeline, names)]
        most = min(MOST_RECORDS, MOST_IMAGES // num_grids) if num_grids else MOST_RECORDS
        sample = min(1.0, max(most, 1) / max(1, num_records))
        self.is_sample = sample < 1
        # Trials pass over the same records many times; their number and the size of images are limited.
        options = replace(training.options, cache="memory")
        self._training = replace(training, pipeline=pipeline, options=options, sample=sample)
        self._num_records = round(num_records * sample)

    def _choose_epochs(self, pipeline: Pipeline) -> int:
        """Return the number of epochs of a trial with the inputs of a pipeline."""
        options, num_records = self._training.options, self._num_records
        grids = [math.prod(shape[:2]) for shape in _list_grids(pipeline)]
        batch_size = options.choose_batch_size(num_records, has_images=bool(grids))
        steps = max(1, math.ceil(num_records / batch_size))
        num_images = len(grids) * num_records
        whole = options.resolved(steps, is_validated=True, images_per_epoch=num_images).num_epochs
        if pixels := sum(grids) * num_records:
            return min(whole, _MOST_IMAGE_EPOCHS, max(_LEAST_EPOCHS, int(MOST_PIXELS / pixels)))
        return min(whole, max(math.ceil(_TRIAL_SHARE * whole), math.ceil(_LEAST_STEPS / steps)))

    def find_losses(self, chosen: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the loss of each validation record after a training with some parts; None if it failed."""
        dropped = [name for part, names in self._parts.items() if part not in chosen for name in names]
        training = replace(self._training, pipeline=self._training.pipeline.without_fields(dropped))
        trial = run_trial(training, self._choose_epochs(training.pipeline))
        if trial is None:
            return None
        losses = trial.find_losses(training)
        scores = {name: None if each is None else _shorten(each) for name, each in trial.score().items()}
        self.found[" + ".join(chosen)] = PartTrial(_shorten(float(losses.mean())), scores)
        return losses


def _reduce_images(training: Training) -> Pipeline:
    """Return a pipeline whose images are at most as large as those of trials.

    Models of `keras.applications` get images of the size that they will have: some refuse small ones.
    """
    pipeline, options = training.pipeline, training.model_options
    if options is not None and options.image != ModelOptions().image:
        return pipeline
    smaller = {}
    for name, each in pipeline.transforms.items():
        if isinstance(each, Image) and each.fitted is not None and max(each.fitted.size) > MOST_SIDE:
            height, width = (min(MOST_SIDE, side) for side in each.fitted.size)
            fitted = replace(each.fitted, size=(height, width))
            smaller[name] = replace(each, size=(height, width), fitted=fitted)
    return pipeline.with_transforms(smaller) if smaller else pipeline


def _has_grids(pipeline: Pipeline, names: Sequence[str]) -> bool:
    """Return whether fields become images, or tensors of several dimensions."""
    others = [name for part in find_parts(pipeline).values() for name in part if name not in names]
    return bool(_list_grids(pipeline.without_fields(others)))


def _list_grids(pipeline: Pipeline) -> list[tuple[int, ...]]:
    """Return the shapes of images, and of tensors of several dimensions, which are encoded like images."""
    shapes = [output.shape for output in pipeline.inputs.values()]
    return [shape for shape in shapes if len(shape) > 1 and None not in shape]  # type: ignore[misc]


def _shorten(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")
