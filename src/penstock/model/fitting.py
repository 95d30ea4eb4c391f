"""A model is trained by Keras' own `fit`, from any step on.

In: a compiled model, loaders, options, a folder. Out: the model with its best weights, and all that a run
leaves behind. Killed at any moment and begun again, it ends with the same weights, bit for bit on one CPU.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from penstock.batch.keras import KerasFeed
from penstock.batch.loader import Loader
from penstock.model.checkpoint import Checkpoints, Moment
from penstock.model.guard import LossFault, LossGuard, explain_fault
from penstock.model.history import write_history
from penstock.model.progress import Silence, Watcher
from penstock.model.recorder import Journal, Opening, Recorder, StepReached
from penstock.model.snapshot import restore_model
from penstock.model.stopping import BestEpoch
from penstock.model.training import TrainOptions


@dataclass(frozen=True)
class Fitting:
    """What a run trains with.

    Attributes:
        model: The model, compiled.
        loader: The batches to train on.
        validation: Those to validate with, or None.
        options: How.
        folder: Of the run.
        checkpoints: Its states.
        watcher: Who hears of it.
        callbacks: A user's own, of Keras.
    """

    model: Any
    loader: Loader
    validation: Loader | None
    options: TrainOptions
    folder: Path
    checkpoints: Checkpoints
    watcher: Watcher
    callbacks: Sequence[Any] = ()

    def run(self, moment: Moment | None = None) -> Journal:
        """Train to the end, from a moment on if one is given; leave the best weights in the model.

        Raises:
            NonFiniteError: A step gave a loss that is not finite. The model has the weights before that step.
            PenstockError: A batch could not be made.
        """
        journal = self._begin(moment, self.watcher)
        try:
            self._fit(journal)
        except LossFault as fault:
            error = explain_fault(self.loader, fault)
            self._roll_back(fault, journal)
            raise error from None
        except KeyboardInterrupt:
            journal.save_if_possible(self.model, self.loader.position[0])
            raise
        journal.save(self.model, self.options.epochs)
        journal.best.restore()
        write_history(self.folder, journal.rows)
        return journal

    @property
    def monitor(self) -> str:
        """What tells the best epoch; without validation, what training says of it."""
        name = self.options.monitor
        return name if self.validation is not None else name.removeprefix("val_")

    def _begin(self, moment: Moment | None, watcher: Watcher) -> Journal:
        options = self.options
        best = BestEpoch(self.monitor, is_lower_better=options.is_lower_better, patience=options.patience)
        remembered = (*self.callbacks, best)
        journal = Journal(
            self.loader, self.folder, self.checkpoints, best, remembered, watcher, moment=moment
        )
        build_state(self.model, self.loader)
        if moment is not None:
            self.loader.load_state_dict(moment.memory["loader"])
        return journal

    def _fit(self, journal: Journal, stop_step: int | None = None) -> None:
        options, moment = self.options, journal.moment
        epoch = 0 if moment is None else int(moment.memory["epoch"])
        if epoch >= options.epochs or self._is_stopped(moment):
            restore_model(self.model, moment.snapshot)  # type: ignore[union-attr]  # there is one then
            journal.best.set_model(self.model)
            return
        feed = KerasFeed(self.loader)
        held = None if self.validation is None else KerasFeed(self.validation)
        pace = (options.checkpoint_seconds, options.checkpoint_steps)
        callbacks = [
            Opening(journal),
            feed.callback,
            LossGuard(self.loader),
            *journal.remembered,
            *([] if stop_step is not None else _make_boards(self.folder)),
            Recorder(journal, options.epochs, pace, stop_step),
        ]
        for loader in (self.loader, self.validation):
            if loader is not None:
                loader.last_error = None
        try:
            self.model.fit(
                feed,
                validation_data=held,
                epochs=options.epochs,
                initial_epoch=epoch,
                callbacks=callbacks,
                verbose=0,
            )
        except (LossFault, StepReached, KeyboardInterrupt):
            raise
        except Exception as error:
            for loader in (self.loader, self.validation):
                # Frameworks flatten what goes wrong in a batch to its text: the error itself says more.
                if loader is not None and loader.last_error is not None:
                    raise loader.last_error from error
            raise

    def _roll_back(self, fault: LossFault, failed: Journal) -> None:
        """Bring the model to the step before a fault, by the steps from the last checkpoint on."""
        moment = self.checkpoints.load()
        if moment is None:
            return
        good = sum(map(self.loader.num_steps, range(fault.epoch))) + fault.step
        quiet = replace(self, watcher=Silence())
        journal = quiet._begin(moment, quiet.watcher)
        if moment.step < good:
            with contextlib.suppress(StepReached):
                quiet._fit(journal, stop_step=good)
        else:
            restore_model(self.model, moment.snapshot)
        journal.rows = failed.rows
        journal.save_if_possible(self.model, fault.epoch)

    def _is_stopped(self, moment: Moment | None) -> bool:
        """Whether a run had come to its end, and was killed before it said so."""
        if moment is None or self.options.patience is None:
            return False
        remembered = moment.snapshot.callbacks[-1]["values"]
        return bool(remembered["num_waited"] > self.options.patience)


def build_state(model: Any, loader: Loader) -> None:
    """Make all variables of a model, its optimizer and its metrics, which a checkpoint holds.

    Keras makes some of them in the first step, and which those are depends on the backend.
    """
    with loader.read(0, 0, 1) as batches:
        model._symbolic_build(data_batch=KerasFeed(loader).arrange(next(iter(batches))))
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def _make_boards(folder: Path) -> list[Any]:
    """Return what writes logs for TensorBoard, where that and TensorFlow, which it needs, are there."""
    if "tensorflow" not in sys.modules or importlib.util.find_spec("tensorboard") is None:
        return []
    return [keras.callbacks.TensorBoard(log_dir=str(folder / "logs"), write_graph=False)]
