"""One sentence of advice, by the figures alone."""

import dataclasses

import pytest

from penstock.batch.stats import LoaderStats
from penstock.jobs.bench.advice import Measured, advise, share_busy
from raising import containing

# Two threads that were at work nine tenths of ten seconds; the consumer did nothing but wait.
BUSY = LoaderStats(
    batches=1000,
    records=128_000,
    bytes_read=128_000_000,
    seconds=10.0,
    read_seconds=0.5,
    decode_seconds=0.5,
    transform_seconds=0.5,
    wait_seconds=9.8,
    num_threads=2,
    num_ready=0,
)


def stats(read: float = 0.0, decode: float = 0.0, transform: float = 0.0, **others) -> LoaderStats:
    seconds = {"read_seconds": read, "decode_seconds": decode, "transform_seconds": transform}
    return dataclasses.replace(BUSY, **seconds, **others)


def measured(found: LoaderStats, **others) -> Measured:
    facts = {
        "batch_size": 128,
        "batch_bytes": 100_000,
        "prefetch_bytes": 64 << 20,
        "steps_per_epoch": 1000,
        "num_fields": 40,
        "num_records": 128_000,
        "num_cores": 2,
        "cache_bytes": 1 << 20,
    }
    return Measured(stats=found, **{**facts, **others})


SLOW_READS = stats(read=16.0)  # 125 µs a record
QUICK_READS = stats(read=10.0, records=10**7, bytes_read=10**10)  # 1 µs a record of 1000 bytes
IDLE = stats(decode=2.0)


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
            {"num_cores": 8, "batch_bytes": 30 << 20},
            containing("prefetch_bytes=503316480", 8, 2),
            id="window of large batches",
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


def test_large_records_from_memory_are_no_slow_storage() -> None:
    # 100 kB a record in 60 µs is 1.7 GB/s; 1 kB in as long is not.
    large = stats(read=15.0, records=250_000, bytes_read=250_000 * 100_000)
    small = stats(read=15.0, records=250_000, bytes_read=250_000 * 1000)
    assert not measured(large).is_slow_storage
    assert measured(small).is_slow_storage


@pytest.mark.parametrize(("cache_bytes", "fits"), [(2 * 128_000_000, True), (2 * 128_000_000 - 1, False)])
def test_cache_fits_if_it_holds_the_records_twice(cache_bytes, fits) -> None:
    assert measured(BUSY, cache_bytes=cache_bytes).fits_cache is fits


def test_bottleneck_is_the_most_expensive_stage_or_a_busy_consumer() -> None:
    assert measured(stats(3.0, 2.0, 1.0)).bottleneck == "read"
    assert measured(stats(2.0, 3.0, 1.0)).bottleneck == "decode"
    assert measured(stats(1.0, 2.0, 3.0)).bottleneck == "transform"
    seldom = stats(1.0, 2.0, 3.0, wait_seconds=0.9)
    assert measured(seldom, consumer_seconds=0.009).bottleneck == "consumer"
    assert measured(seldom).bottleneck == "transform"
    often = stats(1.0, 2.0, 3.0, wait_seconds=1.1)
    assert measured(often, consumer_seconds=0.008).bottleneck == "transform"


def test_share_of_busy_threads_is_of_all_their_time() -> None:
    assert share_busy(stats(1.0, 2.0, 3.0)) == pytest.approx(0.3)
    assert share_busy(stats(1.0, 2.0, 3.0, num_threads=0)) == pytest.approx(0.6)
    assert share_busy(stats(30.0)) == 1.0
    assert share_busy(stats(seconds=0.0)) == 0.0
