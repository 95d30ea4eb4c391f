"""Where the CPU time of a conversion goes, by stage, and how long it takes with 1 to 64 threads.

In: a table as Parquet and as CSV, photos in class folders, blobs in memory. Out: one table per source, with
the medians of several conversions in one process; with an older tree also its medians, taken in turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from datasets import HERE, STORE
from sources import RawSource, ensure_raw_sources, list_stage_sources
from tables import draw

THREADS = (1, 2, 4, 8, 16, 32, 64)
LEAST_SHOWN = 0.005  # CPU seconds of a stage
MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - writing to memory leaves the speed of the disk out
NOTES = """\
CPU seconds, medians of {rounds} conversions in one process after a first one that is not counted. Only one
thread does the stages in main; `longest task` is the part of the others that one thread does alone. The time
with N threads is computed: main + the larger of `longest task` and others / N, without waits for a disk."""


@dataclass(frozen=True)
class Conversions:
    """Several conversions of one source by one tree: CPU seconds of each, and by (is in main, stage).

    Attributes:
        main: CPU seconds of the main thread.
        others: CPU seconds of all other threads.
        longest: CPU seconds of the longest task that is not divided among threads.
        stages: CPU seconds by stage; the name begins with "main: " in the main thread.
        digest: Digest of all files of the first conversion.
    """

    main: tuple[float, ...]
    others: tuple[float, ...]
    longest: tuple[float, ...]
    stages: tuple[dict[str, float], ...]
    digest: str

    def stage(self, name: str) -> float:
        """Return the median of a stage."""
        return median(each.get(name, 0.0) for each in self.stages)

    def seconds(self, num_threads: int) -> float:
        """Return the computed time with a number of threads."""
        if num_threads == 1:
            return median(self.main) + median(self.others)
        return median(self.main) + max(median(self.longest), median(self.others) / num_threads)


class Tree:
    """The process that converts one source with the package of one tree."""

    def __init__(self, tree: Path, raw: RawSource, num_threads: int, out: Path) -> None:
        job = {
            "source": None if raw.source is None else str(raw.source),
            "num_records": raw.num_records,
            "num_threads": num_threads,
            "out": str(out),
        }
        path = os.pathsep.join([str(tree / "src"), str(HERE)])
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "write_stages_worker.py"), json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._answers: list[dict[str, Any]] = []

    def convert(self) -> None:
        """Convert once."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the worker has no pipes")
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with status {self._process.wait()}")
        self._answers.append(json.loads(line))

    def close(self) -> Conversions:
        """End the process, and return all conversions but the first."""
        self._process.kill()
        self._process.communicate()
        first, *rest = self._answers
        return Conversions(
            *(tuple(each[name] for each in rest) for name in ("main", "others", "longest", "stages")),
            digest=first["digest"],
        )


def measure_source(raw: RawSource, trees: list[Path], num_rounds: int, num_threads: int) -> list[Conversions]:
    """Convert a source with each tree in turns."""
    disk = MEMORY_DISK if MEMORY_DISK.is_dir() else STORE / "data"
    out = Path(tempfile.mkdtemp(prefix="write-stages-", dir=disk))
    workers: list[Tree] = []
    try:
        for i, tree in enumerate(trees):
            workers.append(Tree(tree, raw, num_threads, out / str(i)))
        for round in range(num_rounds + 1):
            # Back and forth, so that no tree always runs after the other one.
            for worker in workers if round % 2 else reversed(workers):
                worker.convert()
        return [worker.close() for worker in workers]
    finally:
        for worker in workers:
            worker._process.kill()
        shutil.rmtree(out, ignore_errors=True)


def format_source(raw: RawSource, found: list[Conversions], names: list[str]) -> str:
    """Format the stages of one source, and the computed times."""
    stages = dict.fromkeys(stage for each in found for row in each.stages for stage in row)
    ordered = sorted(stages, key=lambda stage: (not stage.startswith("main: "), stage))
    rows = [
        [stage, *(f"{each.stage(stage):.3f}" for each in found)]
        for stage in ordered
        if max(each.stage(stage) for each in found) >= LEAST_SHOWN
    ]
    for title in ("main", "others", "longest"):
        rows.append([f"**{title}**", *(f"{median(getattr(each, title)):.3f}" for each in found)])
    sums = [[a + b for a, b in zip(each.main, each.others, strict=True)] for each in found]
    rows.append(
        ["**all CPU**", *(f"{median(each):.3f} ({min(each):.2f} - {max(each):.2f})" for each in sums)]
    )
    computed = [
        [f"{number}", *(f"{each.seconds(number):.3f} s" for each in found)]
        + [f"{raw.num_records / each.seconds(number):,.0f}" for each in found]
        for number in THREADS
    ]
    heads = ["threads", *(f"{name}, time" for name in names), *(f"{name}, records/s" for name in names)]
    same = {each.digest for each in found}
    words = (
        "" if len(found) == 1 else "\n\nThe files are " + ("the same." if len(same) == 1 else "DIFFERENT.")
    )
    title = f"{raw.name}: {raw.title}; {raw.num_records:,} records"
    tables = f"{draw(['CPU seconds', *names], rows)}\n\n{draw(heads, computed)}"
    return f"{title}\n\n{tables}{words}"


def measure_stages(
    sources: list[str], num_rounds: int, num_threads: int, *, is_quick: bool, old: Path | None
) -> dict[str, Any]:
    """Print the tables of all sources; return all figures."""
    ensure_raw_sources([list_stage_sources(is_quick)[name].name for name in sources], is_quick)
    trees = [HERE.parent] if old is None else [old, HERE.parent]
    names = ["this tree"] if old is None else ["old", "this tree"]
    figures: dict[str, Any] = {}
    for name in sources:
        raw = list_stage_sources(is_quick)[name]
        found = measure_source(raw, trees, num_rounds, num_threads)
        print(format_source(raw, found, names), end="\n\n", flush=True)
        figures[name] = {tree: each.__dict__ for tree, each in zip(names, found, strict=True)}
    print(NOTES.format(rounds=num_rounds))
    return figures
