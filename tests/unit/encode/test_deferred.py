"""Values that are fetched when their record is written: references to them, and what can go wrong."""

import errno
import os
from itertools import pairwise

import numpy as np
import pytest

from penstock import _native
from penstock._native import digest_bytes, hash_bytes
from penstock.encode.deferred import (
    IN_FILE,
    IN_MEMORY,
    IN_STORE,
    NOTHING,
    ReferredValues,
    find_value,
    make_references,
    materialize,
    refuse_file,
)
from penstock.encode.strings import fingerprint
from penstock.errors import ChangedFileError, PathError
from penstock.storage.deferred import Deferred
from raising import mentions, raises_with


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
        *fingerprint(data),
        paths=[os.fspath(path) if has else "" for path, has in zip(paths, there, strict=True)],
        present=None if present is None else np.array(present),
    )


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / name for name in ("ä b.jpg", "empty", "large")]
    for path, data in zip(paths, (b"\xff\xd8one", b"", bytes(range(256)) * 9000), strict=True):
        path.write_bytes(data)
    return paths


def refer(found):
    """Return the sizes and the kinds of the values that references refer to."""
    ends = np.cumsum([0, *map(len, found)])
    arena = np.frombuffer(b"".join(found), np.uint8)
    numbers = np.zeros(len(found), np.uint32)
    referred = ReferredValues(*_native.read_references([arena], numbers, ends[:-1], np.diff(ends)))
    return referred.sizes.tolist(), referred.kinds.tolist()


def test_references_to_files_lead_to_their_paths_sizes_and_digests(files):
    found = references(column_of_files(files), 3)
    assert [find_value(each) for each in found] == [
        (os.fsencode(path), path.stat().st_size, digest_bytes(path.read_bytes())) for path in files
    ]
    assert refer(found) == ([5, 0, 256 * 9000], [IN_FILE] * 3)


def test_reference_of_a_path_that_is_no_unicode_leads_to_it(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9")
    path.write_bytes(b"x")
    (reference,) = references(column_of_files([path]), 1)
    assert find_value(reference) == (os.fsencode(path), 1, digest_bytes(b"x"))


def test_row_without_a_value_has_a_reference_to_nothing(files):
    found = references(column_of_files(files[:2], [False, True]), 2)
    assert found[0] == b""
    assert find_value(found[0]) is None
    assert refer(found) == ([0, 0], [NOTHING, IN_FILE])
    assert find_value(found[0], b"placeholder") is None
    assert find_value(found[1]) == (os.fsencode(files[1]), 0, digest_bytes(b""))


def test_reference_to_an_object_of_a_store_is_known():
    column = Deferred(np.array([6]), *fingerprint([b"pixels"]), paths=["s3://photos/1.jpg"])
    assert refer(references(column, 1)) == ([6], [IN_STORE])


def test_reference_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="too short"):
        refer([b"x" * 23])


def test_no_column_has_references_to_nothing():
    assert references(None, 3) == [b"", b"", b""]
    assert references(None, 0) == []


def test_reference_to_an_object_in_memory_gives_that_object():
    value = memoryview(b"pixels")
    column = Deferred(np.array([6]), *fingerprint([value]), values=[value])
    (reference,) = references(column, 1)
    assert find_value(reference, value) is value
    assert refer([reference]) == ([6], [IN_MEMORY])


def test_refused_file_is_named_with_the_reason():
    value = (os.fsencode("/photos/ä.jpg"), 5, bytes(16))
    gone = refuse_file(value, errno.ENOENT)
    assert isinstance(gone, PathError)
    assert gone.path == "/photos/ä.jpg"
    assert mentions(gone, "(No such file or directory)")
    changed = refuse_file(value, 0)
    assert isinstance(changed, ChangedFileError)
    assert mentions(changed, "/photos/ä.jpg row")


def test_materialized_column_has_the_values_and_the_mask(files):
    column = materialize(column_of_files(files, [True, False, True]))
    assert column.tolist() == [b"\xff\xd8one", b"", files[2].read_bytes()]
    assert column.present.tolist() == [True, False, True]
    assert materialize(column_of_files(files)).present is None


def test_materialized_column_of_objects_has_their_bytes():
    values = [b"one", memoryview(b"three"), b""]
    column = materialize(Deferred(np.array([3, 5, 0]), *fingerprint(values), values=values))
    assert column.tolist() == [b"one", b"three", b""]
    assert materialize(Deferred(np.empty(0, np.int64), *fingerprint([]), values=[])).tolist() == []


@pytest.mark.parametrize("data", [b"12345", b"\xff\xd8", b"", b"\xff\xd8one more"])
def test_materialized_column_of_a_changed_file_is_an_error(files, data):
    column = column_of_files(files)
    files[0].write_bytes(data)
    with pytest.raises(ChangedFileError) as caught:
        materialize(column)
    assert caught.value.path == os.fspath(files[0])


def test_materialized_column_of_a_file_that_is_gone_is_an_error(files):
    column = column_of_files(files)
    files[2].unlink()
    with raises_with(PathError, "(No such file or directory)") as caught:
        materialize(column)
    assert caught.value.path == os.fspath(files[2])


def test_materialized_column_of_a_file_changed_to_a_colliding_one_is_an_error(tmp_path):
    first, second = (b"%08x`8i0Xf<o" % number + b"z" * 50 for number in range(2))
    assert hash_bytes(first) == hash_bytes(second)
    path = tmp_path / "file"
    path.write_bytes(first)
    column = column_of_files([path])
    path.write_bytes(second)
    with pytest.raises(ChangedFileError) as caught:
        materialize(column)
    assert caught.value.path == str(path)
