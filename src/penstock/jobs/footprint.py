"""What this process has taken from the machine, by the kernel's account.

In: nothing. Out: bytes.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path


def count_disk_bytes() -> int | None:
    """Return what the kernel has got from disks for this process so far; None if it does not tell."""
    return _read_number(Path("/proc/self/io"), "read_bytes")


def find_peak_bytes() -> int:
    """Return the most memory that this process had, mapped files included."""
    # `ru_maxrss` is that of the process that started this one, where that was larger: it comes second.
    kilobytes = _read_number(Path("/proc/self/status"), "VmHWM")
    return 1024 * (kilobytes or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def is_crowded() -> bool:
    """Return whether programs beside this one kept the machine's cores busy in the last minute."""
    # A run before this one may have kept each core busy by itself.
    cores = os.cpu_count() or 1
    return os.getloadavg()[0] > 1.5 * cores + 1


def _read_number(path: Path, name: str) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found.split()[1])
