"""Runs the contestants in turns: in every round each of them makes one pass, alone on its cores.

In: the orders. Out: a `Score`: the figures of every turn, and why a contestant dropped out if it did.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from booth import Order
from machine import read_busy_seconds, read_kernel_seconds

BOOTH = Path(__file__).resolve().parent / "booth.py"
# A pass takes seconds; an answer that takes this long is not coming.
LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class Turn:
    """One timed pass; `other_load` says how many cores were busy with something else meanwhile.

    Writers also say how many bytes they wrote, and how long `sync` took after them. Feeds of a training run
    say for each step how many nanoseconds it waited for its batch, made tensors of it, and trained. Feeds of
    images say what they used on the clock alone; `cpu_seconds` is all of the turn.
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
class Score:
    """All that was measured; openings and failures by (entry, data set, cores)."""

    turns: list[Turn] = field(default_factory=list)
    openings: dict[tuple[str, str, int], float] = field(default_factory=dict)
    failures: dict[tuple[str, str, int], str] = field(default_factory=dict)


class BoothError(RuntimeError):
    """A contestant that could not do what it was asked."""


class Booth:
    """The arena's end of a contestant's process, which waits idle between its turns."""

    def __init__(self, order: Order, script: Path = BOOTH) -> None:
        self.order = order
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, str(script), order.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    @property
    def key(self) -> tuple[str, str, int]:
        return self.order.entry, self.order.dataset, self.order.num_cores

    def receive(self) -> dict[str, Any]:
        """Wait for the next answer."""
        pipe = self._process.stdout
        if pipe is None or not select.select([pipe], [], [], LIMIT_SECONDS)[0]:
            raise BoothError(f"no answer in {LIMIT_SECONDS:.0f} s")
        line = pipe.readline()
        if not line:
            raise BoothError(f"died with status {self._process.wait()}: {self._read_last_line()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BoothError(answer["error"])
        return answer

    def run(self, round: int) -> Turn:
        """Have it make one timed pass."""
        start, busy_start, kernel_start = time.perf_counter(), read_busy_seconds(), read_kernel_seconds()
        pipe = self._process.stdin
        if pipe is None or self._process.poll() is not None:
            raise BoothError(f"died with status {self._process.poll()}: {self._read_last_line()}")
        pipe.write("go\n")
        pipe.flush()
        figures = self.receive()
        figures.pop("label_sum", None)
        # The kernel's threads put on the disk what the contestant has written: they are none of the others.
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
        return (self._log.read().strip().splitlines() or ["(it said nothing)"])[-1]


def hold_rounds(
    orders: list[Order], num_rounds: int, num_opened_at_once: int = 1, script: Path = BOOTH
) -> Score:
    """Open a booth for each order, let them take turns, and drop those that fail.

    Opening several at once saves time, and spoils the figures of the opening.
    """
    score = Score()
    booths: list[Booth] = []
    try:
        for start in range(0, len(orders), num_opened_at_once):
            fresh = [Booth(order, script) for order in orders[start : start + num_opened_at_once]]
            booths += fresh
            for booth in fresh:
                _say(f"opening {booth.order.entry} on {booth.order.dataset}, {booth.order.num_cores} core(s)")
                try:
                    score.openings[booth.key] = booth.receive()["open_seconds"]
                except BoothError as error:
                    score.failures[booth.key] = str(error)
        for round in range(1, num_rounds + 1):
            # Back and forth, so that nobody always runs behind the same neighbour.
            for booth in booths if round % 2 else reversed(booths):
                if booth.key in score.failures:
                    continue
                _say(f"round {round} of {num_rounds}: {booth.order.entry}, {booth.order.num_cores} core(s)")
                try:
                    score.turns.append(booth.run(round))
                except BoothError as error:
                    score.failures[booth.key] = str(error)
    finally:
        for booth in booths:
            booth.close()
        _say("")
    return score


def _say(text: str) -> None:
    """Show progress on a terminal, on one line, and nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
