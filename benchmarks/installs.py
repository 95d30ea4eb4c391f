"""Compares two installs of Penstock, such as a wheel of the stable ABI and one of a single Python version.

In: the interpreters of two environments. Out: a table of CPU time per call, record and batch, and the ratio
of the second install to the first. Each measurement is a separate process, and the installs take turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

NUM_RECORDS = 20_000
# Small batches and single calls, where the bindings are a large share, and batches as in training.
WORKER = """
import json, sys, time
import numpy as np
import penstock as ps
from penstock import _native as core

split = ps.open(sys.argv[1])["train"]
pipeline = ps.Pipeline.fit(split)
rows = np.random.default_rng(0).integers(0, len(split), 2000).tolist()

def measure(work, count):
    work()
    begin = time.process_time()
    work()
    return (time.process_time() - begin) / count * 1e6

def call(count=200_000):
    for _ in range(count):
        core.crc32c(b"abcdefgh")

def make(count=100_000):
    for _ in range(count):
        core.empty((8, 4), "float32")

def load(size):
    return lambda: [None for _ in split.loader(pipeline, batch_size=size, shuffle=True, num_threads=1)]

print(json.dumps({
    "call of crc32c": measure(call, 200_000),
    "call of empty": measure(make, 100_000),
    "one record": measure(lambda: [split[row] for row in rows], len(rows)),
    "batch of 8": measure(load(8), len(split) / 8),
    "batch of 256": measure(load(256), len(split) / 256),
}))
"""


def make_data(folder: Path) -> None:
    """Convert a table of numbers, categories, texts and lists to a data set of one split."""
    import numpy as np  # noqa: PLC0415 - the workers bring their own

    import penstock as ps  # noqa: PLC0415

    random = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "cat", "dog", "house"])
    table = {f"number_{i}": random.normal(size=NUM_RECORDS).astype(np.float32) for i in range(8)}
    table |= {f"kind_{i}": words[random.integers(0, len(words), NUM_RECORDS)] for i in range(4)}
    table["note"] = np.array(
        [" ".join(row) for row in words[random.integers(0, len(words), (NUM_RECORDS, 6))]]
    )
    table["label"] = random.integers(0, 2, NUM_RECORDS)
    ps.convert(table, folder, target="label", split={"train": 1.0})


def run_once(python: str, data: Path) -> dict[str, float]:
    """Return the microseconds of CPU time of each measurement with one install."""
    done = subprocess.run(
        [python, "-c", WORKER, str(data)], cwd=data.parent, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def compare(first: str, second: str, num_rounds: int, run: Callable[[str], dict[str, float]]) -> str:
    """Return the table of both installs, whose turns alternate."""
    rounds = []
    for number in range(num_rounds):
        pair = (first, second) if number % 2 == 0 else (second, first)
        measured = {python: run(python) for python in pair}
        rounds.append((measured[first], measured[second]))
    lines = [f"{'µs of CPU time':<16}{'first':>10}{'second':>10}   second / first, median (lowest - highest)"]
    for name in rounds[0][0]:
        ratios = sorted(b[name] / a[name] for a, b in rounds)
        times = [f"{median(each[side][name] for each in rounds):>10.3f}" for side in (0, 1)]
        lines.append(
            f"{name:<16}{''.join(times)}   {median(ratios):.3f} ({ratios[0]:.3f} - {ratios[-1]:.3f})"
        )
    return "\n".join(lines)


def main() -> int:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", help="interpreter of an environment with one install")
    parser.add_argument("second", help="interpreter of an environment with the other")
    parser.add_argument("--rounds", type=int, default=11, help="turns of each install")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        make_data(data)
        begin = time.monotonic()
        print(compare(options.first, options.second, options.rounds, lambda python: run_once(python, data)))
    print(f"{options.rounds} rounds in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
