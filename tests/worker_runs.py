"""Runs of several workers, in a process with the JAX backend: `python worker_runs.py JSON`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NUM_RECORDS = 111  # not a multiple of any batch size: each epoch ends with a batch that workers cannot share
OPTIONS = {"epochs": 3, "batch_size": 16, "seed": 3, "checkpoint_steps": 2, "parts": "all", "averaging": 0.9}
TIMES = ("waiting_seconds", "validation_seconds", "seconds")


def write_ponds(folder: Path | str) -> Path | str:
    """Write a data set with numbers, a category and lists of varying length."""
    import penstock as ps  # noqa: PLC0415 - not before the backend is chosen

    draws = np.random.default_rng(8)
    depth = draws.normal(3, 1, NUM_RECORDS).astype(np.float32)
    kinds = draws.integers(0, 3, NUM_RECORDS)
    table = {
        "depth": depth,
        "kind": [("clear", "green", "brown")[each] for each in kinds],
        "catches": [draws.integers(1, 9, draws.integers(1, 20)).tolist() for _ in range(NUM_RECORDS)],
        "has_fish": np.where(depth + kinds > 4, "yes", "no").tolist(),
    }
    fields = {"kind": ps.fields.Category(), "catches": ps.fields.Sequence("int64")}
    ps.convert(
        table, folder, target="has_fish", fields=fields, split="train=0.8,validation=0.2", num_shards=2
    )
    return folder


def build_model() -> Any:
    """Return a small model of the pipeline's inputs, which is compiled quickly; with dropout."""
    import keras  # noqa: PLC0415

    depth = keras.Input((), name="depth")
    kind = keras.Input((), name="kind", dtype="int32")
    codes = keras.layers.Embedding(5, 3)(kind)
    joined = keras.layers.Concatenate()([keras.ops.expand_dims(depth, 1), codes])
    hidden = keras.layers.Dropout(0.2)(keras.layers.Dense(8, activation="relu")(joined))
    normal = keras.layers.BatchNormalization()(hidden)
    return keras.Model({"depth": depth, "kind": kind}, keras.layers.Dense(1, name="has_fish")(normal))


def run_program(backend: str = "jax", timeout: float = 840, **arguments: Any) -> dict[str, Any]:
    """Train in a new process; return what it prints, as JSON."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **arguments.pop("variables", {}),
    }
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(arguments, default=str)],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
    )
    # Ray writes other lines to the same stream, also after the last one of the program.
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode < 0:
        return {"status": done.returncode}
    assert lines, done.stderr[-4000:]
    return json.loads(lines[-1])


def list_workers(parent: str = "self") -> list[int]:
    """Return the process ids of the workers below this process, which Ray may have started; oldest first."""
    found: list[int] = []
    for task in (Path("/proc") / parent / "task").iterdir():
        for pid in (task / "children").read_text().split():
            with contextlib.suppress(OSError):
                is_worker = b"penstock.distributed.worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
                found += [int(pid)] if is_worker else list_workers(pid)
    return sorted(found)


class Killer:
    """A watcher that sends a signal to a worker, or to its own process, when an epoch has ended.

    With a number of processes to wait for, it is the first epoch that ends while there are as many, as spare
    ones are started later.
    """

    def __init__(self, rank: int | str | None, epoch: int, number: int, num_processes: int | None) -> None:
        self.rank, self.at, self.number, self.num_processes = rank, epoch, number, num_processes
        self.notes: list[str] = []
        self.steps: list[tuple[int, int]] = []
        self.killed = self.noticed = self.resumed = 0.0

    def columns(self, table: Any) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)
        if self.killed and not self.noticed:
            self.noticed = time.monotonic()

    def step(self, progress: Any) -> None:
        self._notice_restart()

    def epoch(self, progress: Any, *, is_best: bool) -> None:
        self._notice_restart()
        self.steps.append((progress.epoch, progress.step))
        if self.rank is not None and self._is_due(progress.epoch):
            os.kill(os.getpid() if self.rank == "self" else list_workers()[int(self.rank)], self.number)
            self.rank, self.killed = None, time.monotonic()

    def _is_due(self, epoch: int) -> bool:
        if self.num_processes is None:
            return epoch == self.at
        return len(list_workers()) >= self.num_processes

    def end(self, text: str) -> None: ...

    def _notice_restart(self) -> None:
        if self.killed and not self.resumed and self.notes:
            self.resumed = time.monotonic()


def main(arguments: dict[str, Any]) -> None:
    """Train, and print the history, the notes and how long a restart took; or the error."""
    import penstock as ps  # noqa: PLC0415
    from penstock.distributed import workers  # noqa: PLC0415
    from penstock.errors import PenstockError  # noqa: PLC0415

    killer = Killer(
        arguments.pop("kill", None),
        arguments.pop("kill_epoch", 0),
        arguments.pop("signal", 9),
        arguments.pop("num_processes", None),
    )
    if killer.num_processes is not None:
        workers._SPARE_SECONDS = 0.0
    data = ps.open(arguments.pop("data"))
    if arguments.pop("is_small", True):
        import worker_runs  # noqa: PLC0415 - not this program, but a module that workers can import

        # A length is drawn for each record, which the small model does not use.
        arguments["pipeline"] = ps.Pipeline.fit(data, catches=None)
        arguments["model"] = worker_runs.build_model
    result: dict[str, Any] = {}
    try:
        run = ps.train(data, watcher=killer, **{**OPTIONS, **arguments})
        result["history"] = [
            {name: each for name, each in row.items() if name not in TIMES} for row in run.history
        ]
        result["weights"] = [float(np.abs(each).sum()) for each in run.model.get_weights()]
    except KeyboardInterrupt:
        result["is_interrupted"] = True
    except PenstockError as error:
        result["error"] = {
            "name": type(error).__name__,
            "field": error.field,
            "expected": str(error.expected),
            "got": str(error.got),
            "advice": error.advice,
            "records": [list(each) for each in getattr(error, "records", ())],
        }
    result["has_tensorflow"] = "tensorflow" in sys.modules
    result |= {"notes": killer.notes, "steps": killer.steps, "children": list_workers()}
    if killer.resumed:
        result["notice_seconds"] = killer.noticed - killer.killed
        result["restart_seconds"] = killer.resumed - killer.killed
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
