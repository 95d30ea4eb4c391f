"""Verification of sets of files."""

import hashlib
import os

from manifest_folders import write_dataset
from penstock.errors import NoSuchPathError
from penstock.jobs.check.verify import verify
from penstock.settings.groups import ReadOptions
from raising import containing, mentions, raises_with
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
    assert mentions(found.faults[1].what, "LFS")
    assert (found.num_records, found.num_bad_files) == (15, 3)


def test_verify_set_with_a_missing_shard_names_it_and_continues(tmp_path) -> None:
    write_plain(tmp_path / "x-00000-of-00003.tfrecord", PAYLOADS)
    (tmp_path / "x-00002-of-00003.tfrecord").write_bytes(flip(BASE, 30))
    found = verify(tmp_path)
    assert [fault.record for fault in found.faults] == [None, 0]
    assert found.faults[0].path == tmp_path
    assert mentions(found.faults[0].what, "x-00001-of-00003.tfrecord 3 2")


def test_verify_shard_named_by_itself_is_not_held_against_its_set(tmp_path) -> None:
    path = write_plain(tmp_path / "x-00000-of-00003.tfrecord", PAYLOADS)
    assert verify([path]).faults == ()


def test_verify_pipe_is_a_fault_and_does_not_hang(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.tfrecord")
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    found = verify([tmp_path / "pipe.tfrecord", path])
    assert [fault.what for fault in found.faults] == [containing("regular file", "pipe")]
    assert found.num_records == 5


def test_verify_file_with_another_compression_than_declared_is_a_fault(tmp_path) -> None:
    path = write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    found = verify(path, ReadOptions(compression="zlib"))
    assert [fault.what for fault in found.faults] == [containing("compression", "zlib")]


def test_verify_path_that_does_not_exist_is_refused(tmp_path) -> None:
    with raises_with(NoSuchPathError, path=str(tmp_path / "nothing.tfrecord")):
        verify(tmp_path / "nothing.tfrecord")


def test_verify_reports_progress_in_bytes_on_disk(tmp_path) -> None:
    write_plain(tmp_path / "a.tfrecord", PAYLOADS)
    size = write_gzip(tmp_path / "b.tfrecord.gz", PAYLOADS).stat().st_size
    (tmp_path / "c.tfrecord").write_bytes(b"<html>")
    calls = []
    verify(tmp_path, on_progress=lambda done, total: calls.append((done, total)))
    total = FILE_BYTES + size + 6
    assert calls[-1] == (total, total)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_verify_data_set_holds_it_against_its_manifest_and_indexes(tmp_path) -> None:
    write_dataset(tmp_path / "pets")
    assert verify(tmp_path / "pets").to_json()["faults"] == []
    write_dataset(tmp_path / "packed", compression="gzip")
    found = verify([tmp_path / "pets", tmp_path / "packed"])
    assert (found.faults, found.num_records) == ((), 12)


def test_verify_intact_file_that_differs_from_the_manifest_names_the_difference(tmp_path) -> None:
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    shard = tmp_path / "train-00000-of-00001.tfrecord"
    sha256 = hashlib.sha256(shard.read_bytes()).hexdigest()
    write_plain(shard, PAYLOADS[:3])
    faults = [fault.what for fault in verify(tmp_path).faults]
    assert faults == [
        containing("size", "manifest", 425, f"{3 * FRAME_BYTES}"),
        containing("records", "manifest", 5, 3),
        containing("SHA-256", f"{sha256}", f"{hashlib.sha256(shard.read_bytes()).hexdigest()}"),
    ]
    write_plain(shard, PAYLOADS[::-1])
    assert [fault.what.split(":")[0] for fault in verify(tmp_path).faults] == [
        containing("SHA-256", "manifest")
    ]


def test_verify_damaged_shard_of_a_data_set_names_the_record_and_the_hash(tmp_path) -> None:
    write_dataset(tmp_path, {"train": [PAYLOADS]}, compression="gzip")
    shard = tmp_path / "train-00000-of-00001.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-4] + b"\0\0\0\0")
    found = verify(tmp_path)
    assert [fault.record for fault in found.faults] == [5, None]
    assert mentions(found.faults[1].what, "SHA-256 manifest")


def test_verify_missing_shard_of_a_data_set_is_a_fault_and_the_others_are_read(tmp_path) -> None:
    write_dataset(tmp_path)
    (tmp_path / "train-00000-of-00002.tfrecord").unlink()
    found = verify(tmp_path)
    assert [(fault.path.name, fault.what) for fault in found.faults] == [
        ("train-00000-of-00002.tfrecord", containing("file"))
    ]
    assert found.num_records == 3


def test_verify_index_that_does_not_fit_its_shard_is_named(tmp_path) -> None:
    write_dataset(tmp_path, {"train": [PAYLOADS]})
    index = tmp_path / "index" / "train-00000-of-00001.tfrecord.idx"
    index.write_bytes(index.read_bytes()[:-1] + b"\1")
    (tmp_path / "train-00000-of-00001.tfindex").write_bytes(b"0 425\n")
    assert [(fault.path.name, fault.what) for fault in verify(tmp_path).faults] == [
        ("train-00000-of-00001.tfrecord.idx", containing("train-00000-of-00001.tfrecord")),
        ("train-00000-of-00001.tfindex", containing("train-00000-of-00001.tfrecord")),
    ]
    index.unlink()
    (tmp_path / "train-00000-of-00001.tfindex").unlink()
    assert verify(tmp_path).faults == ()


def test_verify_invalid_manifest_is_a_fault_and_the_files_are_read(tmp_path) -> None:
    write_dataset(tmp_path)
    (tmp_path / "penstock.json").write_text("{")
    found = verify(tmp_path)
    assert [fault.path.name for fault in found.faults] == ["penstock.json"]
    assert found.num_records == 6
