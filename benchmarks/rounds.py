"""How much faster one competitor is than another: a ratio for each round, then their median and spread.

Two passes of the same round ran within seconds of each other; a machine that slows down slows both.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from machine import read_busy_seconds, read_kernel_seconds
from worker import Job

# A pass takes seconds; an answer that takes this long is not coming.
LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class Turn:
    """One timed pass; `other_load` says how many cores were busy with something else meanwhile.

    Writers also say how many bytes they wrote, and how long `sync` took after them. Feeds of a training run
    say for each step how many nanoseconds it waited for its batch, made tensors of it, and trained. Feeds of
    images say what they used on the clock alone; `cpu_seconds` is all of the turn. Loaders of ranks say
    for each rank how many records, bytes and requests it read, and how many nanoseconds it took.
    """

    entry: str
    dataset: str
    num_cores: int
    round: int
    num_records: int
    seconds: float
    cpu_seconds: float
    other_load: float
    num_bytes: int = 0
    sync_seconds: float = 0.0
    steps: Sequence[Sequence[int]] = ()
    timed_cpu_seconds: float = 0.0

    @property
    def records_per_second(self) -> float:
        return self.num_records / self.seconds

    @property
    def synced_per_second(self) -> float:
        return self.num_records / (self.seconds + self.sync_seconds)


@dataclass
class Results:
    """All measurements; openings, failures and descriptions by (entry, data set, cores)."""

    turns: list[Turn] = field(default_factory=list)
    openings: dict[tuple[str, str, int], float] = field(default_factory=dict)
    failures: dict[tuple[str, str, int], str] = field(default_factory=dict)
    descriptions: dict[tuple[str, str, int], dict[str, Any]] = field(default_factory=dict)


class WorkerError(RuntimeError):
    """A competitor failed."""


class Worker:
    """The process of a competitor, as the main process controls it; it waits between its turns."""

    def __init__(self, job: Job, script: Path) -> None:
        self.job = job
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, str(script), job.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    @property
    def key(self) -> tuple[str, str, int]:
        return self.job.entry, self.job.dataset, self.job.num_cores

    def receive(self) -> dict[str, Any]:
        """Wait for the next answer."""
        pipe = self._process.stdout
        if pipe is None or not select.select([pipe], [], [], LIMIT_SECONDS)[0]:
            raise WorkerError(f"no answer in {LIMIT_SECONDS:.0f} s")
        line = pipe.readline()
        if not line:
            raise WorkerError(f"died with status {self._process.wait()}: {self._read_last_line()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def run(self, round: int) -> Turn:
        """Have it make one timed pass."""
        start, busy_start, kernel_start = time.perf_counter(), read_busy_seconds(), read_kernel_seconds()
        pipe = self._process.stdin
        if pipe is None or self._process.poll() is not None:
            raise WorkerError(f"died with status {self._process.poll()}: {self._read_last_line()}")
        pipe.write("go\n")
        pipe.flush()
        figures = self.receive()
        figures.pop("label_sum", None)
        # The kernel's threads write to disk for the competitor: they do not count as other programs.
        kernel = read_kernel_seconds() - kernel_start
        others = read_busy_seconds() - busy_start - figures["cpu_seconds"] - max(0.0, kernel)
        other_load = max(0.0, others / (time.perf_counter() - start))
        return Turn(*self.key, round=round, other_load=other_load, **figures)

    def close(self) -> None:
        """End the process, whatever state it is in."""
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def _read_last_line(self) -> str:
        self._log.seek(0)
        return (self._log.read().strip().splitlines() or ["(no output)"])[-1]


def run_rounds(jobs: list[Job], num_rounds: int, num_opened_at_once: int, script: Path) -> Results:
    """Start a worker with a script for each job, let them take turns, and drop those that fail.

    Opening several at once saves time, and spoils the figures of the opening.
    """
    score = Results()
    workers: list[Worker] = []
    try:
        for start in range(0, len(jobs), num_opened_at_once):
            fresh = [Worker(job, script) for job in jobs[start : start + num_opened_at_once]]
            workers += fresh
            for worker in fresh:
                _say(f"opening {worker.job.entry} on {worker.job.dataset}, {worker.job.num_cores} core(s)")
                try:
                    answer = worker.receive()
                    score.openings[worker.key] = answer["open_seconds"]
                    score.descriptions[worker.key] = answer.get("description", {})
                except WorkerError as error:
                    score.failures[worker.key] = str(error)
        for round in range(1, num_rounds + 1):
            # Back and forth, so that no worker always runs after the same other one.
            for worker in workers if round % 2 else reversed(workers):
                if worker.key in score.failures:
                    continue
                _say(f"round {round} of {num_rounds}: {worker.job.entry}, {worker.job.num_cores} core(s)")
                try:
                    score.turns.append(worker.run(round))
                except WorkerError as error:
                    score.failures[worker.key] = str(error)
    finally:
        for worker in workers:
            worker.close()
        _say("")
    return score


def _say(text: str) -> None:
    """Show progress on a terminal, on one line, and nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


class Ratio(NamedTuple):
    """A median over the rounds, with the lowest and highest of them."""

    middle: float
    low: float
    high: float


def pick_turns(score: Results, entry: str, dataset: str, num_cores: int) -> dict[int, Turn]:
    """Return the turns of one competitor by round."""
    wanted = (entry, dataset, num_cores)
    return {turn.round: turn for turn in score.turns if (turn.entry, turn.dataset, turn.num_cores) == wanted}


def compare(
    ours: dict[int, Turn],
    theirs: dict[int, Turn],
    rate: Callable[[Turn], float] = lambda turn: turn.records_per_second,
) -> Ratio | None:
    """Divide records per second round by round; None if the two share no round."""
    rates = [rate(ours[round]) / rate(theirs[round]) for round in sorted(ours.keys() & theirs.keys())]
    return Ratio(median(rates), min(rates), max(rates)) if rates else None


def find_rate(
    turns: dict[int, Turn], rate: Callable[[Turn], float] = lambda turn: turn.records_per_second
) -> float | None:
    """Return the median records per second."""
    return median(map(rate, turns.values())) if turns else None
