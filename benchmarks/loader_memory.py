"""The memory that a loader holds while its consumer is slow, sampled from outside.

In: for how long. Out: the resident set over time, and whether it grows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from datasets import HERE
from tables import draw
from worker import Job

SAMPLE_SECONDS = 1.0
BATCH_SECONDS = 0.1
NUM_LINES = 12
# How much the median of the last quarter may exceed the median of the second one, to call it flat.
MOST_GROWTH = 0.01
# A separate process, with nothing in it but the feed; for each batch it takes, it writes a byte.
PROGRAM = f"""
import json, sys, time
from worker import Job, pin_process
job = Job(**json.loads(sys.argv[1]))
pin_process(job.num_cores)
from load_worker import make_task
from feeds.penstock_loader import Feed
for batch in Feed(make_task(job)[1]).epochs():
    sys.stdout.write(".")
    sys.stdout.flush()
    time.sleep({BATCH_SECONDS})
"""


@dataclass(frozen=True)
class LoaderMemory:
    """Samples since the first batch: seconds, resident bytes, resident bytes that map no file."""

    num_cores: int
    num_batches: int
    samples: list[tuple[float, int, int]]

    @property
    def growth(self) -> float:
        """Return by what part the last quarter lies above the second; the first is for starting up."""
        quarter = max(1, len(self.samples) // 4)
        early = median(sample[1] for sample in self.samples[quarter : 2 * quarter] or self.samples)
        late = median(sample[1] for sample in self.samples[-quarter:])
        return late / early - 1


def measure_memory(seconds: float, num_cores: int, is_quick: bool) -> LoaderMemory:
    """Run the feed with a slow consumer for that many seconds."""
    job = Job("penstock", "table", num_cores, is_quick)
    command = [sys.executable, "-c", PROGRAM, job.to_json()]
    process = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE)
    samples = []
    try:
        if process.stdout is None or not process.stdout.read(1):
            raise RuntimeError(f"the feed ended with status {process.wait()}")
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < seconds:
            samples.append((now, *_read_status(process.pid)))
            time.sleep(min(SAMPLE_SECONDS, max(0.0, seconds - now)))
        if process.poll() is not None:
            raise RuntimeError(f"the feed ended with status {process.returncode}")
    finally:
        process.kill()
        rest, _ = process.communicate()
    return LoaderMemory(num_cores, 1 + len(rest), samples)


def format_memory(memory: LoaderMemory) -> str:
    """Draw it, and say whether it is flat."""
    stride = max(1, len(memory.samples) // NUM_LINES)
    picked = memory.samples[::stride]
    if picked[-1] != memory.samples[-1]:
        picked.append(memory.samples[-1])
    rows = [[f"{at:.0f} s", f"{total / 1e6:.1f} MB", f"{own / 1e6:.1f} MB"] for at, total, own in picked]
    verdict = "flat" if memory.growth <= MOST_GROWTH else "GROWING"
    heading = (
        f"memory: the table, one batch per {BATCH_SECONDS} s, {memory.num_batches:,} batches, "
        f"{memory.num_cores} thread(s)"
    )
    table = draw(["after", "resident", "without mapped files"], rows)
    return f"{heading}\n\n{table}\n\n{verdict}: last quarter over second {memory.growth:+.2%}"


def _read_status(process: int) -> tuple[int, int]:
    """Return VmRSS and RssAnon of /proc/PID/status, given there in kB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    figures = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "RssAnon"))}
    return int(figures["VmRSS"]) * 1024, int(figures["RssAnon"]) * 1024
