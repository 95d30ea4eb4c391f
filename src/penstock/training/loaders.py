"""The records of a run: which splits, which share is held out, and the loaders that read them.

In: a data set, options. Out: names of splits, the share to hold out, `TrainingLoaders`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from penstock.batch.loader import Loader
from penstock.dataset import Dataset
from penstock.errors import TrainingDataError
from penstock.model.keras_predictor import KerasPredictor
from penstock.training.options import TrainOptions
from penstock.training.validation_choice import ValidationChoice, choose_on_validation

_TRAIN: Final = "train"
_VALIDATION: Final = ("validation", "val", "valid", "dev")
_LEAST_HELD_OUT: Final = 8  # records: with fewer the validation loss is mostly noise


class TrainingLoaders(NamedTuple):
    """Loaders of a run: the training batches, the targets of the same records, the validation batches.

    The numbers of records are approximate where a loader reads a share of a split.
    """

    train: Loader
    labels: Loader
    validation: Loader | None
    num_train: int
    num_validation: int = 0

    def read_targets(self) -> Iterator[Mapping[str, Any]]:
        """Yield the targets of all records to train on, without reading their inputs."""
        with self.labels.read(0) as batches:
            for batch in batches:
                yield batch[1]

    def choose(self, predict: KerasPredictor, keep: Collection[str]) -> dict[str, ValidationChoice]:
        """Return what is chosen on the validation records, by target; nothing without validation.

        Args:
            predict: Predictions of the model, without a temperature.
            keep: Targets that get no temperature: class weights shift their probabilities on purpose, or the
                user has compiled the model.
        """
        if self.validation is None:
            return {}
        with self.validation.read(0) as batches:
            return choose_on_validation(predict, predict.tasks, batches, keep)


def find_hold_out(data: Dataset, options: TrainOptions) -> float:
    """Return the share of the train split that is held out; 0 where the data has a validation split.

    The option `part` of a loader selects the records below this share for validation, and the others for
    training.
    """
    if find_validation(data) is not None or len(data[find_train(data)]) * options.hold_out < _LEAST_HELD_OUT:
        return 0.0
    return options.hold_out


def list_training_splits(data: Dataset) -> list[str]:
    """Return the names of the splits that a run uses: train, and validation if there is one.

    Raises:
        TrainingDataError: There are several splits, and none of them is "train".
    """
    return [name for name in (find_train(data), find_validation(data)) if name is not None]


def find_validation_share(data: Dataset, options: TrainOptions) -> float:
    """Return the share of the records of `list_training_splits` that a run validates with."""
    held = find_validation(data)
    if held is None:
        return find_hold_out(data, options)
    num_held = len(data[held])
    return num_held / (num_held + len(data[find_train(data)]))


def find_train(data: Dataset) -> str:
    """Return the name of the split to train on: "train", or the only one.

    Raises:
        TrainingDataError: There is no such split.
    """
    if _TRAIN in data.splits:
        return _TRAIN
    if len(data.splits) == 1:
        return data.splits[0]
    raise TrainingDataError(
        "splits of the data set",
        expected=f"a split named {_TRAIN!r}, or a single split",
        got=", ".join(data.splits) or "none",
        advice="Convert it with --split train=0.8,test=0.2, or pass only the files of the train split.",
    )


def find_validation(data: Dataset) -> str | None:
    """Return the name of the split to validate with; None if there is none, or it has no records."""
    trained = find_train(data)  # the only split may have any name
    names = [name for name in _VALIDATION if name in data.splits and name != trained]
    return next((name for name in names if len(data[name])), None)
