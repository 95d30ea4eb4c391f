"""Progress of a run, and the protocol of objects that are notified of it.

In: steps and epochs of training. Out: `TrainingProgress`, passed to a `Watcher`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a run at one moment.

    Attributes:
        epoch: Number of the current epoch, from 0.
        num_epochs: Maximum number of epochs.
        step: Number of finished steps of this epoch.
        num_steps: Number of steps of the epoch.
        logs: Loss and metrics so far in this epoch; for a finished epoch, of the validation too.
        records_per_second: Records trained per second, recently.
        waiting: Share of that time in which the model waited for data, 0 to 1.
        seconds_left: Estimated seconds until the last epoch ends; None while it is unknown.
    """

    epoch: int
    num_epochs: int
    step: int
    num_steps: int
    logs: Mapping[str, float] = field(default_factory=dict)
    records_per_second: float = 0.0
    waiting: float = 0.0
    seconds_left: float | None = None


class Watcher(Protocol):
    """An object that is notified of the progress of a run."""

    def columns(self, table: Sequence[str]) -> None:
        """Show the conversion of each column of raw data, as the lines of a table."""

    def note(self, text: str) -> None:
        """Show a note to the user."""

    def step(self, progress: TrainingProgress) -> None:
        """Handle the end of a step; called often, so it must be fast."""

    def epoch(self, progress: TrainingProgress, *, is_best: bool) -> None:
        """Handle the end of an epoch; `is_best` says whether it is the best so far."""

    def end(self, text: str) -> None:
        """Show how the run ended."""


class SilentWatcher:
    """A watcher that shows nothing."""

    def columns(self, table: Sequence[str]) -> None:
        """Ignore the columns."""

    def note(self, text: str) -> None:
        """Ignore a note."""

    def step(self, progress: TrainingProgress) -> None:
        """Ignore a step."""

    def epoch(self, progress: TrainingProgress, *, is_best: bool) -> None:
        """Ignore an epoch."""

    def end(self, text: str) -> None:
        """Ignore the end."""


@dataclass
class RelayWatcher:
    """A watcher that passes on everything; subclasses change a part of it.

    Attributes:
        watcher: Watcher that is notified.
    """

    watcher: Watcher = field(default_factory=SilentWatcher)

    def columns(self, table: Sequence[str]) -> None:
        """Pass on the columns."""
        self.watcher.columns(table)

    def note(self, text: str) -> None:
        """Pass on a note."""
        self.watcher.note(text)

    def step(self, progress: TrainingProgress) -> None:
        """Pass on a step."""
        self.watcher.step(progress)

    def epoch(self, progress: TrainingProgress, *, is_best: bool) -> None:
        """Pass on an epoch."""
        self.watcher.epoch(progress, is_best=is_best)

    def end(self, text: str) -> None:
        """Pass on how the run ended."""
        self.watcher.end(text)


@dataclass
class MemberWatcher(RelayWatcher):
    """A watcher of one of several runs, which passes on notes that are the same for all runs once.

    Attributes:
        label: Name of the current run.
    """

    label: str = ""

    def __post_init__(self) -> None:
        self._seen: set[str] = set()

    def begin(self, label: str) -> None:
        """Announce the next run."""
        self.label = label
        self.watcher.note(f"{label}:")

    def note(self, text: str) -> None:
        """Pass on a note, once."""
        if text not in self._seen:
            self._seen.add(text)
            self.watcher.note(text)
