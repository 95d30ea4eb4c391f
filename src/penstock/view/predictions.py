"""Predictions of a run for the records of a split, made by another process.

In: the folder of a run and the name of a split. Out: `Outcome`. The model is loaded in a separate process
(`prediction_worker.py`), which writes arrays and ends: the viewer itself never imports Keras.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.dataset import USUAL_SPLITS
from penstock.errors import PenstockError, StateError
from penstock.schema.date import DAY, DateUnit, show_date
from penstock.score.score_text import format_score
from penstock.view.opened_data import OpenedData
from penstock.view.scan_jobs import WAIT_SECONDS, Progress

DESCRIPTION_NAME: Final = "outcome.json"
ROWS_NAME: Final = "rows.npy"
ARRAYS: Final = ("truths", "codes", "probabilities", "losses", "wrong")
"""Arrays of each target, in files such as `0-losses.npy`."""

AT_ONCE: Final = 20_000
"""Splits up to this many records are predicted as soon as they are shown."""

_END_SECONDS: Final = 5.0
_MOST_CHARS: Final = 40  # of a label in a sentence


@dataclass(frozen=True)
class TargetOutcome:
    """Predictions of one target; each array has one entry per predicted record.

    Attributes:
        kind: Kind of the task, as in `Task`.
        labels: Labels by code; empty for numbers.
        truths: True codes, or numbers.
        codes: Predicted codes, or numbers.
        probabilities: Probability of the predicted code; NaN for numbers and for several labels.
        losses: Log loss, or absolute error.
        wrong: Whether the prediction is wrong; of a number, whether it differs at all.
        unit: Unit of dates; None for other targets.
    """

    kind: str
    labels: tuple[str | int, ...]
    truths: NDArray[Any]
    codes: NDArray[Any]
    probabilities: NDArray[Any]
    losses: NDArray[Any]
    wrong: NDArray[np.bool_]
    unit: DateUnit | None = None

    def describe(self, at: int) -> dict[str, Any]:
        """Return truth, prediction, probability, loss and correctness of one record, for display."""
        probability = float(self.probabilities[at])
        return {
            "truth": self._show(self.truths[at]),
            "prediction": self._show(self.codes[at]),
            "probability": None if np.isnan(probability) else probability,
            "loss": float(self.losses[at]),
            "measure": self.measure,
            "verdict": "predicted" if self.kind == "regression" else "wrong" if self.wrong[at] else "correct",
            "is_wrong": bool(self.wrong[at]) and self.kind != "regression",
        }

    @property
    def measure(self) -> str:
        """Name of the loss."""
        if self.kind != "regression":
            return "log loss"
        return "absolute error" if self.unit is None else "absolute error in days"

    def describe_baseline(self) -> str:
        """Return how good one prediction for all records would be; empty if there is no such prediction."""
        if not len(self.truths) or self.kind == "multilabel":
            return ""
        if self.kind == "regression":
            truths = np.asarray(self.truths, np.float64)
            spread = float(np.abs(truths - truths.mean(axis=0)).mean())
            spread = spread / DAY if self.unit == "microseconds" else spread
            mean = format_score(float(np.mean(self.losses)))
            return f"mean {self.measure} {mean}, {format_score(spread)} if always the mean"
        counts = np.bincount(np.asarray(self.truths, np.int64), minlength=len(self.labels))
        num_wrong, label = len(self.truths) - int(counts.max()), str(self.labels[int(counts.argmax())])
        return f"{num_wrong:,} if always {label[:_MOST_CHARS]}{'…' if len(label) > _MOST_CHARS else ''}"

    def _show(self, value: NDArray[Any]) -> Any:
        if self.unit is not None:
            return show_date(float(np.rint(value)), self.unit)
        if self.kind == "regression":
            return value.tolist()
        if self.kind == "multilabel":
            return [self.labels[code] for code in np.flatnonzero(value).tolist()]
        return self.labels[int(value)]


@dataclass(frozen=True)
class Outcome:
    """Predictions of a split: the rows that have every target, ascending, and the predictions by target."""

    rows: NDArray[np.int64]
    targets: Mapping[str, TargetOutcome]

    @property
    def has_labels(self) -> bool:
        """Whether a target has labels; predictions of numbers always differ somewhat."""
        return any(target.kind != "regression" for target in self.targets.values())

    @cached_property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Whether a target of each record is predicted wrongly; numbers count only without labels."""
        judged = [
            target.wrong
            for target in self.targets.values()
            if target.kind != "regression" or not self.has_labels
        ]
        return np.asarray(np.any(judged, axis=0), np.bool_)

    @cached_property
    def num_wrong(self) -> int:
        """Number of records with a wrong prediction."""
        return int(self.is_wrong.sum())

    def describe_baseline(self) -> str:
        """Return how good one prediction for all records would be; empty for several targets."""
        return next(iter(self.targets.values())).describe_baseline() if len(self.targets) == 1 else ""

    def describe(self, row: int) -> dict[str, dict[str, Any]]:
        """Return the predictions of one record by target; empty if it was not predicted."""
        at = int(np.searchsorted(self.rows, row))
        if at == len(self.rows) or self.rows[at] != row:
            return {}
        return {name: target.describe(at) for name, target in self.targets.items()}


def load_outcome(folder: Path) -> Outcome:
    """Return the predictions that a worker wrote; arrays stay in their files."""
    described = json.loads((folder / DESCRIPTION_NAME).read_bytes())
    targets = {}
    for number, target in enumerate(described["targets"]):
        arrays = {name: np.load(folder / f"{number}-{name}.npy", mmap_mode="r") for name in ARRAYS}
        targets[target["name"]] = TargetOutcome(
            target["kind"], tuple(target["labels"]), **arrays, unit=target["unit"]
        )
    return Outcome(np.load(folder / ROWS_NAME, mmap_mode="r"), targets)


class RunPredictions:
    """Predictions of a run, made by one process per split when they are first asked for."""

    def __init__(self, data: OpenedData) -> None:
        if data.run is None:
            raise ValueError("the data is not from a run")
        self._data = data
        self._run = data.run
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-view-"))
        self._workers: dict[str, _Worker] = {}
        self._lock = threading.Lock()

    @property
    def usual_split(self) -> str:
        """Name of the split to show first: one that the run was not trained on, if there is one."""
        splits = self._data.splits
        return next((name for name in USUAL_SPLITS if name in splits), next(iter(splits)))

    def starts_at_once(self, split: str) -> bool:
        """Whether the predictions of a split were asked for, or are so few that they need not be."""
        return split in self._workers or len(self._data.rows(split)) <= AT_ONCE

    def find(self, split: str, wait_seconds: float = WAIT_SECONDS) -> Outcome | Progress:
        """Return the predictions of a split, or how many of them are made."""
        num_rows = len(self._data.rows(split))
        with self._lock:
            if split not in self._workers:
                folder = self._folder / str(len(self._workers))
                folder.mkdir()
                self._workers[split] = _Worker(self._data, self._run, split, folder, num_rows)
            worker = self._workers[split]
        return worker.find(wait_seconds)

    def close(self) -> None:
        """End the processes, and delete what they wrote."""
        for worker in self._workers.values():
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Worker:
    """A process that predicts one split."""

    def __init__(self, data: OpenedData, run: Path, split: str, folder: Path, num_rows: int) -> None:
        self._run = run
        self._folder = folder
        self._progress = Progress(0, num_rows)
        self._error: dict[str, Any] | None = None
        self._outcome: Outcome | None = None
        self._is_done = threading.Event()
        # With -P, Python does not import modules from the current folder, where files of others may be.
        command = [sys.executable, "-P", "-m", "penstock.view.prediction_worker"]
        arguments = [str(run), split, str(folder), data.model or "", *data.paths]
        with (folder / "stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
                start_new_session=True,  # Ctrl-C is for the viewer, which then ends this process
            )
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def find(self, wait_seconds: float) -> Outcome | Progress:
        """Return the predictions, or how many of them are made."""
        if not self._is_done.wait(wait_seconds):
            return self._progress
        if self._outcome is not None:
            return self._outcome
        error = self._error or {}
        raise StateError(
            f"no predictions of this run: {str(error.get('what')).rstrip('.')}",
            path=error.get("path") or self._run,
            record=error.get("record"),
            offset=error.get("offset"),
            field=error.get("field"),
            expected=error.get("expected"),
            got=error.get("got"),
            advice=error.get("advice") or "Run 'penstock evaluate' for details.",
        )

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_END_SECONDS)

    def _follow(self) -> None:
        """Read the messages of the process until it ends."""
        stdout: Any = self._process.stdout
        with stdout:
            for line in stdout:
                self._take(line)
        status = self._process.wait()
        try:
            if self._error is None and status == 0:
                self._outcome = load_outcome(self._folder)
        except (OSError, ValueError, KeyError, PenstockError) as error:
            self._error = {"what": str(error)}
        if self._outcome is None and self._error is None:
            written = (self._folder / "stderr").read_text(errors="replace").strip().splitlines()
            self._error = {"what": written[-1] if written else f"its process ended with status {status}"}
        self._is_done.set()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return  # a library has written to stdout
        if isinstance(message, dict):
            if isinstance(message.get("error"), dict):
                self._error = message["error"]
            elif "done" in message:
                self._progress = Progress(int(message["done"]), int(message["total"]))
