"""Fit a plan in this process: build or check the model, fit it, and write the run folder.

In: a `TrainPlan`, a folder. Out: a `Run`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import keras

from penstock.errors import NonFiniteError, StateError
from penstock.model.keras_predictor import KerasPredictor
from penstock.model.usable_records import check_finite
from penstock.training.assembly import (
    Assembly,
    assemble,
    describe_stages,
    find_head_folder,
    is_compiled_by_owner,
    is_fine_tuned,
    plan_head,
)
from penstock.training.batch_fault import REVISION, describe_batch_fault, find_batch_fault, keep_revision
from penstock.training.distribution import Worker, WorkerLauncher
from penstock.training.history import read_history
from penstock.training.keras_fit import KerasFit, check_monitor
from penstock.training.keras_state import restored_random_state, set_seed
from penstock.training.loaders import TrainingLoaders, find_validation
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.recorded_data import read_fields
from penstock.training.run import Run
from penstock.training.run_config import RunConfig, store_model
from penstock.training.run_facts import HELD_OUT, RunSeconds, TargetFacts
from penstock.training.run_files import CONFIG_NAME, read_config
from penstock.training.run_model import load_weights
from penstock.training.run_state import read_result
from penstock.training.run_writer import Checkpoint, RunWriter
from penstock.training.train_plan import Chosen, TrainPlan

_log = logging.getLogger("penstock")


@dataclass(frozen=True)
class Fit:
    """The training of a plan in one process, alone or as one of several workers.

    Attributes:
        plan: The model to train, and its data.
        folder: Folder of the run.
        watcher: Object that is notified of progress.
        callbacks: The user's own Keras callbacks.
        launcher: Starts workers, which train from the checkpoint in the folder to the last one; None trains
            in this process.
        worker: This process as one of several workers, for `run_share`; None outside of one.
    """

    plan: TrainPlan
    folder: Path
    watcher: Watcher = field(default_factory=SilentWatcher)
    callbacks: Sequence[Any] = ()
    launcher: WorkerLauncher | None = None
    worker: Worker | None = None

    def run(self, *, resume: bool = False) -> Run:
        """Train, and return the run; the random state of the caller is restored at the end.

        `resume`: whether to continue a run in this folder that was interrupted.
        """
        with restored_random_state():
            prepared, loaders = self.prepare()
            return prepared._run(loaders, resume=resume)

    def run_unfinished(self) -> tuple[KerasPredictor, TrainingLoaders]:
        """Train up to the last checkpoint, without finishing the run; return its calibrated predictor."""
        with restored_random_state():
            prepared, loaders = self.prepare()
            made, writer = prepared._assemble(loaders)
            prepared._make_keras_fit(made, loaders, writer).run(writer.checkpoints.load())
            choices = loaders.choose(made.make_predictor(self.plan), list(made.weights))
            temperatures = {name: each.temperature for name, each in choices.items()}
            return made.make_predictor(self.plan, temperatures), loaders

    def run_share(self, on_built: Callable[[], None] = lambda: None) -> None:
        """Train as one of several workers, from the last checkpoint in the folder to the end.

        The model must be built inside `Worker.distributing`.

        `on_built`: called once the model is built and the checkpoint is read.
        """
        if self.worker is None:
            raise TypeError("a fit without a worker: call run()")
        options = self.plan.options
        # Of what Keras creates without a seed, all workers need the same; a checkpoint then restores it.
        set_seed(options.seed)
        # Notes come from the process that started the workers. Few whole batches are read.
        uncached = replace(self.plan, options=options.replace(cache=None))
        plan, whole = uncached.prepare(shard=self._shard)
        cached = replace(plan, options=plan.options.replace(cache=options.cache))
        share = cached.make_loaders(shard=self.worker.shard)
        made = assemble(plan, whole, SilentWatcher(), checks_labels=False)
        writer = RunWriter(self.folder, plan.identify(whole.train, made.built_from))
        moment = writer.checkpoints.load()
        if moment is None:
            raise StateError("checkpoints", path=self.folder, expected="at least one", got="none")
        on_built()
        KerasFit(
            made.fitted,
            share.train,
            share.validation,
            plan.options,
            writer,
            self.watcher,
            worker=self.worker,
            whole=(whole.train, whole.validation),
        ).run(moment)

    def prepare(self) -> tuple[Fit, TrainingLoaders]:
        """Return the fit of the plan with all options, and the loaders of the plan."""
        plan, loaders = self.plan.prepare(self.watcher, self._shard)
        return replace(self, plan=plan), loaders

    @property
    def _shard(self) -> tuple[int, int] | None:
        """Whole batches in the order of several workers, if there are any."""
        return None if self.launcher is None and self.worker is None else (0, 1)

    def _run(self, loaders: TrainingLoaders, *, resume: bool) -> Run:
        plan = self.plan
        made, writer = self._assemble(loaders)
        checkpoints = writer.checkpoints
        moment = checkpoints.load() if resume or plan.is_fitted else None
        config = keep_revision(describe_fit(plan, made, loaders), self.folder / CONFIG_NAME)
        if checkpoints.status != "finished":
            config = self._fit(made, loaders, writer, moment, config, resume=resume)
        else:
            load_weights(self.folder, made.model, plan.pipeline)
            config = self._calibrate_again(made, loaders, writer)
        return Run(
            folder=self.folder,
            model=made.model,
            pipeline=plan.pipeline,
            tasks=made.tasks,
            logits=made.logits,
            history=read_history(self.folder),
            config=config,
            recorded=read_fields(self.folder, config.reading),
            choices=config.facts.choices,
        )

    def _assemble(self, loaders: TrainingLoaders) -> tuple[Assembly, RunWriter]:
        """Check the numbers of the data, and assemble the model; check the name of the monitored metric."""
        plan = self.plan
        for number, split in enumerate(() if plan.is_fitted else plan.splits):
            check_finite(split, plan.pipeline, is_described=not number)
        made = assemble(plan, loaders, self.watcher)
        if loaders.validation is not None and not self.callbacks:
            check_monitor(made.fitted, plan.options.monitor)
        return made, RunWriter(self.folder, plan.identify(loaders.train, made.built_from))

    def _fit(
        self,
        made: Assembly,
        loaders: TrainingLoaders,
        writer: RunWriter,
        moment: Checkpoint | None,
        config: RunConfig,
        *,
        resume: bool,
    ) -> RunConfig:
        """Fit the model, choose on the validation records, and return the content of `run.yaml`."""
        plan, model = self.plan, made.model
        if moment is None or not writer.has_config:  # a fit writes checkpoints alone
            writer.write_inputs(plan.data, plan.pipeline)
            writer.write_config(config)
        if moment is None:
            self._fit_head(model, resume=resume)
        elif not plan.is_fitted:
            self.watcher.note(f"Resuming at step {moment.step}.")
        fit = self._make_keras_fit(made, loaders, writer)
        try:
            if self.launcher is not None:
                moment = fit.run_elsewhere(self.launcher, plan.data, moment)
            journal = fit.run(moment)
        except NonFiniteError:
            writer.finish(model, plan.pipeline, "failed")
            raise
        # Before the run is marked as finished: a run that is killed here repeats the choices.
        kept = list(made.tasks) if is_compiled_by_owner(model) else config.facts.class_weights
        choices = loaders.choose(made.make_predictor(plan), kept)
        seconds = replace(config.facts.seconds or RunSeconds(), training=round(journal.elapsed, 1))
        config = replace(config, facts=replace(config.facts, choices=choices, seconds=seconds))
        writer.write_config(config)
        writer.finish(model, plan.pipeline)
        best, monitor = journal.best, fit.monitor
        if best.best_epoch < 0:
            self.watcher.end(f"{monitor} was never a finite number: the weights of the last epoch are kept")
        elif monitor is None:
            self.watcher.end(f"kept epoch {best.best_epoch + 1}, the last")
        else:
            self.watcher.end(f"kept epoch {best.best_epoch + 1}, the best by {monitor}: {best.best:.4g}")
        return config

    def _make_keras_fit(self, made: Assembly, loaders: TrainingLoaders, writer: RunWriter) -> KerasFit:
        given = (self.plan.options, writer, self.watcher, self.callbacks)
        return KerasFit(made.fitted, loaders.train, loaders.validation, *given)

    def _calibrate_again(self, made: Assembly, loaders: TrainingLoaders, writer: RunWriter) -> RunConfig:
        """Return the `run.yaml` of a finished run, with new choices if an earlier version chose wrongly."""
        config = read_config(self.folder / CONFIG_NAME)
        fault = find_batch_fault(config, self.plan.pipeline, made.tasks.values())
        if fault != "choices":
            self.watcher.note("The run was already finished: there was nothing to train.")
            if fault:
                _log.warning("%s", describe_batch_fault(fault, self.folder, config))
            return config
        choices = loaders.choose(made.make_predictor(self.plan), config.facts.class_weights)
        config = replace(config, facts=replace(config.facts, revision=REVISION, choices=choices))
        writer.write_config(config)
        self.watcher.note("The run was already finished: it was calibrated again.")
        return config

    def _fit_head(self, model: Any, *, resume: bool) -> None:
        """Run the first stage of a run that fine-tunes a pretrained encoder."""
        if self.plan.model is not None or not is_fine_tuned(model):
            return
        head = replace(
            self, plan=plan_head(self.plan, model.built_from), folder=find_head_folder(self.folder)
        )
        if resume and read_result(head.folder)[0] == "finished":
            # Its own note would be that the run is finished, and the others belong to the second stage.
            head = replace(head, watcher=SilentWatcher())
            self.watcher.note("First stage: already finished; its weights are loaded.")
        else:
            self.watcher.note("First stage: all layers except the pretrained image encoder.")
        trained = head._run(head.plan.make_loaders(shard=head._shard), resume=resume)
        model.set_weights(trained.model.get_weights())
        self.watcher.note("Second stage: all weights, at a lower learning rate.")


def describe_fit(plan: TrainPlan, made: Assembly, loaders: TrainingLoaders) -> RunConfig:
    """Return the content of `run.yaml` before the model is fitted."""
    train, held_out = loaders.train, None if loaders.validation is None else HELD_OUT
    facts = replace(
        (plan.chosen or Chosen()).describe(),
        revision=REVISION,
        keras=keras.version(),
        backend=keras.backend.backend(),
        batch_size=train.options.batch_size,
        steps_per_epoch=train.num_steps(0),
        targets={name: TargetFacts(task.kind, len(task.labels)) for name, task in made.tasks.items()},
        logits=made.logits,
        class_weights=made.weights,
        stages=describe_stages(plan.options, made.built_from if plan.model is None else None),
        validation=find_validation(plan.data) or held_out,
        pipeline=plan.pipeline.fingerprint(),
    )
    return replace(
        plan.config,
        model=store_model(made.built_from),
        train=plan.list_options(model_is_owners=is_compiled_by_owner(made.model)),
        facts=facts,
    )
