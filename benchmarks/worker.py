"""The process of one competitor: pins itself, opens the reader, then times passes on request.

In: the competitor, data set and cores as JSON on the command line, then one line on stdin for each turn.
Out: one line of JSON for each on a separate pipe; whatever the libraries print goes to stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TextIO

TURN_SECONDS = 1.5


@dataclass(frozen=True)
class Job:
    """What a worker runs; some benchmarks also choose the folder of the data and the length of a turn."""

    entry: str
    dataset: str
    num_cores: int
    is_quick: bool
    folder: str = ""
    seconds: float = TURN_SECONDS

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def pin_process(num_cores: int) -> None:
    """Use the last cores alone and set the size of thread pools, before anything heavy is imported."""
    available = sorted(os.sched_getaffinity(0))
    if num_cores > len(available):
        raise ValueError(f"{num_cores} cores requested, {len(available)} available")
    # The last ones: the first core serves the interrupts and the main process.
    os.sched_setaffinity(0, available[-num_cores:])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(num_cores)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def load_class(package: str, path: str) -> Any:
    """Import a class, given as `module.Class` in a package of this folder."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}"), name)


def run_worker(serve: Callable[[Job, TextIO, TextIO], None], *, is_pinned: bool = True) -> None:
    """Run a worker, by default pinned to its cores; every failure is reported to the main process."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        job = Job(**json.loads(sys.argv[1]))
        if is_pinned:
            pin_process(job.num_cores)
        serve(job, sys.stdin, answers)
    except Exception as error:
        traceback.print_exc()
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        sys.exit(1)
