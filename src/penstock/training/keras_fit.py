"""Fit a model with Keras' own `fit`, from the beginning or from a checkpoint.

In: a compiled model, loaders, options, a folder. Out: the model with its best weights, and the files of the
run. A run that is interrupted and resumed ends with the same weights, bit for bit on one CPU.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from penstock.batch.loader import Loader
from penstock.bridge.keras import KerasFeed
from penstock.dataset import Dataset
from penstock.errors import NonFiniteError, OptionError
from penstock.foundation.wording import find_nearest
from penstock.settings.training import TrainOptions
from penstock.training.callbacks import (
    AveragedWeights,
    BestEpoch,
    DataLoss,
    LossFault,
    LossGuard,
    explain_fault,
)
from penstock.training.defaults import count_epochs, find_patience
from penstock.training.distribution import SharedLogs, Worker, WorkerLauncher, make_feed
from penstock.training.history import DATA_LOSS, is_lower_better
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.recorder import Recorder, StartCallback, StepReached, TrainingState
from penstock.training.run_writer import Checkpoint, RunWriter
from penstock.training.snapshot import restore_callbacks, restore_model


@dataclass(frozen=True)
class KerasFit:
    """A compiled model, its data and the options to fit it with.

    Attributes:
        callbacks: The user's own Keras callbacks.
        worker: This process as one of several workers, whose loaders read its part of each batch; or None.
        whole: Loaders of whole training and validation batches, for a worker.
    """

    model: Any
    loader: Loader
    validation: Loader | None
    options: TrainOptions
    writer: RunWriter
    watcher: Watcher
    callbacks: Sequence[Any] = ()
    worker: Worker | None = None
    whole: tuple[Loader | None, Loader | None] = (None, None)

    def run(self, moment: Checkpoint | None = None) -> TrainingState:
        """Train to the end, from a checkpoint if one is given; the model has the best weights afterwards."""
        journal = self._begin(moment, self.watcher)
        try:
            self._fit(journal)
            journal.save(self.model, count_epochs(self.options))
        except LossFault as fault:
            cause = self._roll_back(fault, journal)
            raise explain_fault(self.whole[0] or self.loader, fault, cause) from None
        # Nothing is saved at an interrupt: the signal arrives after a step that is not counted yet, and the
        # last checkpoint is only some seconds old.
        journal.best.restore()
        if self._is_writer:
            self.writer.write_history(journal.rows)
        return journal

    def run_elsewhere(
        self, launcher: WorkerLauncher, data: Dataset, moment: Checkpoint | None
    ) -> Checkpoint | None:
        """Let workers train from a checkpoint, and return the one that they have written last.

        `moment`: checkpoint to begin with; None writes one of the model as it is.
        """
        if moment is None:
            self._begin(None, self.watcher).save(self.model, 0)
        elif int(moment.memory["epoch"]) >= count_epochs(self.options):
            return moment
        try:
            batch_size = self.loader.options.batch_size
            launcher.launch(self.writer.folder, data, batch_size, self.watcher)
        except NonFiniteError:
            good = self.writer.checkpoints.load()
            if good is not None:
                restore_model(self.model, good.snapshot)
            raise
        return self.writer.checkpoints.load()

    @property
    def _is_writer(self) -> bool:
        return self.worker is None or self.worker.is_first

    @property
    def monitor(self) -> str | None:
        """Name of the number that decides the best epoch; None without validation."""
        return self.options.monitor if self.validation is not None else None

    def _begin(self, moment: Checkpoint | None, watcher: Watcher) -> TrainingState:
        options = self.options
        is_lower = is_lower_better(options.monitor, self.loader.signature()[1])
        best = BestEpoch(self.monitor, is_lower_better=is_lower, patience=find_patience(options))
        remembered = (*self.callbacks, best)
        journal = TrainingState(
            self.loader,
            self.writer,
            best,
            remembered,
            watcher,
            moment=moment,
            worker=self.worker,
        )
        if moment is not None:
            self.loader.load_state_dict(moment.memory["loader"])
        return journal

    def _fit(self, journal: TrainingState, stop_step: int | None = None) -> None:
        options, moment = self.options, journal.moment
        epoch = 0 if moment is None else int(moment.memory["epoch"])
        if moment is not None and epoch >= count_epochs(
            options
        ):  # interrupted after the last step, before it was marked as finished
            journal.best.set_model(self.model)
            restore_model(self.model, moment.snapshot)
            restore_callbacks(journal.remembered, moment.snapshot)
            return
        feed = make_feed(self.loader, self.whole[0], self.worker)
        held = None if self.validation is None else make_feed(self.validation, self.whole[1], self.worker)
        pace = (options.checkpoint_seconds, options.checkpoint_steps)
        callbacks = [
            StartCallback(journal),
            feed.callback,
            LossGuard(self.loader),
            AveragedWeights(),
            DataLoss(),
            *([] if self.worker is None else [SharedLogs()]),
            *journal.remembered,
            *(_make_tensorboard(self.writer.folder) if stop_step is None and self._is_writer else []),
            Recorder(journal, count_epochs(options), pace, stop_step),
        ]
        for loader in (self.loader, self.validation):
            if loader is not None:
                loader.last_error = None
        try:
            with warnings.catch_warnings():
                # A model with one input accepts a dict as well; Keras warns once, and matches by name.
                warnings.filterwarnings("ignore", "The structure of `inputs`", UserWarning)
                self.model.fit(
                    feed,
                    validation_data=held,
                    epochs=count_epochs(options),
                    initial_epoch=epoch,
                    callbacks=callbacks,
                    verbose=0,
                )
        except (LossFault, StepReached, KeyboardInterrupt):
            raise
        except Exception as error:
            for loader in (self.loader, self.validation):
                # Frameworks keep only the text of an error in a batch: raise the error itself.
                if loader is not None and loader.last_error is not None:
                    raise loader.last_error from error
            raise

    def _roll_back(self, fault: LossFault, failed: TrainingState) -> tuple[int, int]:
        """Restore the last step after which the weights were finite, by replaying from the last checkpoint.

        Return epoch and step of the next batch.
        """
        moment = self.writer.checkpoints.load() or failed.first
        if moment is None:
            return fault.epoch, fault.step
        good = sum(map(self.loader.num_steps, range(fault.epoch))) + fault.step
        quiet = replace(self, watcher=SilentWatcher())
        found = quiet._replay(moment, good)
        if found < good:
            quiet._replay(moment, found)  # up to that step, without the next one
        epoch, step = self._locate(found)
        journal = replace(failed, moment=None, step=found)
        self.loader.seek(epoch, step)
        journal.save_if_possible(self.model, epoch)
        return epoch, step

    def _replay(self, moment: Checkpoint, stop_step: int) -> int:
        """Repeat the steps from a checkpoint up to `stop_step`; return the last with finite weights."""
        journal = self._begin(moment, self.watcher)
        if moment.step >= stop_step:
            restore_model(self.model, moment.snapshot)
            return moment.step
        try:
            self._fit(journal, stop_step=stop_step)
        except StepReached as reached:
            return reached.step
        return stop_step

    def _locate(self, step: int) -> tuple[int, int]:
        """Return the epoch of a step of the whole run, and its number in that epoch."""
        epoch = 0
        while step >= self.loader.num_steps(epoch):
            step -= self.loader.num_steps(epoch)
            epoch += 1
        return epoch, step


def build_state(model: Any, loader: Loader) -> None:
    """Create all variables of a model, its optimizer and its metrics, which a checkpoint holds.

    Keras creates some of them in the first step; which ones depends on the backend.
    """
    feed = KerasFeed(loader)
    feed.adapt_to(model)
    with loader.read(0, 0, 1) as batches:
        model._symbolic_build(data_batch=feed.arrange(next(iter(batches))))
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def check_monitor(model: Any, name: str) -> None:
    """Raise an error for a `monitor` that the history will not contain, before the first epoch.

    A model with its own `train_step` or `test_step` is not checked: its metrics are not known yet.
    """
    kind = type(model)
    if kind.train_step is not keras.Model.train_step or kind.test_step is not keras.Model.test_step:
        return
    plain = list(model.get_metrics_result())
    known = [*(f"val_{each}" for each in plain), *([DATA_LOSS] if "loss" in plain else []), *plain]
    if name not in known:
        nearest = find_nearest(name, known)
        advice = f"Did you mean {nearest!r}?" if nearest else f"Choose one of {', '.join(known)}."
        raise OptionError(
            "monitor", expected="the name of a metric in the history", got=repr(name), advice=advice
        )


def _make_tensorboard(folder: Path) -> list[Any]:
    """Return the TensorBoard callback, if TensorBoard is installed and TensorFlow is loaded."""
    if "tensorflow" not in sys.modules or importlib.util.find_spec("tensorboard") is None:
        return []
    return [keras.callbacks.TensorBoard(log_dir=str(folder / "logs"), write_graph=False)]
