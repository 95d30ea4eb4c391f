"""Models that see some of the fields: the same settings, the same splits.

In: a data set, and the fields that a model sees. Out: its run, and what it reached on the test split.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import Any

from penstock.dataset import Dataset
from penstock.jobs.contest import Entrant
from penstock.jobs.predict.evaluate import evaluate
from penstock.jobs.train.train import train
from penstock.training.progress import Progress, Watcher
from penstock.training.run import Run
from penstock.transform.pipeline import Pipeline


@dataclass
class Timed:
    """A watcher that passes on what it hears, and keeps how fast each epoch was."""

    watcher: Watcher
    looks: list[Progress] = field(default_factory=list)

    def columns(self, table: Sequence[str]) -> None:
        """Pass it on."""
        self.watcher.columns(table)

    def note(self, text: str) -> None:
        """Pass it on."""
        self.watcher.note(text)

    def step(self, look: Progress) -> None:
        """Pass it on."""
        self.watcher.step(look)

    def epoch(self, look: Progress, *, is_best: bool) -> None:
        """Keep it, and pass it on."""
        self.looks.append(look)
        self.watcher.epoch(look, is_best=is_best)

    def end(self, text: str) -> None:
        """Pass it on."""
        self.watcher.end(text)

    def measure(self) -> tuple[float, float]:
        """Return records a second, and the share of the time that was waited for them.

        The first epoch does not count where there are more: in it the model is compiled.
        """
        looks = self.looks[1:] or self.looks
        rate = harmonic_mean([look.records_per_second for look in looks])  # all have the same records
        return rate, fmean(look.waiting for look in looks)


@dataclass(frozen=True)
class Race:
    """What all models have in common.

    Attributes:
        flowers: The data set.
        target: The field that is predicted.
        folder: Where runs go.
        choices: Options of `train`.
    """

    flowers: Dataset
    target: str
    folder: Path
    choices: Mapping[str, Any]

    def fit(self, fields: tuple[str, ...]) -> Pipeline:
        """Return a pipeline of some fields alone."""
        inputs = [name for name, each in self.flowers.schema.items() if each.role == "input"]
        return Pipeline.fit(self.flowers, **{name: None for name in inputs if name not in fields})

    def find_folder(self, name: str) -> Path:
        """Return where the run of a model goes."""
        return self.folder / name.replace(" ", "-")

    def train(self, name: str, fields: tuple[str, ...], watcher: Watcher) -> tuple[Run, Entrant]:
        """Train a model that sees some fields, and return what it reached on the test split."""
        timed = Timed(watcher)
        begun = time.monotonic()
        run = train(
            self.flowers, pipeline=self.fit(fields), out=self.find_folder(name), watcher=timed, **self.choices
        )
        seconds = time.monotonic() - begun
        scores = evaluate(run, self.flowers["test"], bootstrap=0, importance=False, mistakes=0)
        rate, waiting = timed.measure()
        accuracy, auc = (scores.targets[self.target][metric] or 0.0 for metric in ("accuracy", "auc"))
        return run, Entrant(name, fields, accuracy, auc, seconds, len(run.history), rate, waiting)
