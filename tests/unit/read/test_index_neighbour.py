"""Text indexes that other tools left beside a file: used if they fit, and never believed over the bytes."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.format.index import encode_tfindex
from penstock.read import opened_files
from penstock.read.index import read_neighbour
from penstock.storage.open_file import OpenFile
from raising import mentions
from record_files import (
    BASE,
    FRAME_BYTES,
    PAYLOADS,
    example,
    open_split,
    row_numbers,
    write_gzip,
    write_plain,
)

LIMIT = 1 << 30
INDEX = encode_tfindex(np.full(5, FRAME_BYTES))


@pytest.fixture(autouse=True)
def _look_for_indexes_of_small_files(monkeypatch, cache):
    monkeypatch.setattr(opened_files, "_SMALLEST_PLAIN", 0)
    monkeypatch.setattr(opened_files, "_SMALLEST_COMPRESSED", 0)


@pytest.fixture
def path(tmp_path):
    return write_plain(tmp_path / "a.tfrecord", PAYLOADS)


@pytest.fixture
def no_scan(monkeypatch):
    monkeypatch.setattr(opened_files, "build_index", lambda *_: pytest.fail("the file is scanned"))


@pytest.mark.parametrize(
    "name", ["a.tfindex", "a.tfrecord.idx", "a.idx", "a.tfrecord.index", "a.index", "a.tfrecord.tfindex"]
)
def test_index_under_any_of_the_names_saves_the_scan(path, name, no_scan):
    path.with_name(name).write_bytes(INDEX)
    split = open_split(path)
    assert row_numbers(split.records()) == [0, 1, 2, 3, 4]
    assert [sample["row"] for sample in split] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "index",
    [
        b"",
        b"0 425\n",
        INDEX[:-6],
        INDEX + b"425 85\n",
        INDEX.replace(b"0 85\n", b"1 84\n", 1),
        b"\0" * 100_000,
    ],
    ids=["empty", "one record", "short", "long", "not from 0", "something else"],
)
def test_index_that_does_not_fit_is_not_used_and_named(path, index):
    path.with_name("a.idx").write_bytes(index)
    dataset = ps.open(path)
    assert row_numbers(dataset["all"].records()) == [0, 1, 2, 3, 4]
    assert mentions(dataset.notes["a.tfrecord"], "a.idx a.tfrecord")


def test_index_of_the_same_records_in_another_order_is_not_used(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(row=1), example(row=2, text="long")])
    sizes = np.array([len(example(row=2, text="long")), len(example(row=1))]) + 16
    assert int(sizes.sum()) == path.stat().st_size
    path.with_name("a.tfindex").write_bytes(encode_tfindex(sizes))
    assert [sample["row"] for sample in open_split(path)] == [1, 2]


def test_second_index_is_used_where_the_first_does_not_fit(path, no_scan):
    path.with_name("a.tfindex").write_bytes(b"nonsense")
    path.with_name("a.tfrecord.idx").write_bytes(INDEX)
    assert len(open_split(path)) == 5


def test_index_larger_than_it_can_be_is_not_read(path, monkeypatch):
    index = path.with_name("a.idx")
    index.touch()
    os.truncate(index, 1 << 40)
    file = OpenFile(path)
    offsets, note = read_neighbour(file, LIMIT)
    assert offsets is None
    assert note


def test_index_of_a_compressed_file_is_passed_over(tmp_path):
    path = write_gzip(tmp_path / "a.tfrecord", PAYLOADS)
    path.with_name("a.idx").write_bytes(INDEX)
    dataset = ps.open(path)
    assert len(dataset["all"]) == 5
    assert "a.tfrecord" not in dataset.notes


def test_damage_that_an_index_hides_is_found_when_it_is_read(path):
    path.with_name("a.idx").write_bytes(INDEX)
    broken = bytearray(BASE)
    broken[2 * FRAME_BYTES + 40] ^= 1
    path.write_bytes(bytes(broken))
    split = open_split(path, on_error="collect")
    assert row_numbers(split.records()) == [0, 1, 3, 4]
    assert [error.record for error in split.rejected] == [2]


def test_pipe_beside_a_file_does_not_hang(path):
    os.mkfifo(path.with_name("a.idx"))
    assert len(open_split(path)) == 5
