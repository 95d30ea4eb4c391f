"""How to train: every choice with its default, checked when made. One class, one table of `run.yaml`.

In: what a caller chose. Out: `TrainOptions`.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, get_args

from penstock.errors import OptionError
from penstock.foundation.wording import check_keywords, is_finite, list_choices, show

Optimizer: TypeAlias = Literal["adamw", "adam", "sgd", "rmsprop", "lion"]
Balance: TypeAlias = Literal["auto", "balanced", "none"]
Unlabelled: TypeAlias = Literal["drop", "error"]

_SMALLEST_BATCH: Final = 16
_LARGEST_BATCH: Final = 256
_LOWER: Final = {
    *("loss", "mae", "mse", "mape", "msle", "rmse", "error", "crossentropy", "entropy", "hinge"),
    *("divergence", "poisson", "cosh", "false"),
}
_LARGEST_SEED: Final = 2**32 - 1  # that NumPy takes, which Keras sets
_STEPS_WANTED: Final = 50  # an epoch of fewer steps hardly moves the weights


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Choices of a training run.

    Attributes:
        epochs: How many at most; early stopping ends most runs before.
        batch_size: Records of a step. If not said, a power of two from 16 to 256, so that an epoch has at
            least 50 steps.
        learning_rate: The highest; it rises to it and falls to a hundredth of it along a cosine.
        weight_decay: How much weights shrink a step, times the learning rate; of "adamw" and "lion" alone.
        optimizer: "adamw", "adam", "sgd", "rmsprop" or "lion".
        warmup: During which part of all steps the learning rate rises.
        clip: The greatest norm of a step's gradients together; 0 is none.
        patience: Stop after this many epochs in a row without a better one, as in Keras; a validation that is
            not a finite number counts as one. None never stops. The weights of the best epoch are kept either
            way. Without validation neither is done: all epochs are trained, and the last weights kept.
        monitor: Which number of the history decides the best epoch. `val_data_loss` is the loss of the
            validation without the penalties on weights, which `val_loss` includes. A loss or an error is
            better when lower, others when higher.
        class_weights: "balanced" weighs classes so that all count the same, "none" does not. "auto" does it
            where the rarest class has less than half of an equal share. Or weights by label, by target.
        loss_weights: How much the loss of each target counts, where there are several; 1, if not said.
        hold_out: Which part of the train split to validate with, if there is no split for that. 0, as the
            records are worth more to a model than a better epoch to stop at (docs/training.md has figures).
            The pipeline and the class weights are fitted without that part; a pipeline that is given is taken
            as it is.
        unlabelled: What happens to records without a target: "drop" leaves them out, with a note that counts
            them; "error" refuses the data. Where there are several targets, a record needs all of them.
        seed: Of everything random: first weights, dropout, the order of records.
        shuffle: Whether records come in another order in each epoch.
        num_threads: How many threads make batches; as many as there are cores, if not said.
        cache: "memory", or a folder: keeps decoded columns and pixels for later epochs.
        checkpoint_seconds: How often all is written that a killed run needs to go on, beside the end.
        checkpoint_steps: After how many steps instead.

    Example:
        >>> TrainOptions(epochs=5, seed=7).choose_batch_size(10_000)
        128
    """

    epochs: int = 25
    batch_size: int | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    optimizer: Optimizer = "adamw"
    warmup: float = 0.05
    clip: float = 1.0
    patience: int | None = 8
    monitor: str = "val_data_loss"
    class_weights: Balance | Mapping[str, Any] = "auto"
    loss_weights: Mapping[str, float] = field(default_factory=dict)
    hold_out: float = 0.0
    unlabelled: Unlabelled = "drop"
    seed: int = 0
    shuffle: bool = True
    num_threads: int | None = None
    cache: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 15.0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("seed", 0)):
            _check_whole(name, getattr(self, name), least)
        for name, least in (("batch_size", 1), ("patience", 0), ("num_threads", 0), ("checkpoint_steps", 1)):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least)
        if self.seed > _LARGEST_SEED:
            raise OptionError("seed", expected=f"at most {_LARGEST_SEED}", got=self.seed)
        _check_real("learning_rate", self.learning_rate, 0, math.inf, is_open=True)
        for name, most in (
            ("weight_decay", math.inf),
            ("clip", math.inf),
            ("warmup", 1),
            ("hold_out", 0.9),
            ("checkpoint_seconds", math.inf),
        ):
            _check_real(name, getattr(self, name), 0, most)
        if self.optimizer not in get_args(Optimizer):
            choices = list_choices(get_args(Optimizer))
            raise OptionError("optimizer", expected=choices, got=show(self.optimizer))
        if self.unlabelled not in get_args(Unlabelled):
            choices = list_choices(get_args(Unlabelled))
            raise OptionError("unlabelled", expected=choices, got=show(self.unlabelled))
        if not isinstance(self.shuffle, bool):
            raise OptionError("shuffle", expected="True or False", got=show(self.shuffle))
        if not isinstance(self.monitor, str) or not self.monitor:
            raise OptionError("monitor", expected="a name of the history", got=show(self.monitor))
        self._check_weights()

    def choose_batch_size(self, num_records: int) -> int:
        """Return how many records a step has, of a split of so many."""
        if self.batch_size is not None:
            return self.batch_size
        wanted = max(1, num_records // _STEPS_WANTED)
        return min(_LARGEST_BATCH, max(_SMALLEST_BATCH, 1 << (wanted.bit_length() - 1)))

    def is_lower_better(self, targets: Iterable[str] = ()) -> bool:
        """Whether what `monitor` names is better when lower; the names of targets before it tell nothing."""
        name = self.monitor.removeprefix("val_")
        for target in sorted(targets, key=len, reverse=True):
            if name.startswith(f"{target}_"):
                name = name.removeprefix(f"{target}_")
                break
        return not _LOWER.isdisjoint(name.split("_"))

    def to_json(self) -> dict[str, Any]:
        """Return the choices as dicts, lists and scalars."""
        form = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        weights = self.class_weights
        if isinstance(weights, Mapping):
            # Labels are ints or bytes, too, which are no keys in JSON; who reads them goes by their text.
            weights = {
                str(name): {str(label): each for label, each in given.items()}
                if isinstance(given, Mapping)
                else given
                for name, given in weights.items()
            }
        cache = None if self.cache is None else os.fspath(self.cache)
        return {**form, "class_weights": weights, "loss_weights": dict(self.loss_weights), "cache": cache}

    def _check_weights(self) -> None:
        if not isinstance(self.class_weights, Mapping) and self.class_weights not in get_args(Balance):
            expected = f"{list_choices(get_args(Balance))}, or {{target: {{label: weight}}}}"
            raise OptionError("class_weights", expected=expected, got=show(self.class_weights))
        if not isinstance(self.loss_weights, Mapping):
            raise OptionError("loss_weights", expected="{target: weight}", got=show(self.loss_weights))
        for name, weight in self.loss_weights.items():
            _check_real(f"loss_weights[{name!r}]", weight, 0, math.inf)


class TrainChoices(TypedDict, total=False):
    """The keywords of `penstock.train`: the attributes of `TrainOptions`."""

    epochs: int
    batch_size: int | None
    learning_rate: float
    weight_decay: float
    optimizer: Optimizer
    warmup: float
    clip: float
    patience: int | None
    monitor: str
    class_weights: Balance | Mapping[str, Any]
    loss_weights: Mapping[str, float]
    hold_out: float
    unlabelled: Unlabelled
    seed: int
    shuffle: bool
    num_threads: int | None
    cache: str | os.PathLike[str] | None
    checkpoint_seconds: float
    checkpoint_steps: int | None


def make_options(**choices: Unpack[TrainChoices]) -> TrainOptions:
    """Return the options for some keywords.

    Raises:
        OptionError: There is no such option, or it has a value that it cannot have.
    """
    check_keywords(choices, (each.name for each in dataclasses.fields(TrainOptions)), "train")
    return TrainOptions(**choices)


def _check_whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(name, expected=f"a whole number of at least {least}", got=show(value))


def _check_real(name: str, value: object, least: float, most: float, *, is_open: bool = False) -> None:
    is_number = is_finite(value) or value == math.inf
    if not is_number or not least <= value <= most or (is_open and value == least):  # type: ignore[operator]
        above = "above" if is_open else "of at least"
        up_to = "" if most == math.inf else f", at most {most:g}"
        raise OptionError(name, expected=f"a number {above} {least:g}{up_to}", got=show(value))
