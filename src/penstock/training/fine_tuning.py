"""The two stages of a run that fine-tunes a pretrained image encoder.

First all other layers are trained while the weights of the encoder are fixed: their first gradients are those
of random weights, and would spoil it. Then all weights are trained at a lower rate. Each stage is a run in a
folder of its own, with checkpoints, so that a run that is killed in either is resumed as any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from penstock.model.options import ModelOptions
from penstock.training.options import TrainOptions

TUNING_RATE: Final = 0.05
"""Learning rate of the second stage, as a share of that of the first."""

_HEAD_NAME: Final = "head"  # folder of the first stage


def is_fine_tuned(model: Any) -> bool:
    """Whether a model was built to be fine-tuned."""
    built_from: ModelOptions | None = getattr(model, "built_from", None)
    return built_from is not None and bool(built_from.fine_tune)


def keep_statistics(model: Any) -> None:
    """Fix the batch normalization of the encoder of a model that is fine-tuned.

    Layers that are not trainable use their stored statistics also in training. The argument `training=False`
    of a call would not do: a functional model passes its own on to all of its layers.
    """
    for encoder in model.layers if is_fine_tuned(model) else ():
        for layer in getattr(encoder, "layers", ()):
            if type(layer).__name__ == "BatchNormalization":
                layer.trainable = False


def make_head(training: Any, built_from: ModelOptions) -> Any:
    """Return the first stage of a `Training`: the same one with a fixed encoder, in a folder of its own."""
    folder = training.folder / _HEAD_NAME
    folder.mkdir(exist_ok=True)
    return replace(
        training,
        folder=folder,
        model_options=replace(built_from, fine_tune=False, freeze_image=True),
        options=replace(training.options, epochs=count_head_epochs(training.options)),
    )


def count_head_epochs(options: TrainOptions) -> int:
    """Return the number of epochs of the first stage: half as many as the second has."""
    return max(1, options.num_epochs // 2)


def describe_stages(options: TrainOptions, built_from: ModelOptions | None) -> dict[str, Any]:
    """Return the stages of a run for `run.yaml`; nothing for a run that has only one."""
    if built_from is None or not built_from.fine_tune:
        return {}
    rate = options.learning_rate
    head = {"trained": "head", "epochs": count_head_epochs(options), "learning_rate": rate}
    every = {"trained": "all", "epochs": options.num_epochs, "learning_rate": rate * TUNING_RATE}
    return {"stages": [head, every]}
