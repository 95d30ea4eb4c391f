"""Options of a loader: defaults, values that cannot be, names that are not there."""

import dataclasses
import math
import os
from pathlib import Path

import pytest

from penstock.batch.options import LoadChoices, LoadOptions, make_options
from penstock.errors import OptionError
from raising import containing, raises_with


def test_keywords_are_the_fields_of_the_options():
    named = {"batch_size", "shuffle", "seed"}
    assert set(LoadChoices.__annotations__) | named == {each.name for each in dataclasses.fields(LoadOptions)}


def test_defaults_are_those_that_the_docstring_tells():
    options = LoadOptions()
    assert (options.batch_size, options.shuffle, options.seed, options.last) == (32, False, 0, "short")
    assert (options.repeat, options.skip, options.take, options.filter) == (1, 0, None, None)
    assert (options.rank, options.world) == (0, 1)
    assert options.prefetch_bytes is None


def test_threads_are_the_cores_that_this_process_may_use():
    assert LoadOptions().threads == len(os.sched_getaffinity(0))
    assert LoadOptions(num_threads=0).threads == 0
    assert LoadOptions(num_threads=3).threads == 3


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
def test_value_that_cannot_be_is_refused(name, value, facts):
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
def test_value_at_the_edge_is_taken(name, value):
    assert getattr(LoadOptions(**{name: value}), name) == value


@pytest.mark.parametrize("last", ["drop", "pad"])
def test_buckets_leave_no_choice_about_the_last_batch(last):
    with raises_with(OptionError, f"last 'short' bucket_by {last!r}"):
        LoadOptions(bucket_by="tokens", last=last)


def test_option_that_is_not_there_is_refused_with_the_nearest_one():
    with raises_with(OptionError, "'num_thread' 'num_thread' 'num_threads'"):
        make_options(4, False, 0, num_thread=2)
    with raises_with(OptionError, got="'zzz'", advice=containing("batch_size", "seed")):
        make_options(4, False, 0, zzz=2)


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LoadOptions().batch_size = 3  # type: ignore[misc]
