"""Conversions that are killed: by a call to the system, or by the clock; each in a fork.

`python killed_conversions.py OUT --points N …` kills N of them, at points spread over the whole run, resumes
each, and says in JSON what was found.
"""

import argparse
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np

from penstock.jobs.convert.convert import convert  # now, and not in every fork
from penstock.shards.sort import row_store
from penstock.source import csv_ranges, cutter, files
from staged_writing import count_calls, die_at, fingerprint, run_child

NUM_ROWS = 400


def rows(seed: int = 0) -> dict[str, object]:
    """A table of some kinds of columns."""
    numbers = np.random.default_rng(seed)
    return {
        "row": np.arange(NUM_ROWS),
        "height": numbers.normal(size=NUM_ROWS).astype(np.float32),
        "word": [f"word {number}" for number in numbers.integers(0, 10**6, NUM_ROWS)],
        "vector": numbers.normal(size=(NUM_ROWS, 8)).astype(np.float32),
    }


def convert_rows(out: Path, seed: int = 0, source: object = None, **options: object) -> None:
    source = rows(seed) if source is None else source
    convert(source, out, id="row", shard_bytes=4000, num_threads=2, **options)


def write_csv(path: Path) -> Path:
    """Write a CSV file; threads read and hash it ahead in conversions, and sort its rows on the disk."""
    cells = rows()
    lines = zip(cells["row"].tolist(), cells["height"].tolist(), cells["word"], strict=True)
    path.write_text(
        "row,height,word\n" + "".join(f'{row},{height},"{word}"\n' for row, height, word in lines)
    )
    cutter.BLOCK_ROWS = csv_ranges.BLOCK_ROWS = 32
    row_store._RUN_BYTES = 6000
    files._READ_AHEAD = files._HASHED_AHEAD = 0
    return path


class Campaign:
    """Kills the same conversion again and again.

    Attributes:
        found: How often the old data set was there, how often the new one; and the points at which something
            else was, at which a resumed run or a new one gave other bytes, or left files over.
    """

    def __init__(self, out: Path, compression: str, *, overwrite: bool, is_on_disk: bool) -> None:
        self.out = out
        self.found = {"old": 0, "new": 0, "other": [], "unlike": [], "left": [], "failed": [], "resumed": 0}
        self._options = {"compression": compression, "overwrite": overwrite}
        if is_on_disk:
            self._options |= {"source": write_csv(out.with_name("rows.csv")), "memory_bytes": 9000}
        self._kept = out.with_name("kept") if overwrite else None
        self._old = None
        self._convert(resume=False)
        self._new = fingerprint(out)
        shutil.rmtree(out)
        if self._kept is not None:
            run_child(lambda: convert_rows(self._kept, seed=1))
            self._old = fingerprint(self._kept)

    def _convert(self, *, resume: bool) -> None:
        # A data set that was completed by a run that was killed afterwards is written over.
        options = {**self._options, "overwrite": self.out.exists()}
        if run_child(lambda: convert_rows(self.out, **options, resume=resume)):
            self.found["failed"].append(str(options))

    def count_calls(self) -> int:
        """Return how many calls change the disk in an undisturbed run."""
        self._prepare()
        reading, writing = os.pipe()

        def count() -> None:
            counted = count_calls()
            convert_rows(self.out, **self._options)
            os.write(writing, str(counted()).encode())

        run_child(count)
        shutil.rmtree(self.out)
        return int(os.read(reading, 100))

    def measure_seconds(self) -> float:
        """Return how long an undisturbed run takes."""
        self._prepare()
        began = time.perf_counter()
        run_child(lambda: convert_rows(self.out, **self._options))
        seconds = time.perf_counter() - began
        shutil.rmtree(self.out)
        return seconds

    def kill_at_call(self, call: int) -> None:
        def run() -> None:
            die_at(call)
            convert_rows(self.out, **self._options)

        self._prepare()
        run_child(run)
        self._look(call)

    def kill_after(self, seconds: float) -> None:
        self._prepare()
        pid = os.fork()
        if pid == 0:
            convert_rows(self.out, **self._options)
            os._exit(0)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self._look(seconds)

    def _prepare(self) -> None:
        if self._kept is not None:
            shutil.copytree(self._kept, self.out)

    def _look(self, point: float) -> None:
        state = fingerprint(self.out)
        if state in (self._old, self._new):
            self.found["old" if state == self._old else "new"] += 1
        else:
            self.found["other"].append(point)
        partial = self.out.with_name(f".{self.out.name}.partial")
        self.found["resumed"] += any(partial.glob("data/*.tfrecord*"))
        if self._kept is None and state is None:
            copy = self.out.with_name(f".{self.out.name}.copy")
            if partial.exists():
                shutil.copytree(partial, copy)
            self._convert(resume=False)
            self._compare(point)
            if copy.exists():
                copy.rename(partial)
        self._convert(resume=True)
        self._compare(point)

    def _compare(self, point: float) -> None:
        if fingerprint(self.out) != self._new:
            self.found["unlike"].append(point)
        if [path.name for path in self.out.parent.iterdir() if path.name.startswith(f".{self.out.name}.p")]:
            self.found["left"].append(point)
        shutil.rmtree(self.out)


def spread(most: int, num_points: int, seed: int) -> list[int]:
    """Return points from 1 to `most`: the last, where the data set takes its place, others by chance."""
    if num_points >= most:
        return list(range(1, most + 1))
    last = range(most - num_points // 4, most + 1)
    chosen = random.Random(seed).sample(range(1, last[0]), num_points - len(last))  # noqa: S311
    return [*sorted(chosen), *last]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--by", choices=("call", "time"), default="call")
    parser.add_argument("--compression", default="none")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--on-disk", action="store_true", help="a CSV file, with little memory for its rows")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    campaign = Campaign(given.out, given.compression, overwrite=given.overwrite, is_on_disk=given.on_disk)
    if given.by == "call":
        calls = campaign.count_calls()
        for call in spread(calls, given.points, given.seed):
            campaign.kill_at_call(call)
        campaign.found["calls"] = calls
    else:
        seconds = campaign.measure_seconds()
        chance = random.Random(given.seed)  # noqa: S311
        for _ in range(given.points):
            campaign.kill_after(chance.uniform(0, 1.1 * seconds))
    print(json.dumps(campaign.found))


if __name__ == "__main__":
    main()
