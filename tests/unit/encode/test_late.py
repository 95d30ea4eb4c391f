"""Values that are fetched when their record is written: references to them, and what can go wrong."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from penstock._native import hash_bytes
from penstock.encode.late import fetch, make_references, materialize, read_file, referred_bytes
from penstock.errors import ChangedFileError, PathError
from penstock.types import Deferred


def references(column, num_rows):
    arena, offsets = make_references(column, num_rows)
    assert (arena.dtype, offsets.dtype, len(offsets)) == (np.uint8, np.int64, num_rows + 1)
    return [arena[a:b].tobytes() for a, b in pairwise(offsets)]


def column_of_files(paths, present=None):
    """Return a column of files; a row that is not present has none."""
    there = [True] * len(paths) if present is None else present
    data = [path.read_bytes() if has else b"" for path, has in zip(paths, there, strict=True)]
    return Deferred(
        np.array([len(each) for each in data]),
        np.array([hash_bytes(each) for each in data], np.uint64),
        paths=[os.fspath(path) if has else "" for path, has in zip(paths, there, strict=True)],
        present=None if present is None else np.array(present),
    )


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / name for name in ("ä b.jpg", "empty", "large")]
    for path, data in zip(paths, (b"\xff\xd8one", b"", bytes(range(256)) * 9000), strict=True):
        path.write_bytes(data)
    return paths


def test_references_to_files_lead_to_their_bytes(files):
    found = references(column_of_files(files), 3)
    assert [fetch(each) for each in found] == [path.read_bytes() for path in files]
    assert [referred_bytes(each) for each in found] == [5, 0, 256 * 9000]


def test_reference_of_a_path_that_is_no_unicode_leads_to_its_bytes(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9")
    path.write_bytes(b"x")
    (reference,) = references(column_of_files([path]), 1)
    assert fetch(reference) == b"x"


def test_row_without_a_value_has_a_reference_to_nothing(files):
    found = references(column_of_files(files[:2], [False, True]), 2)
    assert found[0] == b""
    assert (fetch(found[0]), referred_bytes(found[0])) == (None, 0)
    assert fetch(found[1]) == b""


def test_no_column_has_references_to_nothing():
    assert references(None, 3) == [b"", b"", b""]
    assert references(None, 0) == []


def test_reference_to_an_object_in_memory_gives_that_object():
    value = memoryview(b"pixels")
    column = Deferred(np.array([6]), np.array([hash_bytes(value)], np.uint64), values=[value])
    (reference,) = references(column, 1)
    assert fetch(reference, value) is value
    assert referred_bytes(reference) == 6


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (b"\xff\xd8two", "5 bytes"),
        (b"\xff\xd8", "2 bytes"),
        (b"", "0 bytes"),
        (b"\xff\xd8one more", "10 bytes"),
        (bytes(3 << 20), "3145728 bytes"),
    ],
)
def test_file_that_is_no_longer_what_it_was_is_an_error(files, data, got):
    (reference,) = references(column_of_files(files[:1]), 1)
    files[0].write_bytes(data)
    with pytest.raises(ChangedFileError) as caught:
        fetch(reference)
    digest = hash_bytes(b"\xff\xd8one")
    assert caught.value.path == os.fspath(files[0])
    assert f"expected 5 bytes with digest {digest:016x}, got {got}" in str(caught.value)
    assert "changed since its row was read" in str(caught.value)


def test_file_that_is_gone_is_an_error(files):
    (reference,) = references(column_of_files(files[:1]), 1)
    files[0].unlink()
    with pytest.raises(PathError, match="cannot be read \\(No such file or directory\\)") as caught:
        fetch(reference)
    assert caught.value.path == os.fspath(files[0])


def test_folder_in_place_of_a_file_is_an_error(files):
    (reference,) = references(column_of_files(files[:1]), 1)
    files[0].unlink()
    files[0].mkdir()
    with pytest.raises(PathError, match="Is a directory"):
        fetch(reference)


@pytest.mark.parametrize("hint", [0, 1, 4, 5, 6, 1 << 20])
def test_file_is_read_whole_whatever_its_size_was_said_to_be(files, hint):
    assert read_file(os.fspath(files[0]), hint) == b"\xff\xd8one"


def count_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_stays_open(files):
    before = count_descriptors()
    for _ in range(3):
        read_file(os.fspath(files[0]), 5)
        with pytest.raises(PathError):
            read_file(os.fspath(files[0].parent), 5)
    assert count_descriptors() == before


def test_materialized_column_has_the_values_and_the_mask(files):
    column = materialize(column_of_files(files, [True, False, True]))
    assert column.tolist() == [b"\xff\xd8one", b"", files[2].read_bytes()]
    assert column.present.tolist() == [True, False, True]
    assert materialize(column_of_files(files)).present is None


def test_materialized_column_of_objects_has_their_bytes():
    values = [b"one", memoryview(b"three"), b""]
    digests = np.array([hash_bytes(value) for value in values], np.uint64)
    column = materialize(Deferred(np.array([3, 5, 0]), digests, values=values))
    assert column.tolist() == [b"one", b"three", b""]
    assert materialize(Deferred(np.empty(0, np.int64), np.empty(0, np.uint64), values=[])).tolist() == []


def test_materialized_column_of_a_changed_file_is_an_error(files):
    column = column_of_files(files)
    files[0].write_bytes(b"12345")
    with pytest.raises(ChangedFileError):
        materialize(column)
