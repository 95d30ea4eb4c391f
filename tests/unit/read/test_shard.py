"""Shards: plain ones from their file; compressed ones as a stream in order, else through the cache."""

import gzip
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock import _native
from penstock.read import shard as module
from penstock.read.opened_files import load_index
from penstock.read.shard import CompressedShard, InflatedWindow, Shard
from penstock.settings.groups import ReadOptions
from penstock.storage.open_file import MOST_FILES, KeptFiles, OpenFile
from record_files import BASE, example, flip, open_split, write_gzip, write_plain, write_zlib

ROWS = 400
PAYLOADS = [example(row=row, text=f"{row} " * (row % 7)) for row in range(ROWS)]


@pytest.fixture(params=[write_gzip, write_zlib])
def path(request, cache, tmp_path):
    return request.param(tmp_path / "data.tfrecord.gz", PAYLOADS)


def copies(cache):
    folder = cache / "inflated"
    return sorted(folder.iterdir()) if folder.exists() else []


def rows_of(columns):
    return columns["row"].values.tolist()


@pytest.fixture
def no_room(monkeypatch):
    """A cache whose limit is below any file."""
    monkeypatch.setattr(module, "make_room", lambda folder, needed_bytes: False)


def test_compressed_file_read_in_order_makes_no_copy(path, cache):
    split = open_split(path)
    for _ in range(2):
        assert [sample["row"] for sample in split] == list(range(ROWS))
        assert list(split.records()) == PAYLOADS
    assert rows_of(split.columns()) == list(range(ROWS))
    assert [rows_of(split.columns(a, a + 50)) for a in range(0, ROWS, 50)] == np.arange(ROWS).reshape(
        8, 50
    ).tolist()
    assert copies(cache) == []


def test_compressed_file_read_in_any_other_order_is_inflated_once(path, cache):
    split = open_split(path)
    assert [split[row]["row"] for row in range(ROWS - 1, -1, -9)] == list(range(ROWS - 1, -1, -9))
    (copy,) = copies(cache)
    assert copy.stat().st_size == sum(len(payload) + 16 for payload in PAYLOADS)
    made = copy.stat().st_mtime_ns
    assert open_split(path)[7]["row"] == 7
    assert copy.stat().st_mtime_ns == made


def test_compressed_file_that_changed_gets_a_separate_copy(path, cache):
    assert open_split(path)[7]["row"] == 7
    path.write_bytes(write_gzip(path.with_name("other"), PAYLOADS[::-1]).read_bytes())
    assert open_split(path)[7]["row"] == ROWS - 8
    assert len(copies(cache)) == 2


def test_compressed_file_without_room_for_a_copy_is_gone_through_again(path, cache, no_room):
    split = open_split(path)
    chosen = np.random.default_rng(1).integers(0, ROWS, 40).tolist()
    assert [split[row]["row"] for row in chosen] == chosen
    assert rows_of(split.columns(100, 200)) == list(range(100, 200))
    assert rows_of(split.columns(0, 50)) == list(range(50))
    assert copies(cache) == []


def test_compressed_file_with_a_cache_that_cannot_be_written_is_gone_through_again(path, cache):
    cache.write_bytes(b"a file where the folder should be")
    split = open_split(path)
    assert [split[row]["row"] for row in (300, 5, 399, 0)] == [300, 5, 399, 0]


@pytest.mark.parametrize("how", ["cut", "removed", "emptied"])
def test_copy_that_was_damaged_is_made_again(path, cache, how):
    open_split(path)[7]
    (copy,) = copies(cache)
    if how == "removed":
        copy.unlink()
    else:
        copy.write_bytes(copy.read_bytes()[:100] if how == "cut" else b"")
    assert open_split(path)[8]["row"] == 8


def test_copy_that_is_cut_while_it_is_used_is_made_again(path, cache):
    split = open_split(path)
    assert split[7]["row"] == 7
    copies(cache)[0].write_bytes(b"")
    assert [split[row]["row"] for row in (300, 5)] == [300, 5]


def test_copy_that_is_removed_while_it_is_used_does_no_harm(path, cache):
    split = open_split(path)
    assert split[7]["row"] == 7
    copies(cache)[0].unlink()
    assert [split[row]["row"] for row in (300, 5)] == [300, 5]


def test_copy_with_any_byte_damaged_never_gives_another_record(path, cache):
    open_split(path)[7]
    (copy,) = copies(cache)
    whole = copy.read_bytes()
    for position in range(0, len(whole), 97):
        copy.write_bytes(flip(whole, position))
        split = open_split(path, on_error="skip")
        rows = rows_of(split.columns(1))
        assert rows == [row for row in range(1, ROWS) if row in rows]
        assert len(rows) >= ROWS - 2


@pytest.mark.parametrize("write", [write_plain, write_gzip])
def test_threads_that_read_at_once_get_their_own_records(tmp_path, cache, write):
    path = write(tmp_path / "data.tfrecord", PAYLOADS)
    split = open_split(path)
    start = threading.Barrier(6)

    def read(seed):
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(30):
            begin = int(rng.integers(0, ROWS))
            end = int(rng.integers(begin, min(ROWS, begin + 60) + 1))
            assert rows_of(split.columns(begin, end)) == list(range(begin, end))
            row = int(rng.integers(0, ROWS))
            assert split[row]["row"] == row
        return [sample["row"] for sample in split]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, range(6))) == [list(range(ROWS))] * 6


def test_threads_without_room_for_a_copy_get_their_own_records(path, no_room):
    split = open_split(path)

    def read(first):
        return rows_of(split.columns(first, first + 20))

    starts = [300, 0, 150, 380, 20, 301, 40]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, starts)) == [list(range(first, first + 20)) for first in starts]


def test_concurrent_iterations_do_not_disturb_each_other(path, cache):
    split = open_split(path)
    pairs = list(zip(split, split, strict=True))
    assert all(a["row"] == b["row"] == i for i, (a, b) in enumerate(pairs))
    assert copies(cache) == []


def test_bad_record_in_a_compressed_file_is_left_out_without_a_copy(tmp_path, cache):
    frames = [BASE[i : i + 85] for i in range(0, 425, 85)]
    data = b"".join(flip(frame, 20) if i == 2 else frame for i, frame in enumerate(frames * 300))
    path = tmp_path / "data.tfrecord.gz"
    path.write_bytes(gzip.compress(data))
    split = open_split(path, on_error="skip")
    assert len(list(split)) == 1499
    assert copies(cache) == []


def load(path, kind, files=None):
    return kind(path, load_index(OpenFile(path), ReadOptions()), files)


def test_segment_holds_its_file_open_though_it_is_pushed_out(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    other = write_plain(tmp_path / "b.tfrecord", PAYLOADS)
    files = KeptFiles(most_files=1)
    segment = load(path, Shard, files).segment(slice(0, 3))
    load(other, Shard, files).segment(slice(0, 3))
    arena, offsets, faults = _native.fetch([segment])
    assert faults == []
    assert arena[: offsets[1]].tobytes() == PAYLOADS[0]


@pytest.mark.parametrize("selection", [slice(3, 90), np.array([7, 3, 4, 5, 399])])
@pytest.mark.parametrize("access", ["read", "map", "load"])
def test_segment_gives_the_same_records_by_any_access(tmp_path, access, selection):
    path = write_plain(tmp_path / "data.tfrecord", PAYLOADS)
    shard = Shard(path, load_index(OpenFile(path), ReadOptions()))
    segment = shard.segment(selection, access)
    assert isinstance(segment[1], {"read": type(None), "map": _native.Mapping, "load": bytes}[access])
    arena, offsets, faults = _native.fetch([segment])
    assert faults == []
    expected = [PAYLOADS[number] for number in np.arange(ROWS)[selection].tolist()]
    assert [arena[a:b].tobytes() for a, b in pairwise(offsets.tolist())] == expected


def test_segment_of_no_records_is_empty(path):
    assert len(load(path, CompressedShard).segment(np.array([], np.int64))[3]) == 0


def test_more_files_than_a_process_may_open_are_read(tmp_path, cache):
    num_files = 2 * MOST_FILES
    for i in range(num_files):
        write = write_gzip if i % 8 == 0 else write_plain
        write(tmp_path / f"part-{i:03}.tfrecord", [example(row=i)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = sum(1 for _ in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + MOST_FILES + 16, hard))
    try:
        split = ps.open(tmp_path)["all"]
        assert [sample["row"] for sample in split] == list(range(num_files))
        assert [split[row]["row"] for row in range(num_files)] == list(range(num_files))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "ranges", [[(0, 10), (10, 30)], [(5, 9), (5, 20)], [(0, 425)], [(400, 500)], [(100, 101), (300, 301)]]
)
def test_window_gives_the_bytes_of_any_ranges_that_go_forward(tmp_path, ranges):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(BASE))
    window = InflatedWindow(OpenFile(path), "gzip")
    assert [window.read(a, b) for a, b in ranges] == [BASE[a:b] for a, b in ranges]
    assert (window.start, window.stop) == ranges[-1]
