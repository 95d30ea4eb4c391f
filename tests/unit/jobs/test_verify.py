"""Verification of sets of files."""

import os

import pytest

from penstock.errors import NoSuchPathError
from penstock.jobs.verify import verify
from penstock.read.options import ReadOptions
from record_files import BASE, FILE_BYTES, FRAME_BYTES, PAYLOADS, flip, write_gzip, write_plain


def test_verify_sound_files_sums_them_up(tmp_path) -> None:
    write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    size = write_gzip(tmp_path / "b.tfrecord.gz", PAYLOADS[:2]).stat().st_size
    assert verify(tmp_path).to_json() == {"files": 2, "records": 7, "bytes": FILE_BYTES + size, "faults": []}


def test_verify_bad_file_among_good_ones_looks_at_all(tmp_path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(flip(BASE, 30))
    (tmp_path / "b.tfrecord").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    write_plain(tmp_path / "c.tfrecord", PAYLOADS)
    (tmp_path / "d.tfrecord").write_bytes(BASE[:-1])
    found = verify(tmp_path)
    assert [(fault.path.name, fault.record, fault.offset) for fault in found.faults] == [
        ("a.tfrecord", 0, 0),
        ("b.tfrecord", 0, 0),
        ("d.tfrecord", 4, 4 * FRAME_BYTES),
    ]
    assert "Git LFS pointer" in found.faults[1].what
    assert (found.num_records, found.num_bad_files) == (15, 3)


def test_verify_set_with_a_missing_shard_names_it_and_goes_on(tmp_path) -> None:
    write_plain(tmp_path / "x-00000-of-00003.tfrecord", PAYLOADS)
    (tmp_path / "x-00002-of-00003.tfrecord").write_bytes(flip(BASE, 30))
    found = verify(tmp_path)
    assert [fault.record for fault in found.faults] == [None, 0]
    assert found.faults[0].path == tmp_path
    assert found.faults[0].what == "shard x-00001-of-00003.tfrecord is missing: expected 3 files, got 2"


def test_verify_shard_named_by_itself_is_not_held_against_its_set(tmp_path) -> None:
    path = write_plain(tmp_path / "x-00000-of-00003.tfrecord", PAYLOADS)
    assert verify([path]).faults == ()


def test_verify_pipe_is_a_fault_and_does_not_hang(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.tfrecord")
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    found = verify([tmp_path / "pipe.tfrecord", path])
    assert [fault.what for fault in found.faults] == [
        "not a regular file: expected a regular file, got a pipe"
    ]
    assert found.num_records == 5


def test_verify_file_with_another_compression_than_told_is_a_fault(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    found = verify(path, ReadOptions(compression="zlib"))
    assert [fault.what for fault in found.faults] == ["compression: expected zlib, got none"]


def test_verify_path_that_does_not_exist_is_refused(tmp_path) -> None:
    with pytest.raises(NoSuchPathError, match="no such file or folder"):
        verify(tmp_path / "nothing.tfrecord")


def test_verify_tells_how_far_it_is_in_bytes_on_disk(tmp_path) -> None:
    write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    size = write_gzip(tmp_path / "b.tfrecord.gz", PAYLOADS).stat().st_size
    (tmp_path / "c.tfrecord").write_bytes(b"<html>")
    calls = []
    verify(tmp_path, on_progress=lambda done, total: calls.append((done, total)))
    total = FILE_BYTES + size + 6
    assert calls[-1] == (total, total)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
