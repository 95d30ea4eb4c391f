"""Where the time of a loader goes.

In: what each part took, from any thread. Out: `LoaderStats`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from penstock.foundation.process import ProcessLock

STAGES = ("read", "decode", "transform")


@dataclass(frozen=True)
class LoaderStats:
    """What a loader has done so far.

    Attributes:
        batches: How many batches the consumer took.
        records: How many records they held.
        bytes_read: What was read for the batches made, frames included.
        seconds: From the first request to the last batch taken.
        read_seconds: Reading frames and checking them, of all threads together.
        decode_seconds: Turning them into columns, of all threads together.
        transform_seconds: Turning columns into batches, of all threads together.
        wait_seconds: How long the consumer waited for batches.
        num_threads: How many threads make batches.
        num_ready: How many batches wait for the consumer now.
    """

    batches: int
    records: int
    bytes_read: int
    seconds: float
    read_seconds: float
    decode_seconds: float
    transform_seconds: float
    wait_seconds: float
    num_threads: int
    num_ready: int

    @property
    def records_per_second(self) -> float:
        """Records that the consumer took a second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_second(self) -> float:
        """Megabytes read a second."""
        return self.bytes_read / 1e6 / self.seconds if self.seconds else 0.0

    @property
    def wait_share(self) -> float:
        """Which part of the time the consumer waited."""
        return min(1.0, self.wait_seconds / self.seconds) if self.seconds else 0.0

    @property
    def bottleneck(self) -> str:
        """What to make faster first: "read", "decode", "transform", or "consumer" if that is the slow one."""
        if self.wait_share < 0.1:
            return "consumer"
        spent = (self.read_seconds, self.decode_seconds, self.transform_seconds)
        return STAGES[spent.index(max(spent))]


class LoaderMeter:
    """Adds up what the parts of a loader take; any number of threads may tell it."""

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._begin: float | None = None
        self._end = 0.0
        self._wait = self._supply = self._transform = 0.0
        self._batches = self._records = 0

    def made(self, supply: float, transform: float) -> None:
        """Add what a batch took to make: getting its columns, and turning them into arrays."""
        with self._lock:
            self._supply += supply
            self._transform += transform

    def begin(self) -> None:
        """Note that a consumer begins to ask."""
        if self._begin is None:
            self._begin = self._end = time.perf_counter()

    def waited(self, seconds: float) -> None:
        """Add what the consumer waited."""
        self._wait += seconds

    def taken(self, num_records: int) -> None:
        """Count a batch that the consumer took."""
        self._batches += 1
        self._records += num_records
        self._end = time.perf_counter()

    def stats(self, read_seconds: float, bytes_read: int, num_threads: int, num_ready: int) -> LoaderStats:
        """Return what was added up, together with what the core says of its reading."""
        with self._lock:
            return LoaderStats(
                batches=self._batches,
                records=self._records,
                bytes_read=bytes_read,
                seconds=0.0 if self._begin is None else self._end - self._begin,
                read_seconds=read_seconds,
                decode_seconds=max(0.0, self._supply - read_seconds),
                transform_seconds=self._transform,
                wait_seconds=self._wait,
                num_threads=num_threads,
                num_ready=num_ready,
            )
