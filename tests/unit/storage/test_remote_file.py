"""Objects of a store that are read through the cache on a local disk."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.errors import ChangedFileError
from penstock.storage import cache as cache_module
from penstock.storage import remote_file
from penstock.storage.cache import RangeCache
from penstock.storage.remote_file import RemoteFile
from penstock.storage.store_path import parse_store_path
from store_server import put_object

CHUNK = 1000
PATH = parse_store_path("s3://animals/object")


@pytest.fixture
def content(s3, s3_port, monkeypatch):
    for module in (cache_module, remote_file):
        monkeypatch.setattr(module, "CHUNK_BYTES", CHUNK)
    data = np.random.default_rng(1).bytes(10 * CHUNK + 345)
    put_object(s3_port, "animals", "object", data)
    s3.clear()
    return data


@pytest.fixture
def cache(tmp_path):
    return RangeCache(tmp_path / "ranges", 1 << 20)


def open_object(cache, content, version="digest"):
    file = RemoteFile(PATH, len(content))
    file.use_cache(cache, version)
    return file


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 1), (5, 999), (0, 1000), (999, 1001), (2500, 7321), (9999, 10345), (0, 10345)]
)
def test_ranges_equal_the_object_before_and_after_they_are_cached(s3, content, cache, start, stop):
    for num_requests in (1, 1):  # the second object finds all chunks
        assert open_object(cache, content).fetch(start, stop) == content[start:stop]
        assert s3.count() == num_requests


def test_only_missing_chunks_are_requested(s3, content, cache):
    open_object(cache, content).fetch(3100, 4900)
    s3.clear()
    assert open_object(cache, content).fetch(2500, 6500) == content[2500:6500]
    assert [each.range for each in s3.requests] == ["bytes=2000-2999", "bytes=5000-6999"]


def test_another_version_is_not_served(s3, content, cache):
    open_object(cache, content, "one").fetch(0, 2000)
    s3.clear()
    assert open_object(cache, content, "two").fetch(0, 2000) == content[:2000]
    assert s3.count() == 1


def test_a_changed_object_is_not_mixed_with_cached_chunks(s3, s3_port, content, cache):
    open_object(cache, content).fetch(0, 2000)
    other = content[::-1]
    put_object(s3_port, "animals", "object", other)
    # Its first read needs the store too, which has another version: all is read again.
    assert open_object(cache, content).fetch(0, 3000) == other[:3000]
    file = open_object(cache, content)
    assert file.fetch(0, 1000) == other[:1000]  # from the cache
    put_object(s3_port, "animals", "object", content)
    with pytest.raises(ChangedFileError):
        file.fetch(0, 5000)
    assert open_object(cache, content).fetch(0, 5000) == content[:5000]


def test_a_damaged_chunk_is_read_from_the_store_again(s3, content, cache):
    open_object(cache, content).fetch(0, 3000)
    (path,) = cache.folder.glob("*/1")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    s3.clear()
    assert open_object(cache, content).fetch(0, 3000) == content[:3000]
    assert [each.range for each in s3.requests] == ["bytes=1000-1999"]
    assert open_object(cache, content).fetch(1000, 2000) == content[1000:2000]
    assert s3.count() == 1


def test_an_object_without_a_version_is_not_cached(s3, content, cache):
    for _ in range(2):
        assert open_object(cache, content, "").fetch(0, 10) == content[:10]
    assert s3.count() == 2


def test_an_epoch_from_the_cache_needs_no_range_of_a_shard(s3, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    table = {"price": np.random.default_rng(1).normal(size=3000), "sold": np.arange(3000) % 2}
    ps.convert(table, "s3://animals/table", target="sold", num_shards=3)
    options = ps.options.ReadOptions(store_cache_bytes=1 << 26)

    def load(shuffle, **opening):
        loader = ps.open("s3://animals/table", **opening)["train"].loader(batch_size=100, shuffle=shuffle)
        return [inputs["price"].tobytes() for inputs, _ in loader]

    plain = {shuffle: load(shuffle) for shuffle in (False, True)}
    assert not (tmp_path / "ranges").exists()
    assert load(False, options=options) == plain[False]
    s3.clear()
    assert load(False, options=options) == plain[False]
    assert load(True, options=options) == plain[True]
    assert s3.count(ending=".tfrecord") == 0
    monkeypatch.setenv("PENSTOCK_STORE_CACHE_BYTES", str(1 << 26))
    assert load(True) == plain[True]
    assert s3.count(ending=".tfrecord") == 0
