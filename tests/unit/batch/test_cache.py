"""Decoded columns kept in memory or in a file: the same rows as from disk, within a limit."""

import gc
import logging
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from fit_sources import ColumnSource, lists, numbers, strings
from loaded_batches import SCHEMA, freeze, open_numbers, payload, write_shards
from penstock.batch.cache import CachedStore, interleave, usual_cache_bytes
from penstock.batch.supply import DiskStore, SplitSource
from penstock.columns import Dictionary, take_rows
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.row_columns import PlainColumns, RowColumns
from penstock.errors import CorruptRecordError, WriteError
from penstock.fields import Category, Number, Text
from penstock.foundation.process import usable_memory
from penstock.read.order import SplitOrder
from penstock.read.scatter import Scatter
from penstock.schema.schema import Schema
from penstock.transform import Encode, Scale, Tokenize
from penstock.transform.assembly import Assembly
from penstock.transform.builder import AssembledBatch
from raising import containing, mentions, raises_with
from record_files import flip
from wire.frame import write_record

PLENTY = 1 << 30
TOTAL = 300


@pytest.fixture
def folder(tmp_path):
    write_shards(tmp_path / "data", [100, 150, 50])
    return tmp_path / "data"


def make_source(folder, on_error="raise"):
    split = open_numbers(folder)
    return SplitSource(Scatter(split._rows), DecodePlan(SCHEMA), SCHEMA, Losses(on_error, 1000), "train")


def make_cache(source, most_bytes, place):
    return CachedStore(source, SplitOrder(len(source.scatter.rows)), most_bytes, place)


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "kept" / "here"


ORDERS = [
    np.arange(TOTAL),
    np.arange(TOTAL)[::-1],
    np.random.default_rng(1).permutation(TOTAL),
    np.random.default_rng(2).integers(0, TOTAL, 1000),
    np.arange(0),
    np.array([299]),
]


@pytest.mark.parametrize("most_bytes", [0, 3000, 12_000, PLENTY])
def test_rows_are_those_from_disk_whatever_fits(folder, place, most_bytes):
    cached = make_cache(make_source(folder), most_bytes, place)
    disk = DiskStore(make_source(folder))
    for rows in ORDERS:
        columns, kept, _ = cached.columns(rows.astype(np.int64))
        expected, _, _ = disk.columns(rows.astype(np.int64))
        assert kept is None
        assert freeze(dict(columns)) == freeze(dict(expected))


def test_second_pass_reads_nothing(folder, place):
    source = make_source(folder)
    cached = make_cache(source, PLENTY, place)
    cached.columns(np.arange(5, dtype=np.int64))
    filled = source.plan.bytes_read
    assert filled >= TOTAL * 80
    cached.columns(np.arange(TOTAL, dtype=np.int64))
    assert source.plan.bytes_read == filled


def test_records_that_do_not_fit_are_read_each_time_and_noted_once(folder, place, caplog, monkeypatch):
    monkeypatch.setattr("penstock.batch.cache._BLOCK_ROWS", 64)
    source = make_source(folder)
    cached = make_cache(source, 12_000, place)
    with caplog.at_level(logging.WARNING, "penstock"):
        for _ in range(3):
            cached.columns(np.arange(TOTAL, dtype=np.int64))
    (record,) = caplog.records
    assert record.getMessage() == (containing(128, 300, "'train'", 12000))
    before = source.plan.bytes_read
    cached.columns(np.arange(128, dtype=np.int64))
    assert source.plan.bytes_read == before
    cached.columns(np.arange(128, 129, dtype=np.int64))
    assert source.plan.bytes_read == before + len(payload(128)) + 16


@pytest.mark.parametrize("most_bytes", [0, 9000, PLENTY])
def test_bad_records_are_left_out_whether_kept_or_not(folder, place, most_bytes, monkeypatch):
    monkeypatch.setattr("penstock.batch.cache._BLOCK_ROWS", 64)
    path = folder / "train-00001-of-00003.tfrecord"
    frames = [write_record(payload(i)) for i in range(100, 250)]
    for at in (0, 70, 149):
        frames[at] = flip(frames[at], 40)
    path.write_bytes(b"".join(frames))
    cached = make_cache(make_source(folder, "skip"), most_bytes, place)
    disk = DiskStore(make_source(folder, "skip"))
    for rows in [*ORDERS, np.array([100, 100]), np.array([249, 5, 100, 280])]:
        columns, kept, _ = cached.columns(rows.astype(np.int64))
        expected, expected_kept, _ = disk.columns(rows.astype(np.int64))
        assert freeze(dict(columns)) == freeze(dict(expected))
        all_kept = [True] * len(rows)
        assert (all_kept if kept is None else kept.tolist()) == (
            all_kept if expected_kept is None else expected_kept.tolist()
        )


def test_bad_record_is_raised_while_the_cache_is_filled_and_again(folder, place):
    path = folder / "train-00001-of-00003.tfrecord"
    data = path.read_bytes()
    path.write_bytes(flip(data, 40))
    cached = make_cache(make_source(folder), PLENTY, place)
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as caught:
            cached.columns(np.array([100], np.int64))
        assert (caught.value.path, caught.value.record) == (str(path), 0)


def test_threads_fill_it_once(folder, place):
    source = make_source(folder)
    cached = make_cache(source, PLENTY, place)
    expected = freeze(dict(DiskStore(make_source(folder)).columns(ORDERS[2].astype(np.int64))[0]))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(freeze(dict(cached.columns(ORDERS[2])[0]))))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6
    assert source.plan.bytes_read == sum(path.stat().st_size for path in folder.iterdir())


def test_file_has_no_name_and_goes_with_its_holder(folder, tmp_path):
    place = tmp_path / "kept"
    cached = make_cache(make_source(folder), PLENTY, place)
    cached.columns(np.arange(3, dtype=np.int64))
    assert list(place.iterdir()) == []
    deleted = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(place) in line]
    assert deleted
    del cached
    gc.collect()
    assert str(place) not in Path("/proc/self/maps").read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_is_refused(folder, tmp_path):
    place = tmp_path / "closed"
    place.mkdir(mode=0o500)
    with raises_with(WriteError, "cache"):
        make_cache(make_source(folder), PLENTY, place).columns(np.arange(3, dtype=np.int64))


def test_path_that_is_no_folder_is_refused(folder, tmp_path):
    place = tmp_path / "file"
    place.write_text("in the way")
    with raises_with(WriteError, f"{place} cache File") as caught:
        make_cache(make_source(folder), PLENTY, place).columns(np.arange(3, dtype=np.int64))
    assert mentions(caught.value, "folder cache_bytes")


def test_usual_size_is_a_quarter_of_the_memory():
    assert usual_cache_bytes() == usable_memory() // 4


def test_announcements_are_for_records_that_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr("penstock.batch.cache._BLOCK_ROWS", 64)
    cached = make_cache(make_source(folder), 12_000, None)
    heard = []
    monkeypatch.setattr(cached._rest, "announce", lambda rows: heard.append(rows.tolist()))
    cached.announce(np.array([5, 200], np.int64))
    assert heard.pop() == [5, 200]  # what will be kept is not known yet
    cached.columns(np.arange(3, dtype=np.int64))
    cached.announce(np.array([5, 200, 127, 128], np.int64))
    assert heard == [[200, 128]]
    assert not cached.is_slow


def test_interleaved_columns_have_the_same_values_and_lie_row_by_row():
    columns = {
        "a": numbers([1.0, None, 3.0]),
        "b": numbers([1, 2, 3], "int64"),
        "flag": numbers([True, False, True], "bool"),
        "box": numbers([(1.0, 2.0), (3.0, 4.0), None], shape=(2,)),
        "large": numbers([np.arange(100.0)] * 3, shape=(100,)),
        "s": strings(["a", None, "ccc"]),
        "t": strings(["", "xy", "z"]),
        "long": strings(["x" * 200, "y" * 300, ""]),
        "codes": Dictionary(np.array([1, -1, 0], np.int32), [b"p", b"q"]),
        "list": lists([[1], [], [2, 3]]),
    }
    placed = interleave(columns)
    assert list(placed) == list(columns)
    rows = np.array([2, 0, 2, 1])
    for name, column in columns.items():
        for one, other in zip(placed[name].take(rows).arrays(), column.take(rows).arrays(), strict=True):
            assert one.tolist() == other.tolist(), name
    near = [placed["a"].values, placed["a"].present, placed["b"].values, placed["codes"].codes]
    assert len({each.strides[0] for each in near}) == 1
    assert placed["s"].arena is placed["t"].arena
    assert placed["large"].values is columns["large"].values
    assert placed["long"] is not placed["s"]
    assert interleave({}) == {}
    empty = {"a": numbers([], shape=()), "s": strings([])}
    assert [len(column) for column in interleave(empty).values()] == [0, 0]


def test_program_reads_interleaved_columns():
    names = ["n", "s", "k"]
    columns = {
        "n": numbers([0.5, None, 2.0, 8.0]),
        "s": strings(["the cat", "", "a dog", "the"]),
        "k": strings(["a", "b", None, "a"]),
    }
    schema = Schema({"n": Number(optional=True), "s": Text(), "k": Category(optional=True)})
    source = ColumnSource(schema, columns)
    transforms = {"n": Scale(indicator=True), "s": Tokenize(), "k": Encode()}
    fitted = {name: transforms[name].fit(name, schema[name], source) for name in names}
    assembly = Assembly(schema, fitted)
    assert assembly.program.others == ()
    storage = PlainColumns(interleave(columns), 4)
    for rows in (None, np.array([3, 1, 1, 0, 2]), np.empty(0, np.int64)):
        some = RowColumns(storage, rows)
        batch = AssembledBatch(assembly, some.num_rows, 1)
        assert not assembly.program.run(batch._batch, 0, some, some.num_rows).failed
        batch.fill(0, 0, some, some.num_rows, None)
        chosen = columns if rows is None else take_rows(columns, rows)
        expected = assembly.apply(chosen, some.num_rows, None)
        for one, other in zip(batch.finish(None), expected, strict=True):
            assert {name: each.tolist() for name, each in one.items()} == {
                name: each.tolist() for name, each in other.items()
            }
