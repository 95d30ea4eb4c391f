"""The memory that a conversion of a large CSV takes, sampled from outside and asked of the kernel at its end.

In: a number of bytes or of rows. Out: the highest resident set, how much of it was the process's own, wall
and CPU time, speed.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from datasets import STORE
from sources import write_raw_source

SAMPLE_SECONDS = 0.05
STEP_ROWS = 1 << 18
KINDS = ("cat", "dog", "cow", "hen")
# A separate process, with nothing in it but the conversion.
PROGRAM = """
import json
import resource
import sys
import penstock as ps
dataset = ps.convert(sys.argv[1], sys.argv[2], num_threads=int(sys.argv[3]))
used = resource.getrusage(resource.RUSAGE_SELF)
rows = sum(len(dataset[name]) for name in dataset.splits)
print(json.dumps({"rows": rows, "cpu": used.ru_utime + used.ru_stime}), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class ConversionMemory:
    """What one conversion took; of the peak, `own_bytes` is without pages of files that are mapped."""

    source_bytes: int
    num_records: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    own_bytes: int
    num_workers: int


def ensure_large(num_bytes: int) -> Path:
    """Make a CSV of at least so many bytes, with no two rows alike, if it is not there."""
    path = STORE / "data" / "sources" / "large" / f"T-{num_bytes}.csv"
    if not path.exists():
        print(f"making {num_bytes / 1e9:g} GB of CSV at {path}", flush=True)
        write_raw_source(["large", "--path", str(path), "--bytes", str(num_bytes)])
    return path


def write_short_rows(path: Path, num_rows: int) -> None:
    """Write a CSV of three short columns, in blocks: memory per row shows sooner there than memory per byte.

    The first 390 million rows all differ.
    """
    kinds = pa.array(KINDS)
    schema = pa.schema({"number": pa.int64(), "score": pa.int64(), "kind": pa.string()})
    options = pa_csv.WriteOptions(quoting_style="needed")
    with pa_csv.CSVWriter(path, schema, write_options=options) as writer:
        for start in range(0, num_rows, STEP_ROWS):
            rows = np.arange(start, min(start + STEP_ROWS, num_rows))
            # The multiplier spreads the scores, so that neighbouring rows are not alike.
            scores = rows * 65_537 % 100_003
            writer.write_batch(
                pa.record_batch([rows % 977, scores, kinds.take(pa.array(rows % len(KINDS)))], schema=schema)
            )


def measure_memory(source: Path, out: Path, num_workers: int) -> ConversionMemory:
    """Convert in a fresh process and watch it."""
    command = [sys.executable, "-c", PROGRAM, str(source), str(out), str(num_workers)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    own_bytes = 0
    try:
        # It writes one line when it is done, then waits, so that the kernel can still be asked about it.
        while not _has_answered(process):
            own_bytes = max(own_bytes, _read_status(process.pid, "RssAnon"))
            time.sleep(SAMPLE_SECONDS)
        seconds = time.perf_counter() - start
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise RuntimeError(f"the conversion of {source} ended with status {process.wait()}")
        peak_bytes = _read_status(process.pid, "VmHWM")
        answer = json.loads(line)
    finally:
        process.kill()
        process.communicate()
    return ConversionMemory(
        source.stat().st_size, answer["rows"], seconds, answer["cpu"], peak_bytes, own_bytes, num_workers
    )


def format_memory(memory: ConversionMemory) -> str:
    """Say it in a line."""
    return (
        f"{memory.source_bytes / 1e9:.2f} GB of CSV, {memory.num_records:,} rows, "
        f"{memory.num_workers} worker(s): peak memory {memory.peak_bytes / 1e6:,.0f} MB "
        f"({memory.own_bytes / 1e6:,.0f} MB without mapped files), {memory.seconds:.1f} s "
        f"({memory.cpu_seconds:.1f} s of CPU), "
        f"{memory.source_bytes / 1e6 / memory.seconds:.0f} MB/s of CSV"
    )


def _has_answered(process: subprocess.Popen[str]) -> bool:
    return bool(select.select([process.stdout], [], [], 0)[0])


def _read_status(process: int, name: str) -> int:
    """Return a figure of /proc/PID/status, given there in kB; 0 if the process is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)
