"""Open files: regular ones only, read by position, watched for changes, closed with their last holder."""

import gc
import os
from pathlib import Path

import pytest

from penstock.errors import ChangedFileError, NoSuchPathError, PathError
from penstock.storage.open_file import KeptFile, KeptFiles, OpenFile
from raising import containing, raises_with


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    return path


def num_open() -> int:
    gc.collect()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    ("offset", "size", "got"),
    [(0, 10, b"0123456789"), (3, 4, b"3456"), (8, 5, b"89"), (10, 1, b""), (99, 1, b""), (0, 0, b"")],
)
def test_read_gives_fewer_bytes_only_at_the_end(path, offset, size, got):
    assert OpenFile(path).read(offset, size) == got


def test_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(NoSuchPathError) as caught:
        OpenFile(tmp_path / "nothing")
    assert isinstance(caught.value, FileNotFoundError)


def test_folder_is_refused(tmp_path):
    with raises_with(PathError, advice=containing("TFRecord")):
        OpenFile(tmp_path)


def test_name_too_long_is_refused(tmp_path):
    with raises_with(PathError, "File"):
        OpenFile(tmp_path / ("n" * 300))


def test_file_is_closed_with_its_last_holder(path):
    before = num_open()
    file = OpenFile(path)
    assert num_open() == before + 1
    del file
    assert num_open() == before


def test_refused_file_leaves_nothing_open(tmp_path):
    before = num_open()
    for _ in range(3):
        with pytest.raises(PathError):
            OpenFile(tmp_path)
    assert num_open() == before


def test_close_twice_does_nothing(path):
    file = OpenFile(path)
    file.close()
    file.close()
    assert file.fd == -1


def test_unchanged_file_passes(path):
    file = OpenFile(path)
    file.check_unchanged(file.identity)
    assert OpenFile(path).identity == file.identity


def test_file_of_another_size_is_refused_by_its_size(path):
    file = OpenFile(path)
    os.truncate(path, 4)
    with raises_with(ChangedFileError, expected=10, got=4):
        file.check_unchanged(file.identity)


def test_file_of_another_time_is_refused_by_its_time(path):
    file = OpenFile(path)
    os.utime(path, ns=(5, 7))
    with raises_with(ChangedFileError, got=7):
        file.check_unchanged(file.identity)


def test_kept_file_is_opened_once(path):
    files = KeptFiles()
    assert files.open(path) is files.open(path)


def test_kept_files_are_no_more_than_the_limit(tmp_path):
    paths = [tmp_path / str(i) for i in range(20)]
    for path in paths:
        path.write_bytes(path.name.encode())
    before = num_open()
    files = KeptFiles(most_files=3)
    assert [files.open(path).read(0, 9).decode() for path in paths] == [path.name for path in paths]
    assert num_open() == before + 3
    kept = files.open(paths[-3])
    files.open(paths[0])  # pushes out the one that was used longest ago, which is not the one just used
    assert files.open(paths[-3]) is kept


def test_kept_file_that_is_pushed_out_stays_open_for_its_holder(tmp_path, path):
    files = KeptFiles(most_files=1)
    held = files.open(path)
    other = tmp_path / "other"
    other.touch()
    files.open(other)
    assert held.read(0, 3) == b"012"
    assert files.open(path) is not held


def test_kept_file_that_is_forgotten_is_opened_again(path):
    files = KeptFiles()
    before = files.open(path)
    files.forget(path)
    files.forget(path)
    assert files.open(path) is not before


def test_kept_file_that_was_replaced_while_it_was_closed_is_refused(tmp_path, path):
    files = KeptFiles()
    file = KeptFile(path, OpenFile(path).identity, files)
    assert file.read(2, 3) == b"234"
    files.forget(path)
    other = tmp_path / "other"
    other.write_bytes(b"9876543210")
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    other.replace(path)
    with pytest.raises(ChangedFileError) as caught:
        file.read(2, 3)
    assert caught.value.path == str(path)
