"""Runs without a model, for the tests of predictions: what comes in is added up, or remembered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.foundation.json_form import Document, JsonValue
from penstock.model.task import Task, find_tasks
from penstock.training.recorded_data import RecordedData
from penstock.training.run import Run
from penstock.training.run_config import RunConfig


class FakeRun(Run):
    """A run whose model adds up its inputs, row by row; unlike in a run, its attributes may be set.

    Attributes:
        asked: The inputs of each call, in order.
        fails_at: The call that raises, from 0; or None.
    """

    def __init__(
        self, pipeline: ps.Pipeline, data: Path | str, folder: Path | None = None, **tables: Any
    ) -> None:
        super().__init__(
            folder=folder or Path("run-without-folder"),
            model=None,
            pipeline=pipeline,
            tasks=find_tasks(pipeline),
            logits={},
            history=[],
            config=RunConfig(),
        )
        self.own_data = Path(data)
        self.asked: list[dict[str, Any]] = []
        self.fails_at: int | None = None
        self.set_tables(**tables)

    __setattr__ = object.__setattr__

    def set_tables(self, schema: Any = None, plan: Any = None, **tables: Any) -> None:
        """Set the tables of `run.yaml`, and the entries of `fields.json`."""
        self.config = RunConfig.from_json(tables)
        fields = JsonValue({"schema": schema, "plan": plan}, Document("fields of the run"))
        self.recorded = RecordedData.from_json(fields, self.config.reading)

    @property
    def data(self) -> Path:
        return self.own_data

    @property
    def needs_model(self) -> bool:
        return self.config.model == "own"

    def predictor(self) -> Any:
        return self._ask

    def _ask(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if self.fails_at == len(self.asked):
            raise KeyboardInterrupt
        self.asked.append(dict(inputs))
        num_rows = len(next(iter(inputs.values())))
        sums = [np.asarray(each, np.float64).reshape(num_rows, -1).sum(1) for each in inputs.values()]
        total = np.sum(sums, axis=0)
        return {name: answer(task, total) for name, task in self.tasks.items()}


def answer(task: Task, total: Any) -> Any:
    """Return what the model would say: a sum, or chances that follow from it."""
    if task.kind == "regression":
        return np.repeat(total[:, None], task.units, 1).reshape(len(total), *task.shape).astype(np.float32)
    if task.kind == "binary":
        return (1 / (1 + np.exp(-total))).astype(np.float32)
    phases = total[:, None] + np.arange(len(task.labels))
    chances = 0.5 + 0.5 * np.sin(phases)
    if task.kind == "multiclass":
        chances /= chances.sum(1, keepdims=True)
    return chances.astype(np.float32)


def fit_run(source: Any, folder: Path, overrides: Mapping[str, Any] | None = None, **choices: Any) -> FakeRun:
    """Convert data without a change of order, fit a pipeline to it, and return a run that is a file later.

    The pipeline has been saved and loaded, like the pipeline of a run.
    """
    options: dict[str, Any] = {"split": "train=1.0", "shuffle": False, **choices}
    dataset = ps.convert(source, folder, **options)
    pipeline = ps.Pipeline.from_json(ps.Pipeline.fit(dataset, **(overrides or {})).to_json())
    return FakeRun(pipeline, folder)
