"""The slowest stage, and the limit to the number of cores, from the figures alone."""

import pytest

from bench_measurements import IDLE, measured, stats
from penstock.jobs.bench.report import share_busy


def test_large_records_from_memory_are_no_slow_storage() -> None:
    # 100 kB a record in 60 µs is 1.7 GB/s; 1 kB in as long is not.
    large = stats(read=15.0, records=250_000, bytes_read=250_000 * 100_000)
    small = stats(read=15.0, records=250_000, bytes_read=250_000 * 1000)
    assert not measured(large).is_slow_storage
    assert measured(small).is_slow_storage


def test_bottleneck_is_the_most_expensive_stage_or_a_busy_consumer() -> None:
    assert measured(stats(3.0, 2.0, 1.0)).bottleneck == "read"
    assert measured(stats(2.0, 3.0, 1.0)).bottleneck == "decode"
    assert measured(stats(1.0, 2.0, 3.0)).bottleneck == "transform"
    seldom = stats(1.0, 2.0, 3.0, wait_seconds=0.9)
    assert measured(seldom, consumer_seconds=0.009).bottleneck == "consumer"
    assert measured(seldom).bottleneck == "transform"
    often = stats(1.0, 2.0, 3.0, wait_seconds=1.1)
    assert measured(often, consumer_seconds=0.008).bottleneck == "transform"


@pytest.mark.parametrize(
    ("found", "facts", "limit"),
    [
        pytest.param(
            stats(decode=2.0, wait_seconds=0.5), {"consumer_seconds": 0.01}, "consumer", id="slow consumer"
        ),
        pytest.param(
            stats(decode=8.0), {"consumer_seconds": 0.006}, "consumer", id="consumer that often waits"
        ),
        pytest.param(stats(decode=18.0), {}, "none", id="busy threads, one per core"),
        pytest.param(stats(decode=18.0), {"num_cores": 4}, "threads", id="busy threads, fewer than cores"),
        pytest.param(stats(decode=9.0, num_threads=0, cpu_seconds=9.0), {}, "threads", id="no threads"),
        pytest.param(stats(read=18.0, cpu_seconds=2.0), {}, "storage", id="reads that wait"),
        pytest.param(
            stats(read=18.0, cpu_seconds=2.0, records=10**8, bytes_read=10**11), {}, "python", id="many reads"
        ),
        pytest.param(
            stats(transform=18.0, cpu_seconds=10.0), {}, "python", id="threads that wait for a lock"
        ),
        pytest.param(
            stats(transform=18.0, cpu_seconds=10.0),
            {"is_crowded": True},
            "programs",
            id="threads without a core",
        ),
        pytest.param(IDLE, {"is_crowded": True}, "programs", id="idle threads on a crowded machine"),
        pytest.param(stats(transform=6.0, finish_seconds=5.0), {}, "finish", id="end of batches"),
        pytest.param(IDLE, {"num_fitting": 2}, "memory", id="one slice in the making, two threads"),
        pytest.param(IDLE, {"num_fitting": 2, "num_slices": 2}, "rows", id="a slice for each thread"),
        pytest.param(IDLE, {"num_fitting": 3}, "rows", id="a batch for each thread"),
        pytest.param(IDLE, {"steps_per_epoch": 7}, "epochs", id="short epochs"),
        pytest.param(IDLE, {"steps_per_epoch": 8}, "rows", id="small batches"),
    ],
)
def test_limit_fits_the_figures(found, facts, limit) -> None:
    assert measured(found, **facts).limit == limit


def test_cores_used_are_the_cpu_time_of_the_process_per_second() -> None:
    assert stats(cpu_seconds=18.0, seconds=10.0).cores_used == pytest.approx(1.8)
    assert stats(seconds=0.0).cores_used == 0.0


def test_share_of_busy_threads_is_of_all_their_time() -> None:
    assert share_busy(stats(1.0, 2.0, 3.0)) == pytest.approx(0.3)
    assert share_busy(stats(1.0, 2.0, 3.0, num_threads=0)) == pytest.approx(0.6)
    assert share_busy(stats(30.0)) == 1.0
    assert share_busy(stats(seconds=0.0)) == 0.0
