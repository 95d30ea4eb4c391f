"""Training from end to end: the model is built or checked, compiled, fitted, and left in a run folder.

In: an opened data set, a pipeline, a model or none, options, a folder. Out: a `Run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import keras

from penstock.batch.loader import Loader
from penstock.batch.options import LoadChoices
from penstock.dataset import Dataset, Split
from penstock.errors import NonFiniteError, TrainingDataError
from penstock.foundation.wording import show
from penstock.model.build import build_model
from penstock.model.finite import check_finite
from penstock.model.labels import check_labels, read_tasks
from penstock.model.match import check_model
from penstock.model.options import ModelOptions
from penstock.model.outputs import find_logits
from penstock.model.task import Task, find_tasks
from penstock.model.unlabelled import Labelled, find_labelled
from penstock.training.checkpoint import Checkpoints, Moment
from penstock.training.class_weights import count_classes, list_single, weigh_classes
from penstock.training.compilation import CompilePlan, compile_model
from penstock.training.fitting import Fitting, build_state, check_monitor
from penstock.training.options import TrainOptions
from penstock.training.progress import Silence, Watcher
from penstock.training.run import PIPELINE_NAME, Run, load_weights, save_fields, save_weights
from penstock.training.run_files import HELD_OUT, OWN_MODEL, read_history, write_run_config
from penstock.training.seeding import restored_randomness, seeded
from penstock.transform.pipeline import Pipeline

_TRAIN: Final = "train"
_VALIDATION: Final = ("validation", "val", "valid", "dev")
_MOST_TOLD: Final = 10
_LEAST_HELD_OUT: Final = 8  # records, or what they say of a model is chance
COMPILED: Final = (
    *("optimizer", "learning_rate", "weight_decay", "warmup", "clip", "class_weights", "loss_weights"),
)
"""Options of which a model that its owner has compiled takes none."""

# With any of these the weights are the same.
_FREE: Final = ("num_threads", "cache", "checkpoint_seconds", "checkpoint_steps", "unlabelled")
_LABEL_ROWS: Final = 1 << 16
_OURS: Final = "is_of_a_run"
_LOADER_SEED: Final = 1  # another one than that of the model: neither knows of the other


@dataclass(frozen=True)
class Training:
    """What is trained, and where.

    Attributes:
        data: The data set.
        pipeline: Fitted to it.
        folder: Of the run.
        options: How to train.
        model: A user's own, or None to build one.
        model_options: How to build one.
        settings: Further tables for `run.yaml`.
        callbacks: A user's own, of Keras.
        watcher: Who hears of it.
    """

    data: Dataset
    pipeline: Pipeline
    folder: Path
    options: TrainOptions
    model: Any = None
    model_options: ModelOptions | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    callbacks: Sequence[Any] = ()
    watcher: Watcher = field(default_factory=Silence)

    def run(self, *, resume: bool = False) -> Run:
        """Train, and return the run; the random state of the caller is restored at the end.

        Args:
            resume: Whether to continue a run in this folder that was killed.

        Raises:
            OptionError: The model does not fit the pipeline, or there is nothing to train on.
            FieldError: A label or a number cannot be learned from.
            NonFiniteError: A step gave a loss that is not finite.
            StateError: What is in the folder is of another run.
        """
        with restored_randomness():
            return self._run(resume=resume)

    def _run(self, *, resume: bool) -> Run:
        tasks = find_tasks(self.pipeline)
        loaders = self._make_loaders()
        for number, split in enumerate(self._list_splits()):
            check_finite(split, self.pipeline, is_described=not number)
        model, built_from = self._make_model(tasks)
        tasks = read_tasks(model, tasks)
        logits = find_logits(model, tasks, self.pipeline)
        for split in self._list_splits():
            check_labels(model, tasks, self.pipeline, split)
        counts = count_classes(loaders.read_targets(), tasks)
        for note in list_single(counts, tasks):
            self.watcher.note(note)
        weights = self._compile(model, tasks, loaders.train, logits, counts)
        build_state(model, loaders.train)
        if loaders.validation is not None and not self.callbacks:
            check_monitor(model, self.options.monitor)
        checkpoints = Checkpoints(self.folder, self._identify(loaders.train, built_from))
        moment = checkpoints.load() if resume else None
        settings = self._describe(
            model, tasks, loaders, built_from, {"logits": logits, "class_weights": weights}
        )
        if checkpoints.status != "finished":
            self._fit(model, loaders, checkpoints, moment, settings)
        else:
            load_weights(self.folder, model, self.pipeline)
            self.watcher.note("the run had come to its end already: nothing was done")
        return Run(self.folder, model, self.pipeline, tasks, logits, read_history(self.folder), settings)

    def _fit(
        self,
        model: Any,
        loaders: _Loaders,
        checkpoints: Checkpoints,
        moment: Moment | None,
        settings: Mapping[str, Any],
    ) -> None:
        if moment is None:
            self.pipeline.save(self.folder / PIPELINE_NAME)
            manifest = getattr(self.data, "manifest", None)
            save_fields(self.folder, self.data.schema, None if manifest is None else manifest.plan)
            write_run_config(self.folder, settings)
        else:
            self.watcher.note(f"goes on at step {moment.step}")
        fitting = Fitting(
            model,
            loaders.train,
            loaders.validation,
            self.options,
            self.folder,
            checkpoints,
            self.watcher,
            self.callbacks,
        )
        try:
            journal = fitting.run(moment)
        except NonFiniteError:
            checkpoints.finish("failed", save_weights(self.folder, model, self.pipeline))
            raise
        checkpoints.finish("finished", save_weights(self.folder, model, self.pipeline))
        best, named = journal.best, fitting.monitor
        if best.best_epoch < 0:
            self.watcher.end(f"no epoch has a {named} that is a number: the last weights are kept")
        else:
            told = "the last" if named is None else f"the best by {named}, {best.best:.4g}"
            self.watcher.end(f"epoch {best.best_epoch + 1} is {told}")

    def _list_splits(self) -> list[Split]:
        names = (_find_train(self.data), _find_validation(self.data))
        return [self.data[name] for name in names if name is not None]

    def _make_loaders(self) -> _Loaders:
        options = self.options
        name, held = _find_train(self.data), _find_validation(self.data)
        split = self.data[name]
        share = find_hold_out(self.data, options)
        self._note_validation(share)
        labelled = self._find_labelled(split)
        if not labelled.num_records:
            advice = "Name another target: --target NAME, in Python target='NAME'."
            got = f"none in all {labelled.num_missing} records"
            what = f"target {labelled.targets[0]!r} of split {name!r}"
            raise TrainingDataError(
                what, field=labelled.targets[0], expected="a value at least", got=got, advice=advice
            )
        size = options.choose_batch_size(round(labelled.num_records * (1 - share)))
        choices: LoadChoices = {"num_threads": options.num_threads, "cache": options.cache}
        rows: LoadChoices = {"filter": labelled.filter, "part": (share, 1.0) if share else None}
        train_choices: LoadChoices = {
            **choices,
            **rows,
            "augment": True if self.pipeline.augments else None,
        }
        train = split.loader(
            self.pipeline,
            batch_size=size,
            shuffle=options.shuffle,
            seed=options.seed + _LOADER_SEED,
            **train_choices,
        )
        label_choices: LoadChoices = {**rows, "num_threads": options.num_threads}
        labels = split.loader(self.pipeline.without_inputs(), batch_size=_LABEL_ROWS, **label_choices)
        validated, rows = split, {"filter": labelled.filter, "part": (0.0, share)}
        if held is not None:
            found = self._find_labelled(self.data[held])
            if not found.num_records:
                self.watcher.note(f"no validation: no record of {held!r} has a target")
                return _Loaders(train, labels, None)
            validated, rows = self.data[held], {"filter": found.filter}
        elif not share:
            return _Loaders(train, labels, None)
        held_choices: LoadChoices = {**choices, **rows, "augment": False}
        validation = validated.loader(self.pipeline, batch_size=size, **held_choices)
        return _Loaders(train, labels, validation)

    def _note_validation(self, share: float) -> None:
        """Note what the best epoch is decided by, where there is no split for that."""
        name, wanted = _find_train(self.data), self.options.hold_out
        if _find_validation(self.data) is not None:
            return
        if share:
            self.watcher.note(f"no split to validate with: {share:.0%} of {name!r} are held out for that")
        elif wanted:
            number = len(self.data[name])
            self.watcher.note(f"no validation: {number} records are too few to hold some out")
        else:
            self.watcher.note(
                "no split to validate with: all epochs are trained, and the last weights kept "
                "(--hold-out 0.1, in Python hold_out=0.1, validates with a tenth)"
            )

    def _find_labelled(self, split: Split) -> Labelled:
        """Find the records that have all targets, and note the others.

        Raises:
            FieldError: Records lack a target, and none may.
        """
        threads = self.options.num_threads
        found = find_labelled(split.as_source(), self.pipeline, 1 if threads is None else threads)
        if found.num_missing:
            if self.options.unlabelled == "error":
                raise found.make_error(split.name)
            self.watcher.note(
                f"{found.describe(split.name)}: they are left out (--unlabelled error, in Python "
                "unlabelled='error', refuses such data)"
            )
        return found

    def _make_model(self, tasks: Mapping[str, Task]) -> tuple[Any, ModelOptions | None]:
        """Return the model, and what it was built from, if Penstock built it."""
        if self.model is None:
            options = (self.model_options or ModelOptions()).resolved()
            with seeded(self.options.seed):
                return build_model(self.pipeline.schema, self.pipeline, options), options
        check_model(self.model, self.pipeline, tasks)
        return self.model, getattr(self.model, "built_from", None)

    def _compile(
        self,
        model: Any,
        tasks: Mapping[str, Task],
        loader: Loader,
        logits: Mapping[str, bool],
        counts: Mapping[str, tuple[int, ...]],
    ) -> dict[str, Any]:
        if is_compiled_by_owner(model):
            self.watcher.note("the model is compiled: it is trained with its own optimizer and losses")
            return {}
        options = self.options
        weights = weigh_classes(counts, tasks, options.class_weights)
        for name, given in weights.items():
            pairs = zip(tasks[name].labels, given, strict=True)
            shown = ", ".join(
                f"{show(label)} counts {weight:.2g}" for label, weight in islice(pairs, _MOST_TOLD)
            )
            self.watcher.note(f"class weights of {name!r}, in its losses too: {shown}")
        total = loader.num_steps(0) * options.epochs
        plan = CompilePlan(
            optimizer=options.optimizer,
            learning_rate=options.learning_rate,
            weight_decay=options.weight_decay,
            warmup_steps=round(total * options.warmup),
            total_steps=total,
            clip=options.clip,
            class_weights=weights,
            loss_weights=options.loss_weights,
        )
        compile_model(model, tasks, plan, logits)
        setattr(model.optimizer, _OURS, True)
        return weights

    def _identify(self, loader: Loader, built_from: ModelOptions | None) -> dict[str, Any]:
        """Return what a checkpoint must be one of; what does not change the weights is not in it."""
        train = self.options.to_json()
        return {
            "pipeline": self.pipeline.fingerprint(),
            "data": loader.state_dict()["data"],
            "backend": keras.backend.backend(),
            "model": OWN_MODEL if built_from is None else built_from.to_json(),
            **{name: value for name, value in train.items() if name not in _FREE},
        }

    def _list_options(self, *, model_is_owners: bool) -> dict[str, Any]:
        """Return the options that count: some do not for a model that its owner has compiled."""
        options = self.options.to_json()
        return {name: each for name, each in options.items() if name not in COMPILED or not model_is_owners}

    def _describe(
        self,
        model: Any,
        tasks: Mapping[str, Task],
        loaders: _Loaders,
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
            "validation": None if loaders.validation is None else HELD_OUT,
            "pipeline": self.pipeline.fingerprint(),
        }
        if (held := _find_validation(self.data)) is not None:
            facts["validation"] = held
        return {
            **self.settings,
            "model": OWN_MODEL if built_from is None else built_from.to_json(),
            "train": self._list_options(model_is_owners=is_compiled_by_owner(model)),
            "facts": facts,
        }


def is_compiled_by_owner(model: Any) -> bool:
    """Whether a model was compiled, and not for a run: what a run has compiled, another compiles anew."""
    return bool(getattr(model, "compiled", False)) and not getattr(model.optimizer, _OURS, False)


class _Loaders(NamedTuple):
    """Loaders of a run: of the batches to train on, of the targets of the same records, of the validation."""

    train: Loader
    labels: Loader
    validation: Loader | None

    def read_targets(self) -> Iterator[Mapping[str, Any]]:
        """Yield the targets of all records to train on, without reading their inputs."""
        with self.labels.read(0) as batches:
            for batch in batches:
                yield batch[1]


def find_hold_out(data: Dataset, options: TrainOptions) -> float:
    """Return which part of the train split is held out: none where there is a split to validate with.

    Held out are the records below this share, and the others are trained on, as the option `part` of a loader
    selects them.
    """
    if (
        _find_validation(data) is not None
        or len(data[_find_train(data)]) * options.hold_out < _LEAST_HELD_OUT
    ):
        return 0.0
    return options.hold_out


def _find_train(data: Dataset) -> str:
    if _TRAIN in data.splits:
        return _TRAIN
    if len(data.splits) == 1:
        return data.splits[0]
    raise TrainingDataError(
        "splits of the data set",
        expected=f"one called {_TRAIN!r}, or one alone",
        got=", ".join(data.splits) or "none",
        advice="Convert it with --split train=0.8,test=0.2, or name the files of the train split alone.",
    )


def _find_validation(data: Dataset) -> str | None:
    trained = _find_train(data)  # the only split may have any name
    names = [name for name in _VALIDATION if name in data.splits and name != trained]
    return next((name for name in names if len(data[name])), None)
