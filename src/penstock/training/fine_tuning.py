"""The two stages of a run that fine-tunes a pretrained image encoder.

First all other layers are trained while the weights of the encoder are fixed: their first gradients come
from random weights, and would spoil it. Then all weights are trained at a lower rate. Each stage is a run
in a separate folder, with checkpoints, so that a run that is killed in either is resumed as any other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from penstock.settings.model import ModelOptions
from penstock.settings.training import TrainOptions
from penstock.training.defaults import count_epochs
from penstock.training.run_facts import Stage
from penstock.training.train_plan import TrainPlan

TUNING_RATE: Final = 0.05
"""Learning rate of the second stage, as a share of the rate of the first."""

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


def plan_head(plan: TrainPlan, built_from: ModelOptions) -> TrainPlan:
    """Return the plan of the first stage: the same one with a fixed encoder."""
    return replace(
        plan,
        model_options=built_from.replace(fine_tune=False, freeze_image=True),
        options=plan.options.replace(epochs=count_head_epochs(plan.options)),
    )


def find_head_folder(folder: Path) -> Path:
    """Return the folder of the first stage of a run, which is created."""
    head = folder / _HEAD_NAME
    head.mkdir(exist_ok=True)
    return head


def count_head_epochs(options: TrainOptions) -> int:
    """Return the number of epochs of the first stage: half as many as the second has."""
    return max(1, count_epochs(options) // 2)


def describe_stages(options: TrainOptions, built_from: ModelOptions | None) -> tuple[Stage, ...]:
    """Return the stages of a run; none for a run that has only one."""
    if built_from is None or not built_from.fine_tune:
        return ()
    rate = options.learning_rate
    head = Stage("head", count_head_epochs(options), rate)
    return head, Stage("all", count_epochs(options), rate * TUNING_RATE)
