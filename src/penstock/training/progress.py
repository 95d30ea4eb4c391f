"""How far a run has come, and who hears of it.

In: what training tells. Out: `Progress`, and the protocol of whoever shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Progress:
    """A look at a run.

    Attributes:
        epoch: The epoch at hand, from 0 on.
        num_epochs: How many there are at most.
        step: Batches of this epoch that the model took.
        num_steps: Batches that the epoch has.
        logs: Loss and metrics so far in this epoch; of an epoch that is over, those of the validation too.
        records_per_second: Records that the model took a second, lately.
        waiting: Which part of that time it waited for them, 0 to 1.
        seconds_left: Until the last epoch would end; None while that cannot be told.
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
    """Who hears of a run."""

    def columns(self, table: Sequence[str]) -> None:
        """Show what becomes of each column of raw data, as the lines of a table."""

    def note(self, text: str) -> None:
        """Hear something that a person should know."""

    def step(self, look: Progress) -> None:
        """Hear that the model took a batch; this is called for each, and must be quick."""

    def epoch(self, look: Progress, *, is_best: bool) -> None:
        """Hear that an epoch is over, and whether the model is the best so far."""

    def end(self, text: str) -> None:
        """Hear how the run ended."""


class Silence:
    """A watcher who says nothing."""

    def columns(self, table: Sequence[str]) -> None:
        """Ignore the columns."""

    def note(self, text: str) -> None:
        """Hear something."""

    def step(self, look: Progress) -> None:
        """Hear of a batch."""

    def epoch(self, look: Progress, *, is_best: bool) -> None:
        """Hear of an epoch."""

    def end(self, text: str) -> None:
        """Hear of the end."""
