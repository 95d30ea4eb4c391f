"""Data and options of a training, before any process works on it.

In: an open data set, a fitted pipeline, optionally a model, options. Out: a `TrainPlan`, which a tuner
completes and a `Fit` trains.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import keras

from penstock.batch.loader import Loader
from penstock.dataset import Dataset, Split
from penstock.model.feature import count_images
from penstock.settings.model import BACKBONES, ModelOptions
from penstock.settings.training import TrainOptions
from penstock.training.defaults import fill_in_defaults
from penstock.training.loaders import HeldOut, LoaderPlan, TrainingLoaders, list_training_splits
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.run_config import OWN_MODEL, RunConfig
from penstock.training.run_facts import NumberChoice, PartChoice, RunFacts, RunSeconds
from penstock.transform.pipeline import Pipeline

COMPILED: Final = (
    *("optimizer", "learning_rate", "schedule", "averaging", "weight_decay", "warmup", "clip"),
    *("class_weights", "loss_weights", "number_loss"),
)
"""Options that are not used for a model that its owner has compiled."""

_BACKBONE_COST: Final = 4  # of an image in a model of keras.applications, about, in images of the small one


class Chosen(NamedTuple):
    """Choices before the start of a run.

    Attributes:
        numbers: How targets of numbers are learned and why, by target.
        parts: Which parts of the inputs are used and why; None if there was no choice.
        seconds: Seconds that the trials took.
        is_fitted: Whether the run itself was trained to choose, so that it begins at the last checkpoint in
            its folder.
    """

    numbers: Mapping[str, NumberChoice] = {}
    parts: PartChoice | None = None
    seconds: float = 0.0
    is_fitted: bool = False

    def describe(self) -> RunFacts:
        """Return the choices as facts of a run."""
        seconds = RunSeconds(round(self.seconds, 1))
        return RunFacts(numbers=self.numbers, parts=self.parts, seconds=seconds)


@dataclass(frozen=True)
class TrainPlan:
    """Data, pipeline, model and options of a run.

    Attributes:
        model: A user's own model, or None to build one.
        make_model: Function that returns a new model of the user, if several are trained.
        config: Content of `run.yaml`: the data, and the settings of its fields.
        losses: Losses of targets of numbers that are not the squared error, by target.
        chosen: Choices before the start of the run; None before them.
        sample: Share of the records that are read; trials take fewer than all.
        held_out: Records of the train split to validate with, or None.
    """

    data: Dataset
    pipeline: Pipeline
    options: TrainOptions
    model: Any = None
    model_options: ModelOptions | None = None
    make_model: Callable[[], Any] | None = None
    config: RunConfig = field(default_factory=RunConfig)
    losses: Mapping[str, str] = field(default_factory=dict)
    chosen: Chosen | None = None
    sample: float = 1.0
    held_out: HeldOut | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether the run begins at the last checkpoint in its folder; see `Chosen`."""
        return self.chosen is not None and self.chosen.is_fitted

    @property
    def splits(self) -> list[Split]:
        """The splits that are read: train, and validation if there is one."""
        return [self.data[name] for name in list_training_splits(self.data)]

    def make_loaders(
        self, watcher: Watcher | None = None, shard: tuple[int, int] | None = None
    ) -> TrainingLoaders:
        """Return the loaders of the run.

        `watcher`: object that is notified of records that are left out. `shard`: (rank, number) of one of
        several workers, for its part of each batch; (0, 1) for whole batches in the order of several workers.
        None for a run in one process.
        """
        given = (self.data, self.pipeline, self.options, watcher or SilentWatcher())
        return LoaderPlan(*given, self.sample, self.held_out).make(shard)

    def prepare(
        self, watcher: Watcher | None = None, shard: tuple[int, int] | None = None
    ) -> tuple[TrainPlan, TrainingLoaders]:
        """Return the plan with all options, and its loaders; see `make_loaders`."""
        loaders = self.make_loaders(watcher, shard)
        steps = loaders.train.num_steps(0)
        num_images = count_images(self.pipeline) * steps * loaders.train.options.batch_size
        if (self.model_options or ModelOptions()).image in BACKBONES and self.model is None:
            num_images *= _BACKBONE_COST
        is_validated = loaders.validation is not None
        options = fill_in_defaults(
            self.options, steps, is_validated=is_validated, images_per_epoch=num_images
        )
        return replace(self, options=options), loaders

    def identify(self, loader: Loader, built_from: ModelOptions | None) -> dict[str, object]:
        """Return everything that changes the weights, which a checkpoint must share with this run."""
        return {
            "pipeline": self.pipeline.fingerprint(),
            "data": loader.state_dict()["data"],
            "backend": keras.backend.backend(),
            "model": OWN_MODEL if built_from is None else built_from.to_json(),
            **list_effective(self.options),
            # Only where they differ from the usual: runs of earlier versions have none.
            **({"losses": dict(self.losses)} if self.losses else {}),
            **({"held_out": self.held_out.rows.digest()} if self.held_out is not None else {}),
        }

    def list_options(self, *, model_is_owners: bool) -> TrainOptions:
        """Return the options that are used; a model that its owner has compiled does not use all."""
        return spell_out(self.options, COMPILED if model_is_owners else ())


def spell_out(options: TrainOptions, left_out: Collection[str] = ()) -> TrainOptions:
    """Return options that all count as given, as `run.yaml` has them, except names that are left out."""
    names = [each.name for each in options.list_settings() if each.name not in left_out]
    return TrainOptions(**{name: getattr(options, name) for name in names})


def list_effective(options: TrainOptions) -> dict[str, object]:
    """Return the options that change the weights."""
    found: dict[str, object] = options.describe_output()
    if options.precision is None:  # runs of earlier versions have none
        del found["precision"]
    return found
