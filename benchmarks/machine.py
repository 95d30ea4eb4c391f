"""The machine and the software that the figures were measured on, and how busy it was with other programs."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "penstock",
    "numpy",
    "tensorflow-cpu",
    "tensorflow",
    "keras",
    "tensorflow-datasets",
    "protobuf",
    "pyarrow",
    "pandas",
    "tfrecord",
    "simplejpeg",
    "pillow",
    "opencv-python-headless",
    "webdataset",
    "obstore",
    "ray",
    "grain",
    "array-record",
    "torch",
    "torchvision",
    "jax",
    "scikit-learn",
)
# Columns of the first line of /proc/stat in which a core stands still: idle, iowait.
STANDING_STILL = (3, 4)
NUM_COUNTED = 8
# The parent of all threads of the kernel, and the columns of /proc/PID/stat after the name of the program.
KERNEL_PARENT = "2"
PARENT, USER_TICKS, SYSTEM_TICKS = 1, 11, 12


def describe_machine() -> dict[str, object]:
    """Describe what the figures depend on."""
    return {
        "cpu": _read_cpu_model(),
        "num_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _find_version(name))},
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def read_busy_seconds() -> float:
    """Return for how long the cores of this machine have worked so far, for any program."""
    counts = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = sum(count for i, count in enumerate(counts[:NUM_COUNTED]) if i not in STANDING_STILL)
    return busy / os.sysconf("SC_CLK_TCK")


def read_kernel_seconds() -> float:
    """Return for how long the threads of the kernel have worked that are there now."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            columns = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if columns[PARENT] == KERNEL_PARENT:
            ticks += int(columns[USER_TICKS]) + int(columns[SYSTEM_TICKS])
    return ticks / os.sysconf("SC_CLK_TCK")


def read_tree_seconds(process: int) -> float:
    """Return the CPU time of a process, of those below it that run now, and of those that they waited for."""
    parents: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            columns = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        number = int(path.parent.name)
        parents.setdefault(int(columns[PARENT]), []).append(number)
        ticks[number] = sum(map(int, columns[USER_TICKS : USER_TICKS + 4]))
    total, waiting = 0, [process]
    while waiting:
        number = waiting.pop()
        total += ticks.get(number, 0)
        waiting += parents.get(number, [])
    return total / os.sysconf("SC_CLK_TCK")


def _read_cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
