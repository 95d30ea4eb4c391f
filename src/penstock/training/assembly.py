"""The model of a run: built or checked, and compiled.

In: a plan, its loaders. Out: an `Assembly`, which is ready to be fitted.

A run that fine-tunes a pretrained image encoder has two stages. First all other layers are trained while the
weights of the encoder are fixed: their first gradients come from random weights, and would spoil it. Then all
weights are trained at a lower rate. Each stage is a run in a separate folder, with checkpoints, so that a run
that is killed in either is resumed as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.batch.loader import Loader
from penstock.foundation.wording import show
from penstock.model.build import build_model
from penstock.model.class_outputs import check_labels, read_tasks
from penstock.model.compatibility import check_model
from penstock.model.feature import count_images
from penstock.model.keras_predictor import KerasPredictor
from penstock.model.logits import find_logits
from penstock.model.presets import fill_in_preset
from penstock.model.task import Task, find_tasks
from penstock.settings.model import ModelOptions
from penstock.settings.training import TrainOptions
from penstock.training.class_weights import compute_class_weights, count_classes, list_single_record_classes
from penstock.training.compilation import compile_model, plan_compilation
from penstock.training.defaults import count_epochs
from penstock.training.keras_fit import build_state
from penstock.training.keras_state import in_precision, seeded
from penstock.training.loaders import TrainingLoaders
from penstock.training.members import Members, find_members
from penstock.training.progress import Watcher
from penstock.training.run_facts import Stage
from penstock.training.train_plan import TrainPlan

_MOST_SHOWN: Final = 10
_COMPILED_BY_RUN: Final = "is_of_a_run"


class Assembly(NamedTuple):
    """A model that is ready to be fitted.

    `built_from` is None for a user's own model. `weights` are class weights by target. `fitted` is the model
    that is fitted: with the outputs of the members, if there are any.
    """

    model: Any
    built_from: ModelOptions | None
    tasks: Mapping[str, Task]
    logits: Mapping[str, bool]
    weights: Mapping[str, tuple[float, ...]]
    fitted: Any

    def make_predictor(
        self, plan: TrainPlan, temperatures: Mapping[str, float] | None = None
    ) -> KerasPredictor:
        """Return a predictor for batches of the model's inputs."""
        return KerasPredictor(self.model, plan.pipeline, self.tasks, self.logits, temperatures or {})


def assemble(
    plan: TrainPlan, loaders: TrainingLoaders, watcher: Watcher, *, checks_labels: bool = True
) -> Assembly:
    """Build or check the model of a plan, and compile it.

    `watcher`: object that is notified of rare classes and of class weights.
    """
    tasks = find_tasks(plan.pipeline)
    model, built_from = _make_model(plan, tasks)
    tasks = read_tasks(model, tasks)
    logits = find_logits(model, tasks, plan.pipeline)
    for split in plan.splits if checks_labels else ():
        check_labels(model, tasks, plan.pipeline, split)
    counts = count_classes(loaders.read_targets(), tasks)
    for note in list_single_record_classes(counts, tasks):
        watcher.note(note)
    if is_compiled_by_owner(model):
        watcher.note("The model is already compiled: its own optimizer and losses are used.")
        members, weights = None, dict[str, tuple[float, ...]]()
    else:
        members = find_members(model, tasks)
        weights = compute_class_weights(counts, tasks, plan.options.class_weights)
        for note in _list_weights(plan, tasks, weights):
            watcher.note(note)
        _compile(plan, (model, members), tasks, loaders.train, logits, weights)
    fitted = model if members is None else members.model
    build_state(fitted, loaders.train)
    return Assembly(model, built_from, tasks, logits, weights, fitted)


def is_compiled_by_owner(model: Any) -> bool:
    """Whether a user has compiled the model; a model that a run compiled is compiled again by the next."""
    return bool(getattr(model, "compiled", False)) and not getattr(model.optimizer, _COMPILED_BY_RUN, False)


def _make_model(plan: TrainPlan, tasks: Mapping[str, Task]) -> tuple[Any, ModelOptions | None]:
    """Return the model, and the options that it was built from, if Penstock built it."""
    if plan.model is None:
        options = fill_in_preset(plan.model_options or ModelOptions())
        if not count_images(plan.pipeline):
            options = options.replace(image_weights=None, freeze_image=False, fine_tune=False)
        with seeded(plan.options.seed), in_precision(plan.options.precision):
            model = build_model(plan.pipeline.schema, plan.pipeline, options)
        _keep_statistics(model)
        return model, options
    check_model(plan.model, plan.pipeline, tasks)
    return plan.model, getattr(plan.model, "built_from", None)


def _list_weights(
    plan: TrainPlan, tasks: Mapping[str, Task], weights: Mapping[str, tuple[float, ...]]
) -> list[str]:
    """Return notes on class weights."""
    notes = []
    for name, given in weights.items():
        pairs = zip(tasks[name].labels, given, strict=True)
        shown = ", ".join(f"{show(label)} by {weight:.2g}" for label, weight in islice(pairs, _MOST_SHOWN))
        shown += ", …" if len(given) > _MOST_SHOWN else ""
        of_target = f" of {name!r}" if len(tasks) > 1 else ""
        if isinstance(plan.options.class_weights, Mapping):
            notes.append(f"Classes{of_target} are weighted as given: {shown}.")
        else:
            notes.append(f"Rare classes{of_target} are weighted up: {shown}.")
    return notes


def _compile(
    plan: TrainPlan,
    models: tuple[Any, Members | None],
    tasks: Mapping[str, Task],
    loader: Loader,
    logits: Mapping[str, bool],
    weights: Mapping[str, tuple[float, ...]],
) -> None:
    model, members = models
    options = plan.options
    total = loader.num_steps(0) * count_epochs(options)
    if plan.model is None and is_fine_tuned(model):
        options = options.replace(learning_rate=options.learning_rate * _TUNING_RATE)
    robust = tuple(name for name, loss in plan.losses.items() if loss == "huber")
    compilation = replace(plan_compilation(options, total), class_weights=weights, robust=robust)
    compile_model(model, tasks, compilation, logits)
    setattr(model.optimizer, _COMPILED_BY_RUN, True)
    if members is not None:
        compile_model(members.model, tasks, compilation, logits, members.counts)
        setattr(members.model.optimizer, _COMPILED_BY_RUN, True)


_TUNING_RATE: Final = 0.05
"""Learning rate of the second stage, as a share of the rate of the first."""

_HEAD_NAME: Final = "head"  # folder of the first stage


def is_fine_tuned(model: Any) -> bool:
    """Whether a model was built to be fine-tuned."""
    built_from: ModelOptions | None = getattr(model, "built_from", None)
    return built_from is not None and bool(built_from.fine_tune)


def _keep_statistics(model: Any) -> None:
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
    return head, Stage("all", count_epochs(options), rate * _TUNING_RATE)
