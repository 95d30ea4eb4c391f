"""How a loader spends its time.

In: durations measured in any thread. Out: `LoaderStats`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from penstock.foundation.process import ProcessLock

STAGES = ("read", "decode", "transform")


@dataclass(frozen=True)
class LoaderStats:
    """Counts and durations of a loader so far.

    Attributes:
        batches: Number of batches that the consumer took.
        records: Number of records in those batches.
        bytes_read: Number of bytes read for the batches made, framing included.
        seconds: Time from the first request to the last batch taken.
        read_seconds: Time for reading and checking records, summed over all threads.
        decode_seconds: Time for decoding records into columns, summed over all threads.
        transform_seconds: Time for turning columns into batches, summed over all threads.
        finish_seconds: Part of `transform_seconds` after the last slice of each batch is made: joining the
            slices and calling the functions of `Pipeline.map`, by one thread per batch.
        cpu_seconds: CPU time of the process from the first request to the last batch taken. It includes the
            consumer: a model that is trained on the CPU, for instance.
        wait_seconds: Time that the consumer waited for batches.
        num_threads: Number of threads that load data.
        num_ready: Number of batches that are ready for the consumer now.
    """

    batches: int
    records: int
    bytes_read: int
    seconds: float
    read_seconds: float
    decode_seconds: float
    transform_seconds: float
    finish_seconds: float
    cpu_seconds: float
    wait_seconds: float
    num_threads: int
    num_ready: int

    @property
    def records_per_second(self) -> float:
        """Number of records that the consumer took per second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def megabytes_per_second(self) -> float:
        """Number of megabytes read per second."""
        return self.bytes_read / 1e6 / self.seconds if self.seconds else 0.0

    @property
    def cores_used(self) -> float:
        """Mean number of cores that the process used, the consumer included."""
        return self.cpu_seconds / self.seconds if self.seconds else 0.0

    @property
    def wait_share(self) -> float:
        """Share of the time that the consumer waited."""
        return min(1.0, self.wait_seconds / self.seconds) if self.seconds else 0.0

    @property
    def bottleneck(self) -> str:
        """The slowest stage: "read", "decode", "transform", or "consumer" if loading is fast enough."""
        if self.wait_share < 0.1:
            return "consumer"
        spent = (self.read_seconds, self.decode_seconds, self.transform_seconds)
        return STAGES[spent.index(max(spent))]


class LoaderMeter:
    """Sums the durations of the parts of a loader; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._begin: float | None = None
        self._end = 0.0
        self._cpu_begin = self._cpu_end = 0.0
        self._wait = self._supply = self._transform = self._finish = 0.0
        self._batches = self._records = 0

    def made(self, supply: float, transform: float) -> None:
        """Add the time to make a slice of a batch: to get its columns, and to turn them into arrays."""
        with self._lock:
            self._supply += supply
            self._transform += transform

    def finished(self, seconds: float) -> None:
        """Add the time to finish a batch after its slices are made."""
        with self._lock:
            self._transform += seconds
            self._finish += seconds

    def begin(self) -> None:
        """Start the clock with the first request of a consumer."""
        if self._begin is None:
            self._begin = self._end = time.perf_counter()
            self._cpu_begin = self._cpu_end = time.process_time()

    def waited(self, seconds: float) -> None:
        """Add the time that the consumer waited."""
        self._wait += seconds

    def taken(self, num_records: int) -> None:
        """Count a batch that the consumer took."""
        self._batches += 1
        self._records += num_records
        self._end = time.perf_counter()
        self._cpu_end = time.process_time()

    def stats(self, read_seconds: float, bytes_read: int, num_threads: int, num_ready: int) -> LoaderStats:
        """Return the sums, together with the reading time and bytes counted by the core."""
        with self._lock:
            return LoaderStats(
                batches=self._batches,
                records=self._records,
                bytes_read=bytes_read,
                seconds=0.0 if self._begin is None else self._end - self._begin,
                read_seconds=read_seconds,
                decode_seconds=max(0.0, self._supply - read_seconds),
                transform_seconds=self._transform,
                finish_seconds=self._finish,
                cpu_seconds=self._cpu_end - self._cpu_begin,
                wait_seconds=self._wait,
                num_threads=num_threads,
                num_ready=num_ready,
            )
