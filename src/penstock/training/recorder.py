"""Keras callbacks that write checkpoints and the history of a run, and report its progress.

In: the calls of Keras to its callbacks. Out: two callbacks, one before and one after all others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import keras
import numpy as np

from penstock.batch.loader import Loader
from penstock.batch.stats import LoaderStats
from penstock.errors import WriteError
from penstock.training.callbacks import BestEpoch, LossFault
from penstock.training.distribution import Worker
from penstock.training.history import DATA_LOSS, VALIDATION_LOSS
from penstock.training.progress import TrainingProgress, Watcher
from penstock.training.run_writer import Checkpoint, RunWriter
from penstock.training.snapshot import copy_array, restore_callbacks, restore_model, take_snapshot

_MOST_CHECKPOINT_TIME: Final = 1 / 40  # share of the time that checkpoints may take
_REPORT_SECONDS: Final = 0.1
_EPOCH_SECONDS: Final = 2.0  # shorter than between steps, as a finished epoch is worth more than a step


class StepReached(Exception):  # noqa: N818 - internal, never raised to callers
    """The step at which to stop is done, or the weights are not finite after `step` steps."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


@dataclass
class TrainingState:
    """State of a run in addition to its model.

    Attributes:
        remembered: Callbacks whose state is saved, including `best`.
        moment: Checkpoint to resume from, or None.
        first: State before the first step, while it could not be written.
        step: Number of steps of the whole run so far.
        rows: Metrics of each epoch.
        seconds: Seconds of training before the run was resumed.
        worker: This process as one of several workers (the first writes files); or None.
    """

    loader: Loader
    writer: RunWriter
    best: BestEpoch
    remembered: Sequence[Any]
    watcher: Watcher
    clock: Callable[[], float] = time.monotonic
    moment: Checkpoint | None = None
    first: Checkpoint | None = None
    step: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    worker: Worker | None = None

    def __post_init__(self) -> None:
        self._begun = self._saved = self.clock()
        self._cost = 0.0
        if self.moment is not None:
            memory = self.moment.memory
            self.step = self.moment.step
            self.rows = [dict(row) for row in memory["history"]]
            self.seconds = float(memory["seconds"])

    @property
    def is_writer(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.worker is None or self.worker.is_first

    @property
    def elapsed(self) -> float:
        """Seconds of training so far, including those before the run was resumed."""
        return self.seconds + self.clock() - self._begun

    def save(self, model: Any, epoch: int) -> None:
        """Write a checkpoint."""
        begun = self.clock()
        if self.step and not are_finite(model):
            at, step = self.loader.position
            raise LossFault(at, max(0, step - 1), math.nan)
        if not self.is_writer:
            return
        memory = {
            "epoch": epoch,
            "loader": self.loader.state_dict(),
            "history": list(self.rows),
            "seconds": self.elapsed,
        }
        moment = Checkpoint(self.step, take_snapshot(model, self.remembered), memory)
        if not self.step:
            self.first = moment
        self.writer.save(moment)
        self.first = None
        self._saved = self.clock()
        self._cost = self._saved - begun

    def is_due(self, seconds: float) -> bool:
        """Whether to write a checkpoint, if there should be one every `seconds`."""
        return self.clock() - self._saved >= max(seconds, self._cost / _MOST_CHECKPOINT_TIME)

    def save_if_possible(self, model: Any, epoch: int) -> None:
        """Write a checkpoint; a full disk does not end the run, which can still be saved at its end."""
        if not self.is_writer or (self.worker is not None and not are_finite(model)):
            # Workers only fail together: the next loss will not be finite on all of them.
            return
        try:
            self.save(model, epoch)
        except WriteError as error:
            self._saved = self.clock()
            self.watcher.note(f"A checkpoint could not be written; training continues: {error}")


class StartCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """The first callback: restores the model at the beginning of an epoch, or saves its initial state.

    It restores when the first epoch begins: by then `fit` has built everything, callbacks have reset their
    state, and metrics are reset.
    """

    def __init__(self, journal: TrainingState) -> None:
        super().__init__()
        self._journal = journal
        self._is_done = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Restore or save, once."""
        if self._is_done:
            return
        self._is_done = True
        moment = self._journal.moment
        if moment is None:
            self._journal.save_if_possible(self.model, epoch)
        elif not _is_within(self._journal.loader):
            restore_model(self.model, moment.snapshot, with_metrics=False)
            restore_callbacks(self._journal.remembered, moment.snapshot)


class Recorder(keras.callbacks.Callback):  # type: ignore[misc]
    """The last callback: restores the model in the middle of an epoch, writes files, reports progress.

    `pace`: seconds, or steps, between checkpoints. `stop_step`: step after which to stop, without writing or
    reporting anything.
    """

    def __init__(
        self,
        journal: TrainingState,
        num_epochs: int,
        pace: tuple[float, int | None],
        stop_step: int | None = None,
    ) -> None:
        super().__init__()
        self._journal = journal
        self._num_epochs = num_epochs
        self._seconds, self._steps = pace
        self._stop_step = stop_step
        self._is_done = False
        self._num_seen = 0
        self._reported = self._began = (journal.clock(), journal.loader.stats(), journal.step)
        self._stepped = journal.clock()
        self._noted: set[str] = set()
        self._rates = (0.0, 0.0, 0.0)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Restore, once, after other callbacks have handled the beginning of the epoch."""
        self._num_seen = 0
        self._reported = self._began = (
            self._journal.clock(),
            self._journal.loader.stats(),
            self._journal.step,
        )
        moment = self._journal.moment
        if not self._is_done and moment is not None and _is_within(self._journal.loader):
            restore_model(self.model, moment.snapshot)
            restore_callbacks(self._journal.remembered, moment.snapshot)
        self._is_done = True

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        """Count a step; save if a checkpoint is due."""
        journal = self._journal
        num_steps = batch + 1 - self._num_seen  # more than 1 where a model does several steps per call
        journal.step += num_steps
        self._num_seen = batch + 1
        if self._stop_step is not None:
            if not are_finite(self.model):
                raise StepReached(journal.step - 1)
            if journal.step >= self._stop_step:
                raise StepReached(journal.step)
            return
        now = self._stepped = journal.clock()
        if now - self._reported[0] >= _REPORT_SECONDS:
            self._measure(self._reported, now)
            self._reported = (now, journal.loader.stats(), journal.step)
            journal.watcher.step(self._make_progress(logs or {}, *journal.loader.position))
        before = journal.step - num_steps
        is_due = (
            journal.is_due(self._seconds)
            if self._steps is None
            else journal.step // self._steps > before // self._steps
        )
        if is_due and _is_within(journal.loader):  # the end of an epoch is saved after its validation
            journal.save_if_possible(self.model, journal.loader.position[0])

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Write and report the metrics of an epoch."""
        journal = self._journal
        if self._stop_step is not None:
            return
        known = {name: float(value) for name, value in (logs or {}).items()}
        rate = getattr(self.model.optimizer, "learning_rate", None)
        rates = {} if rate is None else {"learning_rate": float(copy_array(rate))}
        waited = journal.loader.stats().wait_seconds - self._began[1].wait_seconds
        # After the last step of an epoch comes its validation.
        validated = journal.clock() - self._stepped if VALIDATION_LOSS in known else 0.0
        row = {
            "epoch": epoch + 1,
            "step": journal.step,
            **known,
            **rates,
            "waiting_seconds": round(waited, 3),
            "validation_seconds": round(validated, 3),
            "seconds": round(journal.elapsed, 3),
        }
        journal.rows.append(row)
        self._measure(self._began, self._stepped)  # of the whole epoch, without its validation
        shown = dict(known)
        if shown.get(DATA_LOSS) == shown.get(VALIDATION_LOSS):
            shown.pop(DATA_LOSS, None)
        progress = self._make_progress(shown, epoch, journal.loader.num_steps(epoch))
        is_best = journal.best.best_epoch == epoch and journal.best.has_monitor
        journal.watcher.epoch(progress, is_best=is_best)
        for name, value in known.items():
            if not math.isfinite(value) and name not in self._noted:
                self._noted.add(name)
                journal.watcher.note(f"{name} of epoch {epoch + 1} is {value}.")
        try:
            if journal.is_writer:
                journal.writer.write_history(journal.rows)
        except WriteError as error:
            journal.watcher.note(f"The history could not be written; training continues: {error}")
        if journal.is_due(min(self._seconds, _EPOCH_SECONDS)) or self._steps is not None:
            # A stopped run stays stopped, even if it is interrupted before it is marked as finished.
            following = self._num_epochs if self.model.stop_training else epoch + 1
            journal.save_if_possible(self.model, following)

    def _measure(self, since: tuple[float, LoaderStats, int], now: float) -> None:
        """Update records per second, the share of waiting, and steps per second."""
        then, before, step = since
        stats, seconds = self._journal.loader.stats(), max(1e-9, now - then)
        waited = stats.wait_seconds - before.wait_seconds
        records, steps = stats.records - before.records, self._journal.step - step
        self._rates = (records / seconds, min(1.0, waited / seconds), steps / seconds)

    def _make_progress(self, logs: Mapping[str, float], epoch: int, step: int) -> TrainingProgress:
        num_steps = self._journal.loader.num_steps(epoch)
        left = num_steps - step + num_steps * (self._num_epochs - epoch - 1)
        records, waiting, steps = self._rates
        return TrainingProgress(
            epoch=epoch,
            num_epochs=self._num_epochs,
            step=step,
            num_steps=num_steps,
            logs=logs,
            records_per_second=records,
            waiting=waiting,
            seconds_left=left / steps if steps else None,
        )


def are_finite(model: Any) -> bool:
    """Whether all weights of a model are finite."""
    arrays = (copy_array(weight) for weight in model.weights)
    return all(bool(np.isfinite(array).all()) for array in arrays if array.dtype.kind == "f")


def _is_within(loader: Loader) -> bool:
    """Whether the model is in the middle of an epoch."""
    epoch, step = loader.position
    return 0 < step < loader.num_steps(epoch)
