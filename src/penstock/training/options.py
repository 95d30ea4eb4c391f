"""Options of training: `TrainOptions`, checked when created, also stored as a table of `run.yaml`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, get_args

from penstock.errors import OptionError
from penstock.foundation.option_checks import OptionChecks, advise_nearest, check_count, check_limits
from penstock.foundation.wording import check_keywords, list_choices, show

Optimizer: TypeAlias = Literal["adamw", "adam", "sgd", "rmsprop", "lion"]
Schedule: TypeAlias = Literal["constant", "cosine", "one_cycle"]
Balance: TypeAlias = Literal["none", "balanced", "auto"]
Unlabelled: TypeAlias = Literal["drop", "error"]
TargetScale: TypeAlias = Literal["auto", "linear", "log"]
NumberLoss: TypeAlias = Literal["auto", "squared", "huber"]
Precision: TypeAlias = Literal["float32", "bfloat16"]
Augmentation: TypeAlias = Literal["none", "light", "flip"]

AUTO_PARTS: Final = "auto"
ALL_PARTS: Final = "all"
PARTS: Final = ("table", "text", "image", "sequence", "tensor")
"""Parts of the inputs. Numbers and categories together are the table."""

_SMALLEST_BATCH: Final = 16
_SMALLEST_IMAGE_BATCH: Final = 32  # whose mean and deviation batch normalization uses
_LARGEST_BATCH: Final = 256
_LOWER_IS_BETTER: Final = {  # words in names of metrics
    *("loss", "mae", "mse", "mape", "msle", "rmse", "error", "crossentropy", "entropy", "hinge"),
    *("divergence", "poisson", "cosh", "false"),
}
_LARGEST_SEED: Final = 2**32 - 1  # of NumPy, whose seed Keras sets
_LARGEST_SIDE: Final = 1 << 14  # of images, in pixels
_STEPS_WANTED: Final = 50  # per epoch: with fewer an epoch hardly changes the weights
# Of a run: small data sets need more epochs than large ones, and about as many steps.
_TOTAL_STEPS: Final = 2000
_FEWEST_EPOCHS: Final = 20
_MOST_EPOCHS: Final = 60
# Of data with images, which are the cost of a run: 3,400 photos of 160 x 160 take about 6 minutes of two
# cores. With a falling rate, accuracy on photos rose up to 30 epochs; without validation too.
_TOTAL_IMAGES: Final = 90_000
_FEWEST_IMAGE_EPOCHS: Final = 10
_MOST_IMAGE_EPOCHS: Final = 80
_MOST_BLIND_IMAGE_EPOCHS: Final = 40
# Without validation nothing ends a run before it overfits. With it, the best epoch of noisy tables was the
# 2nd to the 18th.
_BLIND_EPOCHS: Final = 15


def is_lower_better(metric: str, targets: Iterable[str] = ()) -> bool:
    """Whether a metric is better when it is lower; a target's name in front of it is ignored.

    Example:
        >>> is_lower_better("val_data_loss"), is_lower_better("val_auc")
        (True, False)
    """
    name = metric.removeprefix("val_")
    for target in sorted(targets, key=len, reverse=True):
        if name.startswith(f"{target}_"):
            name = name.removeprefix(f"{target}_")
            break
    return not _LOWER_IS_BETTER.isdisjoint(name.split("_"))


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Choices of a training run.

    Attributes:
        epochs: Maximum number of epochs; early stopping ends most runs before. By default from 20 to 60: as
            many as make about 2,000 steps; 15 without validation. For data with images from 10 to 80 (40
            without validation): as many as read about 90,000 images. A run that fine-tunes pretrained weights
            has half as many before.
        batch_size: Number of records per step. By default a power of two from 16 to 256, chosen so that an
            epoch has at least 50 steps; with images at least 32.
        learning_rate: Highest learning rate; the rate rises to it in the first steps.
        schedule: Learning rate after it has risen: "constant"; "cosine", along which it falls to a hundredth
            at the end of the last epoch; or "one_cycle", which rises for a quarter of the steps and falls
            along a cosine to a thousandth. By default "one_cycle" for data with images, else "constant".
        averaging: Momentum of the moving average of the weights over the steps. Validation and the result use
            the average, which has the effect of a low learning rate at any time. 0 does not average, which is
            the default with "one_cycle"; otherwise it is 0.99.
        weight_decay: Weight decay per step, times the learning rate; only used by "adamw" and "lion". By
            default 0.05 for data with images, else 0.01.
        optimizer: Name of the optimizer: "adamw", "adam", "sgd", "rmsprop" or "lion".
        warmup: Share of all steps in which the learning rate rises; by default 0.25 with "one_cycle", else
            0.05.
        clip: Maximum global norm of the gradients of a step; 0 does not clip.
        patience: Stop after this many epochs in a row without improvement, as in Keras; a validation score
            that is not finite is not an improvement. None never stops. The weights of the best epoch are kept
            in both cases. "auto" is None with "one_cycle", whose last epochs are the best ones, else 8.
            Without validation there is no early stopping: the last epoch is kept.
        monitor: Name of the metric in the history that decides the best epoch. `val_data_loss` is the
            validation loss without the penalties on weights, which `val_loss` includes. A loss or an error is
            better when lower, other metrics when higher.
        class_weights: "none" does not weight classes, so that probabilities are those of the data. "balanced"
            weights them so that all have the same total weight; "auto" does that where the rarest class has
            less than half of an equal share. Or a dict of weights by target and label.
        loss_weights: Weight of the loss of each target, where there are several; 1 by default.
        target_scale: Scale on which targets of numbers are learned: "linear", or "log", the logarithm of
            1 + x, which predictions undo. "auto" tries both for targets of at least 0 that are skewed, and
            takes "log" unless its errors on validation are more than a tenth worse; "linear" without
            validation, for your own model, and for targets whose transform is given.
        number_loss: Loss of targets of numbers: the "squared" error, or "huber", which is linear beyond one
            standard deviation. "auto" tries both for targets with heavy tails; "squared" without validation,
            and for your own model.
        parts: Kinds of inputs that are used: "all", or some of "table" (numbers and categories), "text",
            "image", "sequence" and "tensor". "auto" leaves out a kind that does not lower the validation loss
            beside the others, where there are several; "all" without validation, for your own model, and for
            a pipeline that is passed.
        image_size: Height and width of the images that are inputs, or one number for both. By default the
            size that all images have, up to 160; otherwise the medians of their heights and widths, rounded
            down to multiples of 32, from 32 to 160.
        augment: Random augmentation of the images of the train split: "none"; "light", small shifts and
            changes of brightness; or "flip", which also mirrors half of the images left to right. By default
            "light", or what the settings of a field specify.
        hold_out: Share of the train split to validate with, if there is no validation split. 0 by default, as
            more training records improve a model more than early stopping does (docs/training.md has
            figures). The pipeline and the class weights are fitted without that share; a pipeline that is
            passed is used unchanged.
        unlabelled: What to do with records without a target: "drop" skips them, with a note that counts them;
            "error" raises an error. With several targets, a record needs all of them.
        precision: Precision in which layers compute: "float32", or "bfloat16", in which weights, losses,
            metrics and predictions stay float32. None uses the policy of Keras, which is float32 unless
            `keras.config.set_dtype_policy` changed it. A model of your own must come from a function.
        seed: Random seed for initial weights, dropout and the order of records.
        shuffle: Whether to shuffle the records in each epoch.
        num_threads: Number of threads that load data; by default the number of cores.
        cache: "memory" or a folder, to keep decoded columns and pixels for later epochs.
        checkpoint_seconds: Seconds between checkpoints, from which an interrupted run resumes.
        checkpoint_steps: Number of steps between checkpoints, instead of seconds.

    Example:
        >>> TrainOptions(epochs=5, seed=7).choose_batch_size(10_000)
        128
    """

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float = 2e-3
    schedule: Schedule | None = None
    averaging: float | None = None
    weight_decay: float | None = None
    optimizer: Optimizer = "adamw"
    warmup: float | None = None
    clip: float = 1.0
    patience: int | Literal["auto"] | None = "auto"
    monitor: str = "val_data_loss"
    class_weights: Balance | Mapping[str, Any] = "none"
    loss_weights: Mapping[str, float] = field(default_factory=dict)
    target_scale: TargetScale = "auto"
    number_loss: NumberLoss = "auto"
    parts: str | tuple[str, ...] | list[str] = AUTO_PARTS
    image_size: int | tuple[int, int] | None = None
    augment: Augmentation | None = None
    hold_out: float = 0.0
    unlabelled: Unlabelled = "drop"
    precision: Precision | None = None
    seed: int = 0
    shuffle: bool = True
    num_threads: int | None = None
    cache: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 15.0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        checks = OptionChecks(self)
        checks.integers("epochs", "batch_size", "checkpoint_steps", least=1)
        checks.integers("num_threads", least=0)
        if self.patience not in (None, "auto"):
            checks.integers("patience", least=0)
        checks.integers("seed", least=0, most=_LARGEST_SEED)
        checks.numbers("learning_rate", above=True)
        checks.numbers("weight_decay", "clip", "checkpoint_seconds")
        checks.numbers("warmup", most=1)
        checks.numbers("hold_out", most=0.9)
        checks.numbers("averaging", most=0.9999)
        checks.choice("schedule", get_args(Schedule))
        checks.choice("optimizer", get_args(Optimizer))
        checks.choice("unlabelled", get_args(Unlabelled))
        checks.choice("target_scale", get_args(TargetScale))
        checks.choice("number_loss", get_args(NumberLoss))
        if self.precision is not None:
            checks.choice("precision", get_args(Precision))
        checks.choice("augment", get_args(Augmentation))
        checks.flags("shuffle")
        if not isinstance(self.monitor, str) or not self.monitor:
            raise OptionError(
                "monitor", expected="the name of a metric in the history", got=show(self.monitor)
            )
        self._check_parts()
        self._check_weights()
        if self.image_size is not None:
            object.__setattr__(self, "image_size", _check_image_size(self.image_size))

    def choose_batch_size(self, num_records: int, *, has_images: bool = False) -> int:
        """Return the number of records per step, for a split of `num_records`, with images or without."""
        if self.batch_size is not None:
            return self.batch_size
        wanted = max(1, num_records // _STEPS_WANTED)
        least = _SMALLEST_IMAGE_BATCH if has_images else _SMALLEST_BATCH
        return min(_LARGEST_BATCH, max(least, 1 << (wanted.bit_length() - 1)))

    def resolved(
        self, steps_per_epoch: int, *, is_validated: bool = True, images_per_epoch: int = 0
    ) -> TrainOptions:
        """Return the options with all defaults that depend on the data filled in.

        Args:
            steps_per_epoch: Number of steps of an epoch.
            is_validated: Whether there are validation records.
            images_per_epoch: Number of images, or arrays of several dimensions, that an epoch reads.
        """
        schedule = self.schedule or ("one_cycle" if images_per_epoch else "constant")
        is_cycle = schedule == "one_cycle"
        usual: dict[str, Any] = {
            "epochs": _choose_epochs(steps_per_epoch, images_per_epoch, is_validated=is_validated),
            "schedule": schedule,
            "averaging": 0.0 if is_cycle or images_per_epoch else 0.99,
            "weight_decay": 0.05 if images_per_epoch else 0.01,
            "warmup": 0.25 if is_cycle else 0.05,
        }
        chosen = {name: value for name, value in usual.items() if getattr(self, name) is None}
        if self.patience == "auto":
            chosen["patience"] = None if is_cycle else 8
        return dataclasses.replace(self, **chosen)

    @property
    def num_epochs(self) -> int:
        """Number of epochs of resolved options."""
        if self.epochs is None:
            raise TypeError("the options have no number of epochs yet: call resolved()")
        return self.epochs

    @property
    def most_waited(self) -> int | None:
        """Number of epochs without improvement that end a run; None if none do. Of resolved options."""
        return None if isinstance(self.patience, str) else self.patience

    def is_lower_better(self, targets: Iterable[str] = ()) -> bool:
        """Whether the metric `monitor` is better when lower; a target's name in front of it is ignored."""
        return is_lower_better(self.monitor, targets)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form: dicts, lists and scalars."""
        options = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        weights = self.class_weights
        if isinstance(weights, Mapping):
            # Labels may be ints or bytes, which JSON does not allow as keys; they are read by their text.
            weights = {
                str(name): {str(label): each for label, each in given.items()}
                if isinstance(given, Mapping)
                else given
                for name, given in weights.items()
            }
        cache = None if self.cache is None else os.fspath(self.cache)
        size = list(self.image_size) if isinstance(self.image_size, tuple) else None
        parts = self.parts if isinstance(self.parts, str) else list(self.parts)
        changed = {"class_weights": weights, "loss_weights": dict(self.loss_weights), "image_size": size}
        return {**options, **changed, "parts": parts, "cache": cache}

    def _check_parts(self) -> None:
        if isinstance(self.parts, str) and self.parts in (AUTO_PARTS, ALL_PARTS):
            return
        given = (self.parts,) if isinstance(self.parts, str) else self.parts
        if not isinstance(given, list | tuple) or not given or not all(each in PARTS for each in given):
            expected = f"'auto', 'all', or some of {list_choices(PARTS)}"
            advice = advise_nearest(given, PARTS)
            raise OptionError("parts", expected=expected, got=show(self.parts), advice=advice)
        object.__setattr__(self, "parts", tuple(part for part in PARTS if part in given))

    def _check_weights(self) -> None:
        if not isinstance(self.class_weights, Mapping) and self.class_weights not in get_args(Balance):
            expected = f"{list_choices(get_args(Balance))}, or {{target: {{label: weight}}}}"
            raise OptionError("class_weights", expected=expected, got=show(self.class_weights))
        if not isinstance(self.loss_weights, Mapping):
            raise OptionError("loss_weights", expected="{target: weight}", got=show(self.loss_weights))
        for name, weight in self.loss_weights.items():
            check_limits(f"loss_weights[{name!r}]", weight)


def _choose_epochs(steps_per_epoch: int, images_per_epoch: int, *, is_validated: bool) -> int:
    if images_per_epoch:
        wanted = round(_TOTAL_IMAGES / images_per_epoch)
        most = _MOST_IMAGE_EPOCHS if is_validated else _MOST_BLIND_IMAGE_EPOCHS
        return min(most, max(_FEWEST_IMAGE_EPOCHS, wanted))
    wanted = round(_TOTAL_STEPS / max(1, steps_per_epoch))
    return min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, wanted)) if is_validated else _BLIND_EPOCHS


def _check_image_size(given: object) -> tuple[int, int]:
    sides = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(sides) != 2:
        expected = "(height, width), or one number for both"
        raise OptionError("image_size", field="image_size", expected=expected, got=show(given))
    height, width = (check_count("", "image_size", side, 1, _LARGEST_SIDE) for side in sides)
    return height, width


class TrainChoices(TypedDict, total=False):
    """The keywords of `penstock.train`: the attributes of `TrainOptions`."""

    epochs: int | None
    batch_size: int | None
    learning_rate: float
    schedule: Schedule | None
    averaging: float | None
    weight_decay: float | None
    optimizer: Optimizer
    warmup: float | None
    clip: float
    patience: int | Literal["auto"] | None
    monitor: str
    class_weights: Balance | Mapping[str, Any]
    loss_weights: Mapping[str, float]
    target_scale: TargetScale
    number_loss: NumberLoss
    parts: str | tuple[str, ...] | list[str]
    image_size: int | tuple[int, int] | None
    augment: Augmentation | None
    hold_out: float
    unlabelled: Unlabelled
    precision: Precision | None
    seed: int
    shuffle: bool
    num_threads: int | None
    cache: str | os.PathLike[str] | None
    checkpoint_seconds: float
    checkpoint_steps: int | None


def make_options(**choices: Unpack[TrainChoices]) -> TrainOptions:
    """Return the options for keyword arguments.

    Raises:
        OptionError: There is no such option, or its value is not valid.
    """
    check_keywords(choices, (each.name for each in dataclasses.fields(TrainOptions)), "train")
    return TrainOptions(**choices)
