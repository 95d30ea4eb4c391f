"""Options of training.

Annotations are read when a class is used, so this module has no postponed ones.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from penstock.foundation.wording import list_choices
from penstock.settings.groups import Engine, refuse_local
from penstock.settings.kinds import (
    Cache,
    Count,
    Integer,
    Kind,
    Made,
    Names,
    NotNegative,
    Number,
    Object,
    Pairs,
    PathName,
    Positive,
    Share,
    UnexpectedError,
    Whole,
    advise_nearest,
)
from penstock.settings.model import ModelOptions
from penstock.settings.setting import NEW, Settings, setting

Balance: TypeAlias = Literal["none", "balanced", "auto"]
Precision: TypeAlias = Literal["float32", "bfloat16"]
Verbosity: TypeAlias = Literal[0, 1, 2]

AUTO_PARTS: Final = "auto"
ALL_PARTS: Final = "all"
PARTS: Final = ("table", "text", "image", "sequence", "tensor")
"""Parts of the inputs. Numbers and categories together are the table."""


_STORED: Final = (
    *("epochs", "batch_size", "learning_rate", "schedule", "averaging", "weight_decay", "optimizer"),
    *("warmup", "clip", "patience", "monitor", "class_weights", "loss_weights", "target_scale"),
    *("number_loss", "parts", "image_size", "augment", "hold_out", "unlabelled", "precision", "seed"),
    *("shuffle", "num_threads", "cache", "checkpoint_seconds", "checkpoint_steps"),
)
"""Keys of run.yaml in their order; options of later versions come after them."""


def _check_parts(value: Any) -> Any:
    if value in (AUTO_PARTS, ALL_PARTS):
        return value
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given or not all(each in PARTS for each in given):
        wrong = (
            next((each for each in given if each not in PARTS), None)
            if isinstance(given, list | tuple)
            else ""
        )
        advice = advise_nearest(wrong, PARTS)
        raise UnexpectedError(f"'auto', 'all', or some of {list_choices(PARTS)}", advice)
    return tuple(part for part in PARTS if part in given)


def _parse_parts(text: str) -> str | list[str]:
    return text if text in (AUTO_PARTS, ALL_PARTS) else [part.strip() for part in text.split(",")]


def _check_image_size(value: Any) -> tuple[int, int]:
    sides = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(sides) != 2:
        raise UnexpectedError("(height, width), or one number for both")
    side = Integer(least=1, most=1 << 14)
    return side.check(sides[0]), side.check(sides[1])


def _parse_image_size(text: str) -> tuple[int, int]:
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(side.isdecimal() and int(side) for side in sides):
        raise UnexpectedError("one number, or height x width, such as 96 or 96x128")
    return int(sides[0]), int(sides[-1])


def _check_class_weights(value: Any) -> Any:
    if isinstance(value, Mapping) or value in ("none", "balanced", "auto"):
        return value
    raise UnexpectedError("'none', 'balanced' or 'auto', or {target: {label: weight}}")


def _dump_class_weights(value: Any) -> Any:
    """Return class weights as JSON has them: labels may be ints or bytes, and are read by their text."""
    if not isinstance(value, Mapping):
        return value
    return {
        str(name): {str(label): each for label, each in given.items()}
        if isinstance(given, Mapping)
        else given
        for name, given in value.items()
    }


def _check_model_options(value: Any) -> ModelOptions:
    if not isinstance(value, ModelOptions):
        raise UnexpectedError("`ps.options.ModelOptions`")
    return value


def _check_callbacks(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise UnexpectedError("a list of callbacks")
    return value


Parts = Annotated[
    str | tuple[str, ...] | list[str],
    Made(
        "auto|all|NAMES",
        _check_parts,
        parse=_parse_parts,
        dump=lambda each: each if isinstance(each, str) else list(each),
    ),
]
ImageSize = Annotated[
    int | tuple[int, int], Made("N|HxW", _check_image_size, parse=_parse_image_size, dump=list)
]
ClassWeights = Annotated[
    Balance | Mapping[str, Any],
    Made(
        "{none,balanced,auto}",
        _check_class_weights,
        dump=_dump_class_weights,
        choices=("none", "balanced", "auto"),
    ),
]
Built = Annotated[ModelOptions, Made("", _check_model_options)]
Callbacks = Annotated[Sequence[Any], Made("", _check_callbacks)]
Metric = Annotated[str, Kind("METRIC", "the name of a metric in the history")]
Patience = Annotated[int | Literal["auto"] | None, Integer(words={"auto": "auto", "-1": None, "never": None})]


class Duration(Settings, title="duration"):
    """How long a model is trained, and on how many records at once."""

    epochs: Count | None = setting(
        "Maximum number of epochs. Early stopping ends most runs before. Fine-tuning of pretrained weights "
        "has half as many before.",
        default=None,
        usual="20 to 60, for about 2,000 steps; 15 without validation; with images 10 to 80, or 40 without "
        "validation, for 90,000 of them",
    )
    batch_size: Count | None = setting(
        "Records per step. The default is a power of two.",
        default=None,
        usual="16 to 256, for 50 steps per epoch; with images 32 at least",
    )
    patience: Patience = setting(
        "Stop after N epochs without improvement; -1: never. In Python, None never stops. A validation score "
        "that is not finite is no improvement. The weights of the best epoch are kept; without validation, "
        "those of the last one.",
        default="auto",
        usual="8; -1 with one_cycle",
    )
    monitor: Metric = setting(
        "Metric that decides which epoch is the best. `val_data_loss` is the validation loss without the "
        "penalties on weights. A loss or an error is better when lower, other metrics when higher.",
        default="val_data_loss",
    )
    seed: Annotated[int, Integer(most=2**32 - 1)] = setting(
        "Random seed, also for splitting raw data. It decides initial weights, dropout and the order of "
        "records.",
        default=0,
    )


class Optimization(Settings, title="optimization"):
    """How the weights of a model change."""

    optimizer: Literal["adamw", "adam", "sgd", "rmsprop", "lion"] = setting("Optimizer.", default="adamw")
    learning_rate: Positive = setting(
        "Maximum learning rate. It rises to it in the first steps.", default=2e-3
    )
    schedule: Literal["constant", "cosine", "one_cycle"] | None = setting(
        "Learning rate after it has risen. A cosine falls to a hundredth at the end of the last epoch; "
        "one_cycle rises for a quarter of the steps and falls to a thousandth.",
        default=None,
        usual="one_cycle for data with images, else constant",
    )
    warmup: Share | None = setting(
        "Share of all steps in which the learning rate rises.",
        default=None,
        usual="0.05; 0.25 with one_cycle",
        flag="",
    )
    final_rate: Share | None = setting(
        "Learning rate at the end of the last epoch, as a share of the maximum. A constant schedule has "
        "none.",
        default=None,
        usual="0.01 with cosine, 0.001 with one_cycle",
        stored=NEW,
    )
    averaging: Annotated[float, Number(most=0.9999)] | None = setting(
        "Momentum of the average of weights; 0: no average. Validation and the result use the average, which "
        "has the effect of a low learning rate at any time.",
        default=None,
        usual="0.99; 0 with one_cycle",
    )
    weight_decay: NotNegative | None = setting(
        "Weight decay. Only adamw and lion use it: per step, times the learning rate.",
        default=None,
        usual="0.01; 0.05 with images",
    )
    clip: NotNegative = setting("Maximum norm of the gradients; 0: no limit.", default=1.0)
    precision: Precision | None = setting(
        "Precision of the layers; weights stay float32. With bfloat16, losses, metrics and predictions stay "
        "float32, too. A model of your own must come from a function.",
        default=None,
        usual="float32, or the policy of Keras",
    )


class Objective(Settings, title="targets"):
    """What a model learns."""

    class_weights: ClassWeights = setting(
        "Weight rare classes up; auto: only if one is rarer than half an equal share. With none, "
        "probabilities are those of the data; with balanced, all classes have the same total weight. In "
        "Python also weights by target and label.",
        default="none",
    )
    loss_weights: Annotated[Mapping[str, float], Pairs("NAME=X", Number(), "NAME=X, such as price=0.5")] = (
        setting("Weight of the loss of each target, separated by commas.", default={}, usual="1")
    )
    target_scale: Literal["auto", "linear", "log"] = setting(
        "Scale of targets of numbers; auto: log if they are skewed, unless it is worse on validation. The "
        "logarithm is of 1 + x, and predictions undo it. auto tries both for targets of at least 0, and "
        "takes log unless its errors are more than a tenth worse; it is linear without validation, for your "
        "own model, and for targets whose transform is given.",
        default="auto",
        affects_output=False,  # pipeline and losses have the effect of this and of the next option
    )
    number_loss: Literal["auto", "squared", "huber"] = setting(
        "Loss of targets of numbers; auto: the better one on validation, if tails are heavy. huber is linear "
        "beyond one standard deviation. auto is squared without validation, and for your own model.",
        default="auto",
        affects_output=False,
    )
    unlabelled: Literal["drop", "error"] = setting(
        "Records without a target: drop them, or stop with an error. A note counts dropped ones. With "
        "several targets, a record needs all of them.",
        default="drop",
        affects_output=False,
    )


class Inputs(Settings, title="inputs", affects_output=False):
    """What a model reads; the pipeline has the effect of these options."""

    parts: Parts = setting(
        "Kinds of inputs: table, text, image, sequence, tensor, separated by commas; auto: all but those "
        "without which validation is better. Numbers and categories are the table. auto leaves out a kind "
        "only if predictions are better by more than noise; it is all without validation, for your own "
        "model, and for a pipeline that is passed.",
        default=AUTO_PARTS,
    )
    image_size: ImageSize | None = setting(
        "Height and width of images. The medians are rounded down to multiples of 32.",
        default=None,
        usual="that of all images, or else the medians; at most 160",
    )
    augment: Literal["none", "light", "flip"] | None = setting(
        "Random changes of training images: small shifts and brightness, or also mirrored left to right. "
        "Settings of a field have priority over the default.",
        default=None,
        usual="light; none for your own model",
    )
    hold_out: Annotated[float, Number(most=0.9)] = setting(
        "Share to validate with if there is no validation split. The rule of the splits divides the records: "
        "those of one group, one id or equal content stay together, and by time the newest are held out. "
        "The pipeline and the class weights are fitted without that share; a pipeline that is passed is used "
        "unchanged. More training records improve a model more than early stopping does.",
        default=0.0,
        affects_output=True,
    )


class Feeding(Settings, title="loading", affects_output=False):
    """How records reach the model."""

    num_threads: Whole | None = setting(
        "Number of threads that load data.",
        default=None,
        usual="one per core",
        flag="--threads",
        earlier=("--num-threads",),
    )
    cache: Cache | None = setting("Keep decoded data for later epochs. Pixels are kept, too.", default=None)
    shuffle: bool = setting(
        "Whether to shuffle the records in each epoch.", default=True, flag="", affects_output=True
    )
    checkpoint_seconds: Annotated[float, Number(unlimited=True)] = setting(
        "Seconds between checkpoints, from which an interrupted run resumes.", default=15.0, flag=""
    )
    checkpoint_steps: Count | None = setting(
        "Number of steps between checkpoints, instead of seconds.", default=None, flag=""
    )


class TrainOptions(Duration, Optimization, Objective, Inputs, Feeding):
    """Choices of a training run.

    Example:
        >>> TrainOptions(epochs=5, parts=["text", "table"]).parts
        ('table', 'text')
    """

    def to_json(self, *, only_given: bool = False) -> dict[str, Any]:
        """Return the table of run.yaml, whose keys every version has written in this order."""
        table = super().to_json(only_given=only_given)
        return {name: table.pop(name) for name in _STORED if name in table} | table


class Workers(
    Settings,
    title="several workers or devices",
    note="They need the JAX backend of Keras.",
    affects_output=False,
):
    """Processes that train one model together."""

    num_workers: Count | None = setting(
        "Train with N processes, which share each batch. The result is the result of one process with the "
        "same batch size, except for rounding. If one is killed, all start again from the last checkpoint.",
        default=None,
        usual="1",
        flag="--workers",
    )
    engine: Engine = setting("Where they run: on this machine, or on a Ray cluster.", default="local")
    address: Annotated[str, Kind("ADDRESS", "HOST:PORT or 'auto'")] | None = setting(
        "The Ray cluster; auto: the one of this machine.",
        default=None,
        usual="RAY_ADDRESS, or a new one for the run",
    )
    num_devices: Count | None = setting(
        "Devices of each process, such as GPUs. Several devices of this machine need no `num_workers`.",
        default=None,
        usual="1, or with several workers all it has",
        flag="--devices",
    )

    def validate(self) -> None:
        """Refuse an address that nothing would use."""
        refuse_local(self, "address")


class RunOutput(Settings, title="run", affects_output=False):
    """Where a run is written."""

    out: Annotated[str | os.PathLike[str], PathName("RUN")] | None = setting(
        "Run folder to write, also in an object store. There, files are uploaded when they are complete, "
        "from a temporary folder.",
        default=None,
        usual="a new one in runs/",
    )
    resume: bool = setting(
        "Continue the interrupted run in that folder. Options that are not given again are the options of "
        "the run; others must be the same.",
        default=False,
    )


class Ensemble(Settings, title="several models", affects_output=False):
    """Several models of one kind."""

    ensemble: Annotated[int, Integer(least=2, most=100)] | None = setting(
        "Train N models with the next seeds, and average them. Each is a complete run in its own folder, "
        "`member-1` and so on.",
        default=None,
    )


class Training(Settings, title="training", has_flags=False, affects_output=False):
    """Model, pipeline, callbacks and display of a training: keywords of Python alone."""

    model: Object = setting(
        "Your own Keras model, whose inputs have the names of the pipeline's inputs, or a function that "
        "returns a new one. By default a model is built from the schema. A compiled model is trained as it "
        "is. Several models, workers and folds need a function.",
        default=None,
    )
    target: Names | None = setting(
        "Name of the target, or of several, if the data does not declare it.", default=None, flag="--target"
    )
    watcher: Object = setting("Object that is notified of progress, instead of the display.", default=None)
    verbose: Verbosity | None = setting(
        "What is shown: 0 for nothing, not even warnings, unless you have configured logging; 1 for a line "
        "that is updated and one line per epoch; 2 for one plain line per epoch.",
        default=None,
        usual="1",
    )
    model_options: Built | None = setting("How to build a model: `ps.options.ModelOptions`.", default=None)

    def validate(self) -> None:
        """Refuse a watcher beside a display."""
        if self.watcher is not None and self.verbose is not None:
            advice = "The watcher decides what is shown."
            raise self.refuse("verbose", "none, as a watcher is given", advice=advice)


class TrainCall(TrainOptions, RunOutput, Ensemble, Workers, Training, has_flags=False, affects_output=False):
    """Keywords of `penstock.train`."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "folds": "Call `ps.cross_validate(data, folds=5)`, which returns the scores of all folds."
    }

    pipeline: Object = setting("A fitted pipeline.", default=None, usual="fitted to the data")
    callbacks: Callbacks = setting(
        "Additional Keras callbacks, in a list. The state in their plain attributes is restored on resume.",
        default=(),
    )


USUAL_FOLDS: Final = 5


class CrossValidateCall(TrainOptions, RunOutput, Training, affects_output=False):
    """Keywords of `penstock.cross_validate`."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "pipeline": "It was fitted to records of all folds. Each fold fits its own: leave it out.",
        "callbacks": "Callbacks keep state from one run to the next: train single runs with them.",
        "ensemble": "Folds estimate the scores on new records, an ensemble predicts better: for both, call "
        "`ps.train(data, ensemble=5)` as well, with another folder.",
        "num_workers": "Train the folds one by one, without workers.",
    }

    folds: Annotated[int, Integer(least=2, most=100)] = setting(
        "Number of folds. Each is a complete run in a folder of its own, `fold-1` and so on.",
        default=USUAL_FOLDS,
    )
