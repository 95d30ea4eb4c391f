"""Options of reading and loading: defaults, and values that are refused."""

import math
import os
from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.settings.loading import LoadOptions
from raising import containing, mentions, raises_with


def test_options_have_defaults_and_are_frozen():
    options = ps.options.ReadOptions()
    assert options.to_json() == {
        "compression": "auto",
        "max_skipped": 1000,
        "max_record_bytes": 1 << 30,
        "allow_trailing_zeros": False,
        "strict": False,
        "store_cache_bytes": None,
    }
    with pytest.raises(AttributeError):
        options.strict = True


def test_options_are_named_never_counted():
    with pytest.raises(TypeError):
        ps.options.ReadOptions("gzip")


@pytest.mark.parametrize(
    ("name", "expected", "value", "usual"),
    [
        ("max_skipped", "0", -1, 1000),
        ("max_skipped", "0", 1.5, 1000),
        ("max_skipped", "0", True, 1000),
        ("max_skipped", "0", None, 1000),
        ("max_record_bytes", "1 1099511627776", 0, 1 << 30),
        ("max_record_bytes", "1 1099511627776", "1 GB", 1 << 30),
        ("max_record_bytes", "1 1099511627776", 2**40 + 1, 1 << 30),
        ("max_record_bytes", "1 1099511627776", 2**64 - 1, 1 << 30),
        ("strict", "True False", "yes", False),
        ("allow_trailing_zeros", "True False", 1, False),
    ],
)
def test_option_out_of_its_range_is_refused(name, expected, value, usual):
    with pytest.raises(OptionError) as caught:
        ps.options.ReadOptions(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert mentions(caught.value, f"{name} {expected} {value!r} {usual}")


def test_number_too_long_to_be_printed_is_refused():
    with raises_with(OptionError, got=containing(33220)):
        ps.options.ReadOptions(max_record_bytes=10**10_000)


def test_least_and_largest_values_are_taken():
    assert ps.options.ReadOptions(max_skipped=0, max_record_bytes=1).max_skipped == 0
    assert ps.options.ReadOptions(max_record_bytes=1 << 40).max_record_bytes == 1 << 40


def test_loading_has_the_defaults_of_the_documentation():
    options = LoadOptions()
    assert (options.batch_size, options.shuffle, options.seed, options.last) == (32, False, 0, "short")
    assert (options.repeat, options.skip, options.take, options.filter) == (1, 0, None, None)
    assert (options.rank, options.world) == (0, 1)
    assert options.prefetch_bytes is None


def test_threads_are_the_cores_that_this_process_may_use():
    assert LoadOptions().count_threads() == len(os.sched_getaffinity(0))
    assert LoadOptions(num_threads=0).count_threads() == 0
    assert LoadOptions(num_threads=3).count_threads() == 3


@pytest.mark.parametrize(
    ("name", "value", "facts"),
    [
        ("batch_size", 0, "batch_size 1 0"),
        ("batch_size", 2.0, "batch_size 1 2.0"),
        ("batch_size", True, "batch_size 1 True"),
        ("batch_size", "8", "batch_size 1 '8'"),
        ("shuffle", "yes", "shuffle True False 'block' 'global' 'yes'"),
        ("shuffle", None, "shuffle True False 'block' 'global' None"),
        ("shuffle", 1, "shuffle True False 'block' 'global' 1"),
        ("seed", -1, f"seed 0 {2**64 - 1} -1"),
        ("seed", 2**64, f"seed 0 {2**64 - 1} {2**64}"),
        ("seed", None, f"seed 0 {2**64 - 1} None"),
        ("last", "keep", "last 'short' 'drop' 'pad' 'keep'"),
        ("last", None, "last 'short' 'drop' 'pad' None"),
        ("repeat", 0, "repeat 1 0"),
        ("skip", -1, "skip 0 -1"),
        ("take", -1, "take 0 -1"),
        ("filter", 3, "filter 3"),
        ("bucket_by", 3, "bucket_by 3"),
        ("window_blocks", 0, "window_blocks 1 0"),
        ("block_records", 0, "block_records 1 0"),
        ("num_threads", -1, "num_threads 0 -1"),
        ("prefetch_bytes", -1, "prefetch_bytes 0 -1"),
        ("cache_bytes", -1, "cache_bytes 0 -1"),
        ("cache", 7, "cache 'memory' 7"),
        ("shard", 3, "shard 3"),
        ("shard", (1,), "shard (1,)"),
        ("shard", (0.0, 2), "shard (0.0, 2)"),
        ("shard", (2, 2), "shard 0 1 (2, 2)"),
        ("shard", (-1, 2), "shard 0 1 (-1, 2)"),
        ("shard", (0, 0), "shard 0 1 (0, 0)"),
        ("part", 0.5, "part (0, 0.9) 0.5"),
        ("part", (0.1,), "part (0, 0.9) (0.1,)"),
        ("part", ("0", 1), "part (0, 0.9) ('0', 1)"),
        ("part", (0.5, 0.5), "part 0 1 (0.5, 0.5)"),
        ("part", (0.9, 0.1), "part 0 1 (0.9, 0.1)"),
        ("part", (-0.1, 1), "part 0 1 (-0.1, 1)"),
        ("part", (0, 1.1), "part 0 1 (0, 1.1)"),
        ("part", (0, math.nan), "part 0 1 (0, nan)"),
        ("weights", 3, "weights 3"),
        ("weights", {}, "weights {}"),
        ("max_tokens", 100, "max_tokens bucket_by bucket_by='tokens'"),
        ("bucket_records", 100, "bucket_records bucket_by bucket_by='tokens'"),
    ],
)
def test_option_of_loading_that_is_not_valid_is_refused(name, value, facts):
    with raises_with(OptionError, facts) as caught:
        LoadOptions(**{name: value})
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 10**9),
        ("shuffle", "block"),
        ("shuffle", "global"),
        ("seed", 2**64 - 1),
        ("last", "pad"),
        ("repeat", None),
        ("take", 0),
        ("num_threads", 0),
        ("prefetch_bytes", 0),
        ("cache", Path("somewhere")),
        ("shard", (3, 4)),
        ("weights", {"s": {"a": 1.0}}),
        ("part", (0.0, 1.0)),
        ("part", (0.9, 1)),
        ("part", None),
    ],
)
def test_option_of_loading_at_its_limit_is_accepted(name, value):
    assert getattr(LoadOptions(**{name: value}), name) == value


@pytest.mark.parametrize("last", ["drop", "pad"])
def test_buckets_leave_no_choice_about_the_last_batch(last):
    with raises_with(OptionError, f"last 'short' bucket_by {last!r}"):
        LoadOptions(bucket_by="tokens", last=last)
