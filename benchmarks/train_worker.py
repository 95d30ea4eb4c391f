"""The process of one training method: pins itself, opens the table, then times epochs on request.

In: method, batch size and cores as JSON on the command line, then one line on stdin for each turn.
Out: one line of JSON for each. All ways train the same model, compiled the same, on the same numbers.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from worker import Job, run_worker

if TYPE_CHECKING:
    from feeds.task import Task

NUM_TIMED, NUM_QUICK = 3, 2
"""Epochs of a turn after the first one, which is spent on tracing and on filling caches."""
SEED = 0


class Method(Protocol):
    """A method to train that is open: the model is made, and the data known."""

    model: Any

    def train(self, epochs: int, clock: Any) -> None:
        """Train so many epochs with a callback in addition to its own."""
        ...


class Setup:
    """What both ways begin with: the table, a pipeline fitted on it, and the model that is built for it."""

    def __init__(self, task: Task, batch_size: int) -> None:
        import penstock as ps  # noqa: PLC0415 - after pinning
        from feeds.penstock_loader import declare  # noqa: PLC0415

        fields = {field.name: declare(field) for field in task.spec.fields}
        self.data = ps.open(task.files, fields=fields, target="label")
        self.pipeline = ps.Pipeline.fit(self.data)
        self.num_records = task.num_records
        self.num_cores = task.num_cores
        self.batch_size = batch_size
        self.model = self._make_model()

    def _make_model(self) -> Any:
        import keras  # noqa: PLC0415 - after pinning

        from penstock.model.build import build_model  # noqa: PLC0415
        from penstock.model.task import find_tasks  # noqa: PLC0415
        from penstock.training.compilation import CompilePlan, compile_model  # noqa: PLC0415

        keras.utils.set_random_seed(SEED)
        model = build_model(self.pipeline.schema, self.pipeline)
        # No schedule: turns continue with the same model, whose learning rate should not reach its end.
        compile_model(model, find_tasks(self.pipeline), CompilePlan())
        return model

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.num_records / self.batch_size)


class PenstockMethod:
    """`penstock.train`: from shards, with checkpoints, a guard over the loss, and a history."""

    def __init__(self, setup: Setup, cache: str | None = None) -> None:
        self.model = setup.model
        self._setup = setup
        self._cache = cache

    def train(self, epochs: int, clock: Any) -> None:
        import penstock as ps  # noqa: PLC0415 - after pinning

        setup = self._setup
        with tempfile.TemporaryDirectory() as folder:
            ps.train(
                setup.data,
                model=self.model,
                pipeline=setup.pipeline,
                out=Path(folder) / "run",
                callbacks=[clock],
                epochs=epochs,
                batch_size=setup.batch_size,
                num_threads=setup.num_cores,
                cache=self._cache,
                seed=SEED,
            )


class FitMethod:
    """Plain `model.fit` from a dict of arrays in memory: all of the work on the data is done before."""

    def __init__(self, setup: Setup) -> None:
        import numpy as np  # noqa: PLC0415 - after pinning

        self.model = setup.model
        self._batch_size = setup.batch_size
        (split,) = (setup.data[name] for name in setup.data.splits)
        batches = list(split.loader(setup.pipeline, batch_size=4096))
        names = batches[0][0]
        self._inputs = {name: np.concatenate([batch[0][name] for batch in batches]) for name in names}
        self._labels = np.concatenate([batch[1]["label"] for batch in batches])
        if len(self._labels) != setup.num_records:
            raise ValueError(f"expected {setup.num_records} records, got {len(self._labels)}")

    def train(self, epochs: int, clock: Any) -> None:
        self.model.fit(
            self._inputs,
            self._labels,
            batch_size=self._batch_size,
            epochs=epochs,
            shuffle=True,
            callbacks=[clock],
            verbose=0,
        )


def make_clock() -> Any:
    """Make a callback that notes when epochs begin, and when the last one has ended."""
    import keras  # noqa: PLC0415 - after pinning

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        """Times from the beginning of an epoch to the beginning of the next, including all callbacks."""

        def __init__(self) -> None:
            super().__init__()
            self.begins: list[float] = []
            self.cpu_begins: list[float] = []
            self.end = self.cpu_end = 0.0
            self.loss = math.nan

        def on_epoch_begin(self, _epoch: int, _logs: Any = None) -> None:
            self.begins.append(time.perf_counter())
            self.cpu_begins.append(time.process_time())

        def on_epoch_end(self, _epoch: int, logs: Any = None) -> None:
            self.loss = float((logs or {})["loss"])

        def on_train_end(self, _logs: Any = None) -> None:
            self.end, self.cpu_end = time.perf_counter(), time.process_time()

    return Clock()


def time_turn(method: Method, setup: Setup, num_timed: int) -> dict[str, Any]:
    """Train one epoch and then some more, which are timed; refuse a method that left out steps."""
    before, cpu_start = int(method.model.optimizer.iterations), time.process_time()
    clock = make_clock()
    method.train(num_timed + 1, clock)
    num_steps = int(method.model.optimizer.iterations) - before
    if num_steps != setup.steps_per_epoch * (num_timed + 1):
        raise ValueError(f"expected {num_timed + 1} epochs of {setup.steps_per_epoch} steps, got {num_steps}")
    if not math.isfinite(clock.loss):
        raise ValueError(f"expected a finite loss, got {clock.loss}")
    return {
        "num_records": setup.num_records * num_timed,
        "seconds": clock.end - clock.begins[1],
        # Including untimed work: it separates this process's share of the machine from other shares.
        "cpu_seconds": time.process_time() - cpu_start,
        "timed_cpu_seconds": clock.cpu_end - clock.cpu_begins[1],
    }


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Open the table and make the model, then answer each line with a turn."""
    from datasets import NUM_SHARDS, list_datasets  # noqa: PLC0415
    from feeds.task import Task  # noqa: PLC0415
    from fitted import load_fitted  # noqa: PLC0415
    from readers.tfdata import limit_threads  # noqa: PLC0415 - after pinning

    limit_threads(job.num_cores)
    spec = list_datasets(job.is_quick)["T"]
    task = Task(spec, load_fitted(spec), job.num_cores, NUM_SHARDS, job.entry)
    start = time.perf_counter()
    setup = Setup(task, int(job.dataset))
    method: Method = (
        FitMethod(setup) if job.entry == "arrays" else PenstockMethod(setup, find_cache(job.entry))
    )
    opened = time.perf_counter()
    num_timed = NUM_QUICK if job.is_quick else NUM_TIMED
    answers.write(json.dumps({"open_seconds": opened - start}) + "\n")
    for _ in commands:
        answers.write(json.dumps(time_turn(method, setup, num_timed)) + "\n")


def find_cache(entry: str) -> str | None:
    return "memory" if entry == "penstock-cached" else None


if __name__ == "__main__":
    run_worker(serve)
