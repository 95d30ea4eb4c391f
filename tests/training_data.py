"""A small data set with an input of every kind, and runs over it, for tests of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.training.history import TIMES
from penstock.training.progress import TrainingProgress

WORDS = ("red", "blue", "tall", "small", "by the path", "in the shade")
NUM_RECORDS = 120
BATCH_SIZE = 16


def write_garden(folder: Path, **columns: Any) -> ps.Dataset:
    """Write records whose label follows from the number, the kind and a word of the note."""
    draws = np.random.default_rng(5)
    height = draws.normal(10, 3, NUM_RECORDS).astype(np.float32)
    kinds = draws.integers(0, 3, NUM_RECORDS)
    words = draws.integers(0, len(WORDS), (NUM_RECORDS, 2))
    is_tall = height + 4 * (kinds == 1) + 4 * (words[:, 0] == 2) > 12
    table: dict[str, Any] = {
        "height": height,
        "kind": [("rose", "lily", "iris")[k] for k in kinds],
        "note": [f"{WORDS[a]} and {WORDS[b]}" for a, b in words],
        "hours": [draws.integers(0, 24, draws.integers(0, 6)).tolist() for _ in range(NUM_RECORDS)],
        "photo": [draws.integers(0, 255, (8, 8, 3), np.uint8) for _ in range(NUM_RECORDS)],
        "blooms": np.where(is_tall, "yes", "no").tolist(),
        **columns,
    }
    fields = {
        "photo": ps.fields.Image(),
        "hours": ps.fields.Sequence("int64"),
        "note": ps.fields.Text(),
        "kind": ps.fields.Category(),
    }
    split = "train=0.8,validation=0.2"
    return ps.convert(table, folder, target="blooms", fields=fields, split=split, num_shards=2)


OPTIONS = {"epochs": 2, "batch_size": BATCH_SIZE, "seed": 3, "patience": None, "checkpoint_steps": 2}
MODEL = ps.options.ModelOptions(preset="small", sequence="gru", dropout=0.3)


class Listener:
    """A watcher who keeps what it hears."""

    def __init__(self) -> None:
        self.tables: list[list[str]] = []
        self.notes: list[str] = []
        self.looks: list[TrainingProgress] = []
        self.epochs: list[TrainingProgress] = []
        self.ends: list[str] = []

    def columns(self, table: Sequence[str]) -> None:
        self.tables.append(list(table))

    def note(self, text: str) -> None:
        self.notes.append(text)

    def step(self, look: TrainingProgress) -> None:
        self.looks.append(look)

    def epoch(self, look: TrainingProgress, *, is_best: bool) -> None:
        self.epochs.append(look)

    def end(self, text: str) -> None:
        self.ends.append(text)


class Interruption(BaseException):
    """The end of a process, as far as its files show it."""


def interrupt_after(patch: pytest.MonkeyPatch, folder: str, step: int) -> None:
    """Let the process end after the checkpoint of a step of the run in a folder of that name."""
    from penstock.training.run_writer import Checkpoints  # noqa: PLC0415 - Keras, which tests may lack

    save = Checkpoints.save

    def end(self: Any, moment: Any) -> None:
        save(self, moment)
        if self.folder.name == folder and moment.step == step:
            raise Interruption

    patch.setattr(Checkpoints, "save", end)


def train(data: ps.Dataset, out: Path, *, is_rich: bool = False, **options: Any) -> ps.Run:
    """Train a small model without a word: on a number, a kind and a note, or on everything."""
    given = {"watcher": Listener(), "model_options": MODEL, **OPTIONS, **options}
    pipeline = None if is_rich else ps.Pipeline.fit(data, photo=None, hours=None)
    return ps.train(data, pipeline=pipeline, out=out, **given)


def read_history(folder: Path) -> list[list[str]]:
    """Return the history without the times that its epochs took."""
    rows = [line.split(",") for line in (folder / "history.csv").read_text().splitlines()]
    kept = [at for at, name in enumerate(rows[0]) if name not in TIMES]
    return [[row[at] for at in kept] for row in rows]
