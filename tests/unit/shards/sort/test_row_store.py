"""The store of rows: what stays in memory, what goes to disk, refused requests."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from penstock import _native
from penstock.errors import OutOfMemoryError, WriteError
from penstock.shards.sort import row_store
from penstock.shards.sort.row_store import RowStore, limit_memory
from raising import raises_with


def append_rows(store: RowStore, first: int, values: list[bytes], tentative: list[int] | None = None):
    arena = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    splits = np.array(tentative or [0] * len(values), np.uint8)
    store.append(np.arange(first, first + len(values), dtype=np.uint64), [(arena, offsets)], splits)
    return arena


def values_of(store: RowStore, split: int) -> list[bytes]:
    found = []
    for chunk in store.chunks(split, 0, store.count(split)):
        arenas, arena_of, begins, sizes = chunk.columns[0]
        for number, begin, size in zip(arena_of, begins, sizes, strict=True):
            found.append(arenas[number][begin : begin + size].tobytes())
    return found


def numbered(count: int) -> list[bytes]:
    return [f"row {i}".encode() for i in range(count)]


@pytest.mark.parametrize("max_memory_bytes", [0, 1 << 20])
def test_store_without_a_seed_keeps_the_order_of_the_source(tmp_path, max_memory_bytes):
    with RowStore(tmp_path, seed=None, num_splits=2, max_memory_bytes=max_memory_bytes) as store:
        append_rows(store, 0, [b"a", b"", b"ccc"])
        append_rows(store, 3, [b"d", b"ee"])
        store.finish(np.array([0, 1, 0, 1, 0], np.uint8))
        assert (values_of(store, 0), values_of(store, 1)) == ([b"a", b"ccc", b"ee"], [b"", b"d"])
        assert (store.count(0), store.count(1), store.num_rows) == (3, 2, 5)


@pytest.mark.parametrize("max_memory_bytes", [0, 1 << 20])
def test_store_with_a_seed_sorts_by_the_keys_of_rows(tmp_path, max_memory_bytes):
    with RowStore(tmp_path, seed=7, num_splits=1, max_memory_bytes=max_memory_bytes) as store:
        append_rows(store, 0, numbered(1000))
        store.finish(np.zeros(1000, np.uint8))
        order = np.argsort(_native.mix_rows(7, 0, 1000))
        assert values_of(store, 0) == [numbered(1000)[i] for i in order]
        assert values_of(store, 0) != numbered(1000)


def test_store_in_memory_hands_out_the_arenas_it_was_given(tmp_path):
    with RowStore(tmp_path, seed=0, num_splits=1) as store:
        arena = append_rows(store, 0, [b"abc", b"de"])
        store.finish(np.zeros(2, np.uint8))
        (chunk,) = store.chunks(0, 0, 2)
        assert chunk.columns[0].arenas[0] is arena
        assert not store.is_on_disk


def test_store_above_its_memory_goes_to_disk_and_leaves_nothing_there(tmp_path):
    store = RowStore(tmp_path, seed=0, num_splits=1, max_memory_bytes=5 + 40)
    append_rows(store, 0, [b"12345"])
    assert not store.is_on_disk
    append_rows(store, 1, [b""])
    assert store.is_on_disk
    store.finish(np.zeros(2, np.uint8))
    assert sorted(values_of(store, 0)) == [b"", b"12345"]
    assert list(tmp_path.iterdir()) == []  # the file has no name
    store.close()


def test_store_on_disk_reads_in_many_threads_at_once(tmp_path):
    with RowStore(tmp_path, seed=3, num_splits=1, max_memory_bytes=10_000) as store:
        for first in range(0, 5000, 500):
            append_rows(store, first, numbered(5000)[first : first + 500])
        store.finish(np.zeros(5000, np.uint8))
        whole = [int(row) for chunk in store.chunks(0, 0, 5000) for row in chunk.rows]

        def read(start: int) -> list[int]:
            return [int(row) for chunk in store.chunks(0, start, start + 50, 100) for row in chunk.rows]

        with ThreadPoolExecutor(8) as pool:
            parts = list(pool.map(read, range(0, 5000, 50)))
    assert [row for part in parts for row in part] == whole


def test_store_on_a_full_disk_names_the_folder_and_the_bytes(tmp_path, monkeypatch):
    def refuse(fd, data, offset):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = RowStore(tmp_path, seed=0, num_splits=1, max_memory_bytes=0)
    monkeypatch.setattr(os, "pwrite", refuse)
    with raises_with(WriteError, f"{tmp_path} No space left on device 8 8 bytes"):
        append_rows(store, 0, [b"abc"])
    store.close()


def test_store_raises_the_error_of_a_thread_that_writes_a_run(tmp_path, monkeypatch):
    def refuse(fd, data, offset):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pwrite", refuse)
    with ThreadPoolExecutor(2) as pool:
        store = RowStore(tmp_path, seed=0, num_splits=1, max_memory_bytes=100, pool=pool)
        append_rows(store, 0, [b"abc" * 10])
        message = "(Input/output error; 8 of 8 bytes were not written)"
        with raises_with(WriteError, message, path=str(tmp_path)):
            append_rows(store, 1, [b"abc" * 10])
        store.close()


def test_store_keeps_rows_that_are_being_written_within_its_memory(tmp_path, monkeypatch):
    write, most = RowStore._write_run, 0

    def count(store, file, begin, run, first):
        nonlocal most
        most = max(most, store._num_writing_bytes + store._num_held_bytes)
        time.sleep(0.002)
        return write(store, file, begin, run, first)

    monkeypatch.setattr(RowStore, "_write_run", count)
    monkeypatch.setattr(row_store, "_RUN_BYTES", 300)
    with (
        ThreadPoolExecutor(4) as pool,
        RowStore(tmp_path, seed=1, num_splits=1, max_memory_bytes=1000, pool=pool) as store,
    ):
        for row in range(60):
            append_rows(store, row, [b"x" * 60])
        store.finish(np.zeros(60, np.uint8))
        assert 300 < most <= 1000 + 100
        assert values_of(store, 0) == [b"x" * 60] * 60


def test_store_without_memory_for_a_run_names_its_rows(tmp_path, monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(row_store, "write_sections", refuse)
    with ThreadPoolExecutor(1) as pool:
        store = RowStore(tmp_path, seed=0, num_splits=1, max_memory_bytes=0, pool=pool)
        with raises_with(OutOfMemoryError, "rows 8 to 9 of the source"):
            append_rows(store, 7, [b"abc", b"d"])
        store.close()


def test_store_in_a_folder_that_does_not_exist_names_it(tmp_path):
    store = RowStore(tmp_path / "gone", seed=0, num_splits=1, max_memory_bytes=0)
    with raises_with(WriteError, "(No such file or directory)", path=str(tmp_path / "gone")):
        append_rows(store, 0, [b"abc"])


def test_store_of_no_rows_has_empty_splits(tmp_path):
    with RowStore(tmp_path, seed=0, num_splits=2) as store:
        store.finish(np.empty(0, np.uint8))
        assert (store.count(1), list(store.chunks(1, 0, 0))) == (0, [])


def test_store_refuses_calls_that_do_not_fit_its_rows(tmp_path):
    store = RowStore(tmp_path, seed=0, num_splits=1)
    append_rows(store, 0, [b"abc"])
    with raises_with(ValueError, "finished"):
        store.count(0)
    with raises_with(ValueError, "1 rows 2"):
        store.finish(np.zeros(2, np.uint8))
    store.finish(np.zeros(1, np.uint8))
    with raises_with(IndexError, "0 2 1"):
        store.chunks(0, 0, 2)
    store.close()
    with pytest.raises(ValueError, match="closed"):
        store.chunks(0, 0, 1)


def test_chunk_of_a_row_larger_than_the_limit_holds_it_alone(tmp_path):
    with RowStore(tmp_path, seed=None, num_splits=1) as store:
        append_rows(store, 0, [b"ab", b"c" * 100, b"d", b"e"])
        store.finish(np.zeros(4, np.uint8))
        sizes = [chunk.columns[0].sizes.tolist() for chunk in store.chunks(0, 0, 4, chunk_bytes=2)]
    assert sizes == [[2], [100], [1, 1]]


def test_store_that_is_closed_after_its_pool_does_not_wait_for_runs_that_were_cancelled(
    tmp_path, monkeypatch
):
    gate = threading.Event()
    monkeypatch.setattr(row_store, "_RUN_BYTES", 100)
    pool = ThreadPoolExecutor(1)
    store = RowStore(tmp_path, seed=0, num_splits=1, max_memory_bytes=250, pool=pool)
    monkeypatch.setattr(store, "_take_written", lambda most_bytes: None)
    pool.submit(gate.wait)
    for row in range(9):
        append_rows(store, row, [b"x" * 60])
    threading.Timer(0.02, gate.set).start()
    pool.shutdown(wait=True, cancel_futures=True)
    store.close()
    assert store.is_on_disk


@pytest.mark.parametrize(
    ("wanted", "usable", "expected"),
    [
        (1, 8 << 30, 1),
        (256 << 20, 1 << 20, 256 << 20),
        (4 << 30, 16 << 30, 2 << 30),
        (1 << 30, 1 << 30, 256 << 20),
    ],
)
def test_memory_for_rows_is_limited_to_an_eighth_of_what_can_be_used(monkeypatch, wanted, usable, expected):
    monkeypatch.setattr(row_store, "usable_memory", lambda: usable)
    assert limit_memory(wanted) == expected
