"""The cache of object stores on a local disk: hits, its limit, several processes, damage, full disks."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.storage import cache as cache_module
from penstock.storage.cache import RangeCache, find_cache
from penstock.storage.store_path import parse_store_path

PATH = parse_store_path("s3://animals/pets/train.tfrecord")
CHUNK = 1000
FILE = CHUNK + 512


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(cache_module, "CHUNK_BYTES", CHUNK)


def make_chunk(number):
    return memoryview(np.random.default_rng(number).bytes(CHUNK))


def count_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_chunk_is_found_by_another_object_with_its_version(tmp_path):
    RangeCache(tmp_path, 10 * FILE).find_object(PATH, 5 * CHUNK, "a").add(3, "tag", make_chunk(3))
    cache = RangeCache(tmp_path, 10 * FILE)
    found = cache.find_object(PATH, 5 * CHUNK, "a").find(3)
    assert (found.etag, found.data) == ("tag", make_chunk(3))
    assert cache.find_object(PATH, 5 * CHUNK, "a").find(2) is None
    assert cache.find_object(PATH, 5 * CHUNK, "b").find(3) is None
    assert cache.find_object(PATH, 6 * CHUNK, "a").find(3) is None
    assert cache.find_object(parse_store_path("s3://animals/other"), 5 * CHUNK, "a").find(3) is None


def test_last_chunk_is_shorter(tmp_path):
    cached = RangeCache(tmp_path, 10 * FILE).find_object(PATH, CHUNK + 7, "a")
    cached.add(1, None, make_chunk(1)[:7])
    assert cached.find(1).data == make_chunk(1)[:7]


@pytest.mark.parametrize("limit", [3 * FILE, 10 * FILE, 100 * FILE])
def test_files_are_never_more_than_the_limit_and_the_recent_ones_stay(tmp_path, limit):
    cached = RangeCache(tmp_path, limit).find_object(PATH, 500 * CHUNK, "a")
    for number in range(200):
        cached.add(number, None, make_chunk(number))
        assert count_bytes(tmp_path) <= limit
        assert cached.find(number).data == make_chunk(number)
    assert count_bytes(tmp_path) >= limit // 3
    assert cached.find(0) is None


def test_least_recently_used_chunk_is_deleted_first(tmp_path):
    cached = RangeCache(tmp_path, 8 * FILE).find_object(PATH, 50 * CHUNK, "a")
    for number in range(6):
        cached.add(number, None, make_chunk(number))
    for number in range(6):
        os.utime(cached._folder / str(number), ns=(number, number))
    assert cached.find(0)  # used now
    for number in range(6, 9):
        cached.add(number, None, make_chunk(number))
    assert cached.find(1) is None
    assert cached.find(0)
    assert cached.find(8)


def test_chunk_larger_than_the_limit_is_not_kept(tmp_path):
    cached = RangeCache(tmp_path, FILE - 1).find_object(PATH, 50 * CHUNK, "a")
    cached.add(0, None, make_chunk(0))
    assert count_bytes(tmp_path) == 0


@pytest.mark.parametrize("damage", ["flipped", "cut", "longer", "empty", "header"])
def test_damaged_chunk_is_deleted(tmp_path, damage):
    cached = RangeCache(tmp_path, 10 * FILE).find_object(PATH, 5 * CHUNK, "a")
    cached.add(0, "tag", make_chunk(0))
    path = cached._folder / "0"
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[600] ^= 1
    elif damage == "header":
        data[:3] = b"xxx"
    data = {"cut": data[:-1], "longer": data + b"0", "empty": b""}.get(damage, data)
    path.write_bytes(data)
    assert cached.find(0) is None
    assert not path.exists()


def test_dropped_object_has_no_chunks(tmp_path):
    cache = RangeCache(tmp_path, 10 * FILE)
    kept, dropped = cache.find_object(PATH, 5 * CHUNK, "a"), cache.find_object(PATH, 5 * CHUNK, "b")
    for each in (kept, dropped):
        each.add(0, None, make_chunk(0))
    dropped.drop()
    assert dropped.find(0) is None
    assert kept.find(0)
    dropped.add(0, None, make_chunk(0))
    assert dropped.find(0)


@pytest.mark.parametrize("fault", ["unwritable", "full"])
def test_disk_that_cannot_be_written_means_no_cache_and_one_warning(tmp_path, monkeypatch, caplog, fault):
    folder = tmp_path / "cache"
    if fault == "unwritable":
        folder.write_bytes(b"a file")
    else:

        def fail(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(cache_module.tempfile, "mkstemp", fail)
    cached = RangeCache(folder, 10 * FILE).find_object(PATH, 5 * CHUNK, "a")
    with caplog.at_level(logging.WARNING, "penstock"):
        for number in range(3):
            cached.add(number, None, make_chunk(number))
    assert len(caplog.records) == 1
    assert str(folder) in caplog.text
    assert cached.find(0) is None


def test_abandoned_temporary_files_are_deleted_first(tmp_path):
    cached = RangeCache(tmp_path, 4 * FILE).find_object(PATH, 50 * CHUNK, "a")
    cached.add(0, None, make_chunk(0))
    left = cached._folder / ".tmp-left"
    left.write_bytes(bytes(2 * FILE))
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    again = RangeCache(tmp_path, 4 * FILE).find_object(PATH, 50 * CHUNK, "a")
    again.add(1, None, make_chunk(1))
    assert not left.exists()
    assert again.find(0)
    assert again.find(1)


_PROCESS = """
import sys
import numpy as np
from pathlib import Path
from penstock.storage import cache
from penstock.storage.store_path import parse_store_path
cache.CHUNK_BYTES = 1000
cached = cache.RangeCache(Path(sys.argv[1]), int(sys.argv[2])).find_object(
    parse_store_path("s3://animals/pets/train.tfrecord"), 500_000, "a"
)
for turn in range(5):
    for number in np.random.default_rng(int(sys.argv[3])).permutation(120).tolist():
        expected = np.random.default_rng(number).bytes(1000)
        found = cached.find(number)
        if found is None:
            cached.add(number, "tag", memoryview(expected))
        elif found.data != expected:
            sys.exit("a chunk has other bytes")
"""


def test_processes_share_the_folder(tmp_path):
    command = [sys.executable, "-c", _PROCESS, str(tmp_path), str(60 * FILE)]
    processes = [subprocess.Popen([*command, str(seed)]) for seed in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert count_bytes(tmp_path) <= 60 * FILE
    assert not list(tmp_path.rglob(".tmp-*"))
    cached = RangeCache(tmp_path, 60 * FILE).find_object(PATH, 500_000, "a")
    assert sum(cached.find(number) is not None for number in range(120)) > 20


def test_cache_follows_the_option_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_STORE_CACHE_BYTES", raising=False)
    assert find_cache(None) is None
    assert find_cache(0) is None
    assert find_cache(FILE).folder == tmp_path / "ranges"
    monkeypatch.setenv("PENSTOCK_STORE_CACHE_BYTES", "5000")
    assert find_cache(None).folder == tmp_path / "ranges"
    assert find_cache(0) is None
    monkeypatch.setenv("PENSTOCK_STORE_CACHE_BYTES", "5 GB")
    with pytest.raises(OptionError) as caught:
        find_cache(None)
    assert caught.value.got == "'5 GB'"
