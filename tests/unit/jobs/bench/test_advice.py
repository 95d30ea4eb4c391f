"""One sentence of advice, by the figures alone."""

import pytest

from bench_measurements import IDLE, measured, stats
from penstock.jobs.bench.advice import advise
from raising import containing

SLOW_READS = stats(read=16.0)  # 125 µs a record
QUICK_READS = stats(read=15.0, records=10**7, bytes_read=10**10)  # 1.5 µs per record of 1000 bytes


@pytest.mark.parametrize(
    ("found", "facts", "said"),
    [
        pytest.param(
            stats(decode=18.0, batches=4),
            {},
            containing("batches", "--seconds"),
            id="few batches",
        ),
        pytest.param(
            stats(decode=2.0, wait_seconds=0.5),
            {"consumer_seconds": 0.01},
            containing("consumer", 10),
            id="slow consumer",
        ),
        pytest.param(
            stats(decode=15.0, wait_seconds=0.5),
            {"consumer_seconds": 0.01},
            containing("consumer", "slightly"),
            id="consumer that just keeps up",
        ),
        pytest.param(
            stats(wait_seconds=0.5),
            {"consumer_seconds": 0.01},
            containing("consumer", 1000),
            id="loader that costs nothing",
        ),
        pytest.param(
            stats(decode=18.0),
            {"is_cached": True, "is_first": True},
            containing("epoch", "cache", "--seconds"),
            id="cache that was filled",
        ),
        pytest.param(
            stats(decode=18.0),
            {"num_cores": 8},
            containing("num_threads=8", 2, "90%"),
            id="cores that are not used",
        ),
        pytest.param(
            stats(decode=9.0, num_threads=1),
            {},
            containing("num_threads=2", 1, "90%"),
            id="one thread",
        ),
        pytest.param(
            stats(decode=9.0, num_threads=0),
            {},
            containing("threads", "batches", "num_threads=2"),
            id="no thread",
        ),
        pytest.param(
            IDLE,
            {"is_crowded": True},
            containing("cores", "measure again"),
            id="crowded machine",
        ),
        pytest.param(
            stats(decode=20.0, num_threads=8),
            {"num_cores": 8, "batch_bytes": 30_000_000, "num_fitting": 2, "num_slices": 7},
            containing("batch_size=64", "prefetch_bytes", 2, "30.0 MB", 8),
            id="memory for few batches",
        ),
        pytest.param(
            stats(decode=20.0, num_threads=8),
            {"num_cores": 8, "batch_bytes": 30_000_000, "num_fitting": 2, "num_slices": 8},
            containing("batches", "time", "batch_size=512"),
            id="memory for few batches of many slices",
        ),
        pytest.param(
            stats(transform=15.0, cpu_seconds=10.0),
            {},
            containing("Python", "thread", "batch_size=512", "fields"),
            id="threads that wait for Python",
        ),
        pytest.param(
            stats(transform=15.0, cpu_seconds=10.0, finish_seconds=8.0),
            {"has_maps": True},
            containing("Pipeline.map", "8.0 ms", "NumPy", "'penstock convert'"),
            id="functions of the user that hold the lock",
        ),
        pytest.param(
            stats(transform=6.0, finish_seconds=6.0),
            {"has_maps": True},
            containing("Pipeline.map", "6.0 ms"),
            id="functions of the user at the end of each batch",
        ),
        pytest.param(
            stats(transform=6.0, finish_seconds=6.0),
            {},
            containing("batches", "time", "batch_size=512"),
            id="joining the slices of small batches",
        ),
        pytest.param(
            stats(decode=18.0, cpu_seconds=10.0),
            {"is_crowded": True},
            containing("programs", "measure again"),
            id="busy threads on a crowded machine",
        ),
        pytest.param(
            IDLE,
            {"steps_per_epoch": 3, "is_crowded": True},
            containing(3, "repeat=None"),
            id="short epochs",
        ),
        pytest.param(
            IDLE,
            {"steps_per_epoch": 1},
            containing(1, "repeat=None"),
            id="epochs of one batch",
        ),
        pytest.param(
            IDLE,
            {},
            containing("batches", "time", "batch_size=512"),
            id="small batches",
        ),
        pytest.param(
            stats(decode=2.0, wait_seconds=0.5),
            {"consumer_seconds": 0.001},
            containing("batches", "time", "batch_size=512"),
            id="no waiting for a consumer that does little",
        ),
        pytest.param(
            stats(decode=18.0),
            {"is_compressed": True},
            containing("'penstock convert'"),
            id="compressed",
        ),
        pytest.param(
            stats(decode=18.0),
            {"is_compressed": True, "slowdown": 3.44},
            containing("'penstock convert'", "3.4"),
            id="compressed and inflated in the first epoch",
        ),
        pytest.param(
            SLOW_READS,
            {"shuffle": True, "cache_bytes": 1 << 40},
            containing('shuffle="block"', 125),
            id="random reads",
        ),
        pytest.param(
            SLOW_READS,
            {"shuffle": "global"},
            containing('shuffle="block"', 125),
            id="random reads that were asked for",
        ),
        pytest.param(
            SLOW_READS,
            {"shuffle": "block"},
            containing(125, "num_threads=4"),
            id="slow storage",
        ),
        pytest.param(
            QUICK_READS,
            {"shuffle": True},
            containing(1000, "bytes", "records"),
            id="reading from memory",
        ),
        pytest.param(
            stats(decode=18.0),
            {"cache_bytes": 1 << 30},
            containing("columns", 'cache="memory"'),
            id="decoding of what fits into memory",
        ),
        pytest.param(
            stats(transform=18.0),
            {"cache_bytes": 1 << 30, "pixel_bytes": 1000},
            containing("images", 'cache="memory"'),
            id="images that fit into memory",
        ),
        pytest.param(
            stats(transform=18.0),
            {"cache_bytes": 1 << 30, "pixel_bytes": 150_528},
            containing("pipeline", "fields", "texts"),
            id="images that do not fit",
        ),
        pytest.param(
            SLOW_READS,
            {"cache_bytes": 1 << 30},
            containing("columns", 'cache="memory"'),
            id="reading of what fits into memory",
        ),
        pytest.param(
            stats(decode=18.0),
            {},
            containing(40, "Pipeline.fit(data, name=None)"),
            id="decoding",
        ),
        pytest.param(
            stats(decode=18.0),
            {"cache_bytes": 1 << 30, "is_cached": True},
            containing(40, "Pipeline.fit(data, name=None)"),
            id="gathering from a cache",
        ),
        pytest.param(
            stats(decode=18.0),
            {"cache_bytes": 1 << 30, "is_cached": True, "pixel_bytes": 1000},
            containing("images", "cache", "batches"),
            id="images from a cache",
        ),
        pytest.param(
            stats(decode=18.0),
            {"cache_bytes": 1 << 30, "is_cached": True, "pixel_bytes": 150_528},
            containing("cache_bytes=19267584000", "'penstock convert --resize'"),
            id="more images than a cache holds",
        ),
        pytest.param(
            stats(transform=18.0, batches=36_000),
            {"cache_bytes": 1 << 30},
            containing("batch_size=512", 500),
            id="transforming small batches",
        ),
        pytest.param(
            stats(transform=18.0),
            {"cache_bytes": 1 << 30},
            containing("pipeline", "fields", "texts"),
            id="transforming",
        ),
    ],
)
def test_advice_fits_the_figures(found, facts, said) -> None:
    assert advise(measured(found, **facts)) == said


def test_advice_on_idle_threads_and_a_consumer_that_seldom_waits_names_the_stage() -> None:
    seldom = stats(transform=8.0, wait_seconds=2.0)
    assert advise(measured(seldom, consumer_seconds=0.008)) == containing("pipeline", "fields", "texts")


def test_advice_on_compressed_files_that_have_a_copy_is_that_on_plain_ones() -> None:
    assert advise(measured(stats(decode=18.0), is_compressed=True, slowdown=1.1)) == containing(
        "fields", "Pipeline.fit(data, name=None)"
    )
