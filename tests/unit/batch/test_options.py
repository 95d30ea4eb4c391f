"""Options of a loader: defaults, values that cannot be, names that are not there."""

import dataclasses
import math
import os
from pathlib import Path

import pytest

from penstock.batch.options import LoadChoices, LoadOptions, make_options
from penstock.errors import OptionError


def test_keywords_are_the_fields_of_the_options():
    named = {"batch_size", "shuffle", "seed"}
    assert set(LoadChoices.__annotations__) | named == {each.name for each in dataclasses.fields(LoadOptions)}


def test_defaults_are_those_that_the_docstring_tells():
    options = LoadOptions()
    assert (options.batch_size, options.shuffle, options.seed, options.last) == (32, False, 0, "short")
    assert (options.repeat, options.skip, options.take, options.filter) == (1, 0, None, None)
    assert (options.rank, options.world) == (0, 1)
    assert options.prefetch_bytes == 64 << 20


def test_threads_are_the_cores_that_this_process_may_use():
    assert LoadOptions().threads == len(os.sched_getaffinity(0))
    assert LoadOptions(num_threads=0).threads == 0
    assert LoadOptions(num_threads=3).threads == 3


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("batch_size", 0, "batch_size: expected a whole number of at least 1, got 0."),
        ("batch_size", 2.0, "batch_size: expected a whole number of at least 1, got 2.0."),
        ("batch_size", True, "batch_size: expected a whole number of at least 1, got True."),
        ("batch_size", "8", "batch_size: expected a whole number of at least 1, got '8'."),
        ("shuffle", "yes", "shuffle: expected True, False, 'block' or 'global', got 'yes'."),
        ("shuffle", None, "shuffle: expected True, False, 'block' or 'global', got None."),
        ("shuffle", 1, "shuffle: expected True, False, 'block' or 'global', got 1."),
        ("seed", -1, f"seed: expected a whole number of at least 0 and at most {2**64 - 1}, got -1."),
        (
            "seed",
            2**64,
            f"seed: expected a whole number of at least 0 and at most {2**64 - 1}, got {2**64}.",
        ),
        ("seed", None, f"seed: expected a whole number of at least 0 and at most {2**64 - 1}, got None."),
        ("last", "keep", "last: expected 'short', 'drop' or 'pad', got 'keep'."),
        ("last", None, "last: expected 'short', 'drop' or 'pad', got None."),
        ("repeat", 0, "repeat: expected a whole number of at least 1, got 0."),
        ("skip", -1, "skip: expected a whole number of at least 0, got -1."),
        ("take", -1, "take: expected a whole number of at least 0, got -1."),
        ("filter", 3, "filter: expected a string, got 3."),
        ("bucket_by", 3, "bucket_by: expected a string, got 3."),
        ("window_blocks", 0, "window_blocks: expected a whole number of at least 1, got 0."),
        ("block_records", 0, "block_records: expected a whole number of at least 1, got 0."),
        ("num_threads", -1, "num_threads: expected a whole number of at least 0, got -1."),
        ("prefetch_bytes", -1, "prefetch_bytes: expected a whole number of at least 0, got -1."),
        ("cache_bytes", -1, "cache_bytes: expected a whole number of at least 0, got -1."),
        ("cache", 7, "cache: expected 'memory' or the path of a folder, got 7."),
        ("shard", 3, "shard: expected (rank, world), got 3."),
        ("shard", (1,), "shard: expected (rank, world), got (1,)."),
        ("shard", (0.0, 2), "shard: expected (rank, world), got (0.0, 2)."),
        ("shard", (2, 2), "shard: expected a rank from 0 to world − 1, got (2, 2)."),
        ("shard", (-1, 2), "shard: expected a rank from 0 to world − 1, got (-1, 2)."),
        ("shard", (0, 0), "shard: expected a rank from 0 to world − 1, got (0, 0)."),
        ("part", 0.5, "part: expected two shares, such as (0, 0.9), got 0.5."),
        ("part", (0.1,), "part: expected two shares, such as (0, 0.9), got (0.1,)."),
        ("part", ("0", 1), "part: expected two shares, such as (0, 0.9), got ('0', 1)."),
        ("part", (0.5, 0.5), "part: expected shares from 0 to 1, the lower one first, got (0.5, 0.5)."),
        ("part", (0.9, 0.1), "part: expected shares from 0 to 1, the lower one first, got (0.9, 0.1)."),
        ("part", (-0.1, 1), "part: expected shares from 0 to 1, the lower one first, got (-0.1, 1)."),
        ("part", (0, 1.1), "part: expected shares from 0 to 1, the lower one first, got (0, 1.1)."),
        ("part", (0, math.nan), "part: expected shares from 0 to 1, the lower one first, got (0, nan)."),
        ("weights", 3, "weights: expected the name of a field, or {field: {value: weight}}, got 3."),
        ("weights", {}, "weights: expected the name of a field, or {field: {value: weight}}, got {}."),
        (
            "max_tokens",
            100,
            "max_tokens: expected a bucket_by beside it, got none. "
            "Name the field whose lengths count: bucket_by='tokens'.",
        ),
        (
            "bucket_records",
            100,
            "bucket_records: expected a bucket_by beside it, got none. "
            "Name the field whose lengths count: bucket_by='tokens'.",
        ),
    ],
)
def test_value_that_cannot_be_is_refused(name, value, message):
    with pytest.raises(OptionError) as caught:
        LoadOptions(**{name: value})
    assert str(caught.value) == message
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
    with pytest.raises(OptionError) as caught:
        LoadOptions(bucket_by="tokens", last=last)
    assert str(caught.value) == (
        f"last: expected 'short' beside bucket_by, got {last!r}. "
        "Buckets have short batches everywhere: leave `last` out."
    )


def test_option_that_is_not_there_is_refused_with_the_nearest_one():
    with pytest.raises(OptionError) as caught:
        make_options(4, False, 0, num_thread=2)
    assert str(caught.value) == (
        "option 'num_thread': expected an option of loader, got 'num_thread'. Did you mean 'num_threads'?"
    )
    with pytest.raises(OptionError, match=r"got 'zzz'\. There are batch_size, shuffle, seed, "):
        make_options(4, False, 0, zzz=2)


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LoadOptions().batch_size = 3  # type: ignore[misc]
