"""Train from end to end: build or check the model, compile it, fit it, and write the run folder.

In: an open data set, a fitted pipeline, optionally a model, options, a folder. Out: a `Run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import keras

from penstock.batch.loader import Loader
from penstock.dataset import Dataset, Split
from penstock.errors import NonFiniteError, StateError
from penstock.foundation.wording import show
from penstock.model.build import build_model
from penstock.model.compatibility import check_model
from penstock.model.feature import count_images
from penstock.model.finite_values import check_finite
from penstock.model.keras_predictor import KerasPredictor
from penstock.model.labels import check_labels, read_tasks
from penstock.model.logits import find_logits
from penstock.model.options import BACKBONES, ModelOptions
from penstock.model.task import Task, find_tasks
from penstock.training.checkpoint import Checkpoint, Checkpoints, read_result
from penstock.training.class_weights import compute_class_weights, count_classes, list_single_record_classes
from penstock.training.compilation import compile_model, plan_compilation
from penstock.training.distribution import Worker
from penstock.training.fine_tuning import (
    TUNING_RATE,
    describe_stages,
    is_fine_tuned,
    keep_statistics,
    make_head,
)
from penstock.training.fitting import Fitting, build_state, check_monitor
from penstock.training.history import read_history
from penstock.training.loaders import LoaderPlan, TrainingLoaders, find_validation, list_training_splits
from penstock.training.members import Members, find_members
from penstock.training.options import TrainOptions
from penstock.training.precision import in_precision
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.random_state import restored_random_state, seeded, set_seed
from penstock.training.run import Run, load_weights, save_fields, save_weights
from penstock.training.run_files import (
    CONFIG_NAME,
    HELD_OUT,
    OWN_MODEL,
    PIPELINE_NAME,
    read_choices,
    read_run_config,
    write_run_config,
)
from penstock.training.validation_choice import ValidationChoice
from penstock.transform.pipeline import Pipeline

_MOST_SHOWN: Final = 10
COMPILED: Final = (
    *("optimizer", "learning_rate", "schedule", "averaging", "weight_decay", "warmup", "clip"),
    *("class_weights", "loss_weights", "number_loss"),
)
"""Options that are not used for a model that its owner has compiled."""

WITHOUT_EFFECT: Final = (
    *("num_threads", "cache", "checkpoint_seconds", "checkpoint_steps", "unlabelled"),
    # Pipeline and losses hold what follows from them.
    *("target_scale", "number_loss", "parts", "image_size", "augment"),
)
"""Options that do not change the weights, so that a resumed run may have other values."""

_BACKBONE_COST: Final = 4  # of an image in a model of keras.applications, about, in images of the small one
_COMPILED_BY_RUN: Final = "is_of_a_run"


class _Assembled(NamedTuple):
    """A model that is ready to be fitted."""

    model: Any
    built_from: ModelOptions | None
    tasks: Mapping[str, Task]
    logits: Mapping[str, bool]
    weights: dict[str, Any]
    fitted: Any
    checkpoints: Checkpoints


@dataclass(frozen=True)
class Training:
    """A training run before it starts: data, pipeline, model and options.

    Attributes:
        data: The data set.
        pipeline: Pipeline fitted to the data set.
        folder: Folder of the run.
        options: Options of the training.
        model: A user's own model, or None to build one.
        model_options: Options for building a model.
        settings: Further tables for `run.yaml`.
        callbacks: The user's own Keras callbacks.
        watcher: Object that is notified of progress.
        make_model: Returns a new model of the user, where several are trained.
        losses: Losses of targets of numbers that are not the squared error, by target.
        numbers: How targets of numbers are learned and why, for `run.yaml`.
        parts: Which parts of the inputs are used and why, for `run.yaml`.
        sample: Share of the records that are read; trials take fewer than all.
        choose: Called before a new run starts; returns the training with what it chose on validation.
        launch: Trains in other processes, from the checkpoint in the folder to the last one; it is given this
            object and the loader of the batches. None trains in this process.
        worker: This process as one of several workers, for `fit_share`; None outside of one.
    """

    data: Dataset
    pipeline: Pipeline
    folder: Path
    options: TrainOptions
    model: Any = None
    model_options: ModelOptions | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    callbacks: Sequence[Any] = ()
    watcher: Watcher = field(default_factory=SilentWatcher)
    make_model: Callable[[], Any] | None = None
    losses: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)
    sample: float = 1.0
    choose: Callable[[Training], Training] | None = None
    launch: Callable[[Training, Loader], None] | None = None
    worker: Worker | None = None

    def run(self, *, resume: bool = False) -> Run:
        """Train, and return the run; the random state of the caller is restored at the end.

        Args:
            resume: Whether to continue a run in this folder that was interrupted.

        Raises:
            OptionError: The model does not fit the pipeline, or there are no records to train on.
            FieldError: A label or a number is not valid for training.
            NonFiniteError: The loss of a step is not finite.
            StateError: The checkpoints in the folder belong to another run.
        """
        with restored_random_state():
            prepared, loaders = self.prepare()
            return prepared._run(find_tasks(prepared.pipeline), loaders, resume=resume)

    def prepare(self) -> tuple[Training, TrainingLoaders]:
        """Make the choices that come before a new run; return the training with all options, and its loaders.

        Raises:
            PenstockError: See `run`.
        """
        chosen = self if self.choose is None else replace(self.choose(self), choose=None)
        loaders = chosen.make_loaders()
        is_validated = loaders.validation is not None
        steps = loaders.train.num_steps(0)
        num_images = count_images(chosen.pipeline) * steps * loaders.train.options.batch_size
        if (chosen.model_options or ModelOptions()).image in BACKBONES and chosen.model is None:
            num_images *= _BACKBONE_COST
        options = chosen.options.resolved(steps, is_validated=is_validated, images_per_epoch=num_images)
        return replace(chosen, options=options), loaders

    def _run(self, tasks: Mapping[str, Task], loaders: TrainingLoaders, *, resume: bool) -> Run:
        for number, split in enumerate(self._list_splits()):
            check_finite(split, self.pipeline, is_described=not number)
        parts = self._assemble(tasks, loaders)
        model, tasks, checkpoints = parts.model, parts.tasks, parts.checkpoints
        if loaders.validation is not None and not self.callbacks:
            check_monitor(parts.fitted, self.options.monitor)
        moment = checkpoints.load() if resume else None
        found = {"logits": parts.logits, "class_weights": parts.weights}
        settings = self._describe(model, tasks, loaders, parts.built_from, found)
        predict = KerasPredictor(model, self.pipeline, tasks, parts.logits)
        if checkpoints.status != "finished":
            settings = self._fit(
                (predict, parts.fitted), loaders, checkpoints, moment, settings, resume=resume
            )
        else:
            load_weights(self.folder, model, self.pipeline)
            settings = read_run_config(self.folder / CONFIG_NAME)
            self.watcher.note("The run was already finished: there was nothing to train.")
        choices = read_choices(settings.get("facts"), self.folder / CONFIG_NAME)
        history = read_history(self.folder)
        return Run(self.folder, model, self.pipeline, tasks, parts.logits, history, settings, choices)

    def _assemble(self, tasks: Mapping[str, Task], loaders: TrainingLoaders) -> _Assembled:
        """Build or check the model, and compile it."""
        model, built_from = self._make_model(tasks)
        tasks = read_tasks(model, tasks)
        logits = find_logits(model, tasks, self.pipeline)
        for split in self._list_splits() if self.worker is None else ():
            check_labels(model, tasks, self.pipeline, split)
        counts = count_classes(loaders.read_targets(), tasks)
        for note in list_single_record_classes(counts, tasks):
            self.watcher.note(note)
        members = None if is_compiled_by_owner(model) else find_members(model, tasks)
        weights = self._compile((model, members), tasks, loaders.train, logits, counts)
        fitted = model if members is None else members.model
        build_state(fitted, loaders.train)
        checkpoints = Checkpoints(self.folder, self.identify(loaders.train, built_from))
        return _Assembled(model, built_from, tasks, logits, weights, fitted, checkpoints)

    def fit_share(self, on_built: Callable[[], None] = lambda: None) -> None:
        """Train as one of several workers, from the last checkpoint in the folder to the end.

        The model must be built inside `Worker.distributing`.

        Args:
            on_built: Called once the model is built and the checkpoint is read.

        Raises:
            StateError: There is no checkpoint of this run.
            PenstockError: See `run`.
        """
        if self.worker is None:
            raise TypeError("a training without a worker: call run()")
        # Of what Keras creates without a seed, all workers need the same; a checkpoint then restores it.
        set_seed(self.options.seed)
        # The notes are those of the process that started the workers. Of whole batches, few are read.
        options = replace(self.options, cache=None)
        prepared, whole = replace(self, watcher=SilentWatcher(), options=options).prepare()
        cached = replace(prepared, options=replace(prepared.options, cache=self.options.cache))
        share = cached.make_loaders(self.worker.shard)
        parts = prepared._assemble(find_tasks(self.pipeline), whole)
        moment = parts.checkpoints.load()
        if moment is None:
            raise StateError("checkpoints", path=self.folder, expected="at least one", got="none")
        on_built()
        Fitting(
            parts.fitted,
            share.train,
            share.validation,
            prepared.options,
            self.folder,
            parts.checkpoints,
            self.watcher,
            worker=self.worker,
            whole=(whole.train, whole.validation),
        ).run(moment)

    def _fit(
        self,
        models: tuple[KerasPredictor, Any],
        loaders: TrainingLoaders,
        checkpoints: Checkpoints,
        moment: Checkpoint | None,
        settings: Mapping[str, Any],
        *,
        resume: bool,
    ) -> dict[str, Any]:
        """Fit the model, choose on the validation records, and return the tables of `run.yaml`."""
        predict, fitted = models
        model = predict.model
        if moment is None:
            self.pipeline.save(self.folder / PIPELINE_NAME)
            manifest = getattr(self.data, "manifest", None)
            save_fields(self.folder, self.data.schema, None if manifest is None else manifest.plan)
            write_run_config(self.folder, settings)
            self._train_head(model, resume=resume)
        else:
            self.watcher.note(f"Resuming at step {moment.step}.")
        fitting = Fitting(
            fitted,
            loaders.train,
            loaders.validation,
            self.options,
            self.folder,
            checkpoints,
            self.watcher,
            self.callbacks,
        )
        try:
            if self.launch is not None:
                moment = fitting.run_elsewhere(moment, partial(self.launch, self, loaders.train))
            journal = fitting.run(moment)
        except NonFiniteError:
            checkpoints.finish("failed", save_weights(self.folder, model, self.pipeline))
            raise
        # Before the run is marked as finished: a run that is killed here repeats the choices.
        kept = list(predict.tasks) if is_compiled_by_owner(model) else settings["facts"]["class_weights"]
        choices = loaders.choose(predict, kept)
        settings = _add_choices(settings, choices)
        write_run_config(self.folder, settings)
        checkpoints.finish("finished", save_weights(self.folder, model, self.pipeline))
        best, monitor = journal.best, fitting.monitor
        if best.best_epoch < 0:
            self.watcher.end(f"{monitor} was never a finite number: the weights of the last epoch are kept")
        elif monitor is None:
            self.watcher.end(f"kept epoch {best.best_epoch + 1}, the last")
        else:
            self.watcher.end(f"kept epoch {best.best_epoch + 1}, the best by {monitor}: {best.best:.4g}")
        return settings

    def _train_head(self, model: Any, *, resume: bool) -> None:
        """Run the first stage of a run that fine-tunes a pretrained encoder."""
        if self.model is not None or not is_fine_tuned(model):
            return
        head: Training = make_head(self, model.built_from)
        if resume and read_result(head.folder)[0] == "finished":
            # Its own note would be that the run is finished, and the others are those of the second stage.
            head = replace(head, watcher=SilentWatcher())
            self.watcher.note("First stage: already finished; its weights are loaded.")
        else:
            self.watcher.note("First stage: all layers except the pretrained image encoder.")
        loaders = replace(head, watcher=SilentWatcher()).make_loaders()
        trained = head._run(find_tasks(self.pipeline), loaders, resume=resume)
        model.set_weights(trained.model.get_weights())
        self.watcher.note("Second stage: all weights, at a lower learning rate.")

    def _list_splits(self) -> list[Split]:
        return [self.data[name] for name in list_training_splits(self.data)]

    def make_loaders(self, shard: tuple[int, int] | None = None) -> TrainingLoaders:
        """Return the loaders of the run.

        Args:
            shard: (rank, number) of one of several workers, for its part of each batch.

        Raises:
            TrainingDataError: No record has a target.
        """
        is_shared = self.launch is not None or self.worker is not None
        return self.plan_loaders().make((0, 1) if shard is None and is_shared else shard)

    def plan_loaders(self) -> LoaderPlan:
        """Return which records the run reads."""
        return LoaderPlan(self.data, self.pipeline, self.options, self.watcher, self.sample)

    def _make_model(self, tasks: Mapping[str, Task]) -> tuple[Any, ModelOptions | None]:
        """Return the model, and the options that it was built from, if Penstock built it."""
        if self.model is None:
            options = (self.model_options or ModelOptions()).resolved()
            if not count_images(self.pipeline):
                options = replace(options, image_weights=None, freeze_image=False, fine_tune=False)
            with seeded(self.options.seed), in_precision(self.options.precision):
                model = build_model(self.pipeline.schema, self.pipeline, options)
            keep_statistics(model)
            return model, options
        check_model(self.model, self.pipeline, tasks)
        return self.model, getattr(self.model, "built_from", None)

    def _compile(
        self,
        models: tuple[Any, Members | None],
        tasks: Mapping[str, Task],
        loader: Loader,
        logits: Mapping[str, bool],
        counts: Mapping[str, tuple[int, ...]],
    ) -> dict[str, Any]:
        model, members = models
        if is_compiled_by_owner(model):
            self.watcher.note("The model is already compiled: its own optimizer and losses are used.")
            return {}
        options = self.options
        weights = compute_class_weights(counts, tasks, options.class_weights)
        for name, given in weights.items():
            pairs = zip(tasks[name].labels, given, strict=True)
            shown = ", ".join(
                f"{show(label)} by {weight:.2g}" for label, weight in islice(pairs, _MOST_SHOWN)
            )
            shown += ", …" if len(given) > _MOST_SHOWN else ""
            of_target = f" of {name!r}" if len(tasks) > 1 else ""
            if isinstance(options.class_weights, Mapping):
                self.watcher.note(f"Classes{of_target} are weighted as given: {shown}.")
            else:
                self.watcher.note(f"Rare classes{of_target} are weighted up: {shown}.")
        total = loader.num_steps(0) * options.num_epochs
        if self.model is None and is_fine_tuned(model):
            options = replace(options, learning_rate=options.learning_rate * TUNING_RATE)
        robust = tuple(name for name, loss in self.losses.items() if loss == "huber")
        plan = replace(plan_compilation(options, total), class_weights=weights, robust=robust)
        compile_model(model, tasks, plan, logits)
        setattr(model.optimizer, _COMPILED_BY_RUN, True)
        if members is not None:
            compile_model(members.model, tasks, plan, logits, members.counts)
            setattr(members.model.optimizer, _COMPILED_BY_RUN, True)
        return weights

    def identify(self, loader: Loader, built_from: ModelOptions | None) -> dict[str, Any]:
        """Return what a checkpoint must have in common with this run: everything that changes the weights."""
        return {
            "pipeline": self.pipeline.fingerprint(),
            "data": loader.state_dict()["data"],
            "backend": keras.backend.backend(),
            "model": OWN_MODEL if built_from is None else built_from.to_json(),
            **list_effective(self.options),
            # Only where they differ from the usual: runs of earlier versions have none.
            **({"losses": dict(self.losses)} if self.losses else {}),
        }

    def list_options(self, *, model_is_owners: bool) -> dict[str, Any]:
        """Return the options that are used; a model that its owner has compiled does not use all."""
        options = self.options.to_json()
        return {name: each for name, each in options.items() if name not in COMPILED or not model_is_owners}

    def describe_choices(self) -> dict[str, Any]:
        """Return what was chosen before the run started, for `facts` of `run.yaml`."""
        found = {"numbers": dict(self.numbers), "parts": dict(self.parts)}
        return {name: table for name, table in found.items() if table}

    def _describe(
        self,
        model: Any,
        tasks: Mapping[str, Task],
        loaders: TrainingLoaders,
        built_from: ModelOptions | None,
        found: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the tables of `run.yaml`."""
        train = loaders.train
        facts = {
            "keras": keras.version(),
            "backend": keras.backend.backend(),
            "batch_size": train.options.batch_size,
            "steps_per_epoch": train.num_steps(0),
            "targets": {
                name: {"kind": task.kind, "labels": len(task.labels)} for name, task in tasks.items()
            },
            **found,
            **self.describe_choices(),
            **describe_stages(self.options, built_from if self.model is None else None),
            "validation": None if loaders.validation is None else HELD_OUT,
            "pipeline": self.pipeline.fingerprint(),
        }
        if (held := find_validation(self.data)) is not None:
            facts["validation"] = held
        return {
            **self.settings,
            "model": OWN_MODEL if built_from is None else built_from.to_json(),
            "train": self.list_options(model_is_owners=is_compiled_by_owner(model)),
            "facts": facts,
        }


def list_effective(options: TrainOptions) -> dict[str, Any]:
    """Return the options that change the weights."""
    found = {name: each for name, each in options.to_json().items() if name not in WITHOUT_EFFECT}
    if options.precision is None:  # runs of earlier versions have none
        del found["precision"]
    return found


def is_compiled_by_owner(model: Any) -> bool:
    """Whether a user has compiled the model; a model that a run compiled is compiled again by the next."""
    return bool(getattr(model, "compiled", False)) and not getattr(model.optimizer, _COMPILED_BY_RUN, False)


def _add_choices(settings: Mapping[str, Any], choices: Mapping[str, ValidationChoice]) -> dict[str, Any]:
    """Return the tables of `run.yaml` with the choices made on validation."""
    if not choices:
        return dict(settings)
    found = {name: each.to_json() for name, each in choices.items()}
    return {**settings, "facts": {**settings["facts"], "choices": found}}
