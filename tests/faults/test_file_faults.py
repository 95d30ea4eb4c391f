"""Files that are something else, and files that change, F20–F22 of the fault table."""

import errno
import functools
import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import ChangedFileError, NoSuchPathError, NotTFRecordError, PathError
from raising import containing, raises_with
from record_files import BASE, PAYLOADS, example, open_split, write_gzip, write_plain

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)

FOREIGN = {
    "Git LFS pointer": (LFS_POINTER, ["Git LFS", "'git lfs pull'"]),
    "HTML page": (b"\n<!DOCTYPE html>\n<html><body>404</body></html>", ["HTML"]),
    "XML": (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', ["XML"]),
    "JSON": (b'{"error": "not found", "code": 404}', ["JSON"]),
    "Parquet": (b"PAR1" + bytes(100), ["Parquet"]),
    "NumPy": (b"\x93NUMPY\x01\x00" + bytes(100), ["NumPy"]),
    "int32 dump": (np.arange(1000, dtype="<i4").tobytes(), ["CRC 0x"]),
    "CSV": (b"id,name\n" + b"1,Rex\n" * 100, ["a CSV file"]),
    "text": (b"a note about pets\n" * 100, ["text"]),
    "noise": (np.random.default_rng(1).bytes(100_000), ["CRC 0x"]),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_f20_file_that_is_something_else_is_refused_naming_it(tmp_path, kind):
    data, got = FOREIGN[kind]
    path = tmp_path / "data.tfrecord"
    path.write_bytes(data)
    for policy in ("raise", "skip", "collect"):
        with pytest.raises(NotTFRecordError) as caught:
            ps.open(path, on_error=policy)
        error = caught.value
        assert (error.path, error.record, error.offset) == (str(path), 0, 0)
        assert error.got == containing(*got)
        assert error.what == containing("TFRecord")
        assert error.expected == containing("CRC")
        assert error.advice


def test_f20_one_foreign_file_among_several_is_refused_by_name(tmp_path):
    write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    (tmp_path / "b.tfrecord").write_bytes(LFS_POINTER)
    with raises_with(NotTFRecordError, path=str(tmp_path / "b.tfrecord"), got=containing("Git LFS")):
        ps.open(tmp_path)


@pytest.mark.parametrize("length", [0x7B, 0x5B, 0x3C, 0x4B50])
def test_f20_record_whose_length_looks_like_something_else_is_read(tmp_path, length):
    # 123 and 91 are letters of JSON, 60 is one of HTML; a header whose CRC fits says more than they do.
    payloads = [bytes(length), b"x"]
    path = write_plain(tmp_path / "data.tfrecord", payloads)
    assert list(open_split(path).records()) == payloads


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe.tfrecord"
    os.mkfifo(path)
    return path


@pytest.mark.timeout(20)
def test_f21_pipe_is_refused_and_not_waited_for(pipe):
    for named in (pipe, [pipe], f"{pipe.parent}/*.tfrecord", pipe.parent):
        expected = containing("regular file")
        with raises_with(PathError, path=str(pipe), expected=expected, got=containing("pipe")):
            ps.open(named)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_f21_device_is_refused(device):
    with raises_with(PathError, path=device, expected=containing("regular file"), got=containing("device")):
        ps.open(device)


def test_f21_folder_named_as_a_shard_is_a_folder_without_shards(tmp_path):
    folder = tmp_path / "shard.tfrecord"
    folder.mkdir()
    with raises_with(NoSuchPathError, path=str(folder), what=containing("folder")):
        ps.open(folder)


def test_f21_link_that_leads_round_in_a_circle_is_refused(tmp_path):
    path = tmp_path / "loop.tfrecord"
    path.symlink_to(path)
    for named in (path, tmp_path):
        with raises_with(PathError, path=str(path), what=containing(os.strerror(errno.ELOOP))):
            ps.open(named)


def test_f21_link_that_leads_nowhere_is_refused_and_not_passed_over(tmp_path):
    write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    path = tmp_path / "b.tfrecord"
    path.symlink_to(tmp_path / "gone.tfrecord")
    for named in (path, tmp_path):
        with raises_with(NoSuchPathError, path=str(path)):
            ps.open(named)


def test_f21_link_to_a_file_or_a_folder_is_read(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    target = write_plain(folder / "a.tfrecord", PAYLOADS)
    link = tmp_path / "link.tfrecord"
    link.symlink_to(target)
    to_folder = tmp_path / "elsewhere"
    to_folder.symlink_to(folder, target_is_directory=True)
    assert list(open_split(link).records()) == PAYLOADS
    assert list(open_split(to_folder).records()) == PAYLOADS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_f21_file_that_may_not_be_read_is_refused(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    path.chmod(0)
    with raises_with(PathError, path=str(path), what=containing(os.strerror(errno.EACCES))):
        ps.open(path)


ROWS = 3000  # several blocks of an iteration
LARGE = [example(row=row, text=hashlib.sha256(b"%d" % row).hexdigest() * 4) for row in range(ROWS)]


@functools.cache
def large_file(write) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write(Path(folder) / "large", LARGE).read_bytes()


def store(write, folder):
    path = folder / "data.tfrecord"
    path.write_bytes(large_file(write))
    return path


def shrink(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def grow(path):
    with path.open("ab") as file:
        file.write(BASE)


def overwrite(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(0, 0))


CHANGES = {"shrinks": shrink, "is emptied": empty, "grows": grow, "is overwritten": overwrite}
USES = {
    "iteration": list,
    "payloads": lambda split: list(split.records()),
    "columns": lambda split: split.columns(),
    "a sample": lambda split: split[ROWS - 1],
}


@pytest.mark.parametrize("write", [write_plain, write_gzip])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("change", CHANGES)
def test_f22_file_that_changes_while_open_is_an_error(tmp_path, change, use, write):
    path = store(write, tmp_path)
    split = open_split(path, on_error="skip")  # a file that changed is no bad record: it is not skipped
    CHANGES[change](path)
    with pytest.raises(ChangedFileError) as caught:
        USES[use](split)
    error = caught.value
    assert isinstance(error, OSError)
    assert error.path == str(path)
    assert isinstance(error.expected, int)
    assert isinstance(error.got, int)
    assert error.expected != error.got
    assert error.advice


@pytest.mark.parametrize("write", [write_plain, write_gzip])
@pytest.mark.parametrize("change", CHANGES)
def test_f22_file_that_changes_during_an_iteration_is_an_error_after_right_records(tmp_path, change, write):
    path = store(write, tmp_path)
    records = open_split(path).records()
    delivered = [next(records) for _ in range(10)]
    CHANGES[change](path)
    with pytest.raises(ChangedFileError):  # noqa: PT012
        for record in records:
            delivered.append(record)
    assert delivered == LARGE[: len(delivered)]


def replace(path):
    other = path.with_suffix(".other")
    other.write_bytes(bytes(100))
    other.replace(path)


@pytest.mark.parametrize("write", [write_plain, write_gzip])
@pytest.mark.parametrize("change", [replace, Path.unlink])
def test_f22_file_replaced_or_removed_while_open_is_read_as_it_was_opened(tmp_path, change, write):
    # What was opened is still there for who holds it open, whole: nobody can write to it by its name.
    path = store(write, tmp_path)
    split = open_split(path)
    records = split.records()
    first = next(records)
    change(path)
    assert [first, *records] == LARGE
    assert split.columns()["row"].values.tolist() == list(range(ROWS))
