"""Measurements of a loader that never ran, for tests of the conclusions."""

import dataclasses

from penstock.batch.stats import LoaderStats
from penstock.jobs.bench.report import Measured

# Two threads that were at work nine tenths of ten seconds; the consumer did nothing but wait.
BUSY = LoaderStats(
    batches=1000,
    records=128_000,
    bytes_read=128_000_000,
    seconds=10.0,
    read_seconds=0.5,
    decode_seconds=0.5,
    transform_seconds=0.5,
    finish_seconds=0.1,
    cpu_seconds=18.0,
    wait_seconds=9.8,
    num_threads=2,
    num_ready=0,
)


def stats(read: float = 0.0, decode: float = 0.0, transform: float = 0.0, **others) -> LoaderStats:
    seconds = {"read_seconds": read, "decode_seconds": decode, "transform_seconds": transform}
    return dataclasses.replace(BUSY, **seconds, **others)


def measured(found: LoaderStats, **others) -> Measured:
    usual = {
        "batch_size": 128,
        "num_slices": 1,
        "num_fitting": 100,
        "steps_per_epoch": 1000,
        "num_records": 128_000,
        "num_cores": 2,
    }
    return Measured(stats=found, **{**usual, **others})


IDLE = stats(decode=2.0)
