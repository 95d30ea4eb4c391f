"""A shard being written: the bytes that went in, its hash, its indexes; whole or not at all."""

import errno
import gzip
import hashlib
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import PathError, WriteError
from penstock.format.entry import ShardEntry
from penstock.format.index import decode_index, identify, index_name, tfindex_name
from penstock.shards.shard_file import ShardFile, is_complete, name_files
from raising import containing, raises_with
from record_files import BASE, FRAME_BYTES, NUM_RECORDS

NAME = "train-00000-of-00001.tfrecord"
SIZES = np.full(NUM_RECORDS, FRAME_BYTES)


def write_shard(folder, compression: str = "none") -> ShardEntry:
    with ShardFile(folder, NAME, compression) as shard:
        shard.write(BASE, SIZES)
        return shard.commit()


def names(folder) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_shard_and_its_entry_have_the_bytes_that_were_written(tmp_path):
    entry = write_shard(tmp_path)
    assert (tmp_path / NAME).read_bytes() == BASE
    assert entry == ShardEntry(NAME, NUM_RECORDS, len(BASE), hashlib.sha256(BASE).hexdigest())
    assert names(tmp_path) == sorted(name_files(entry))


def test_shard_compressed_inflates_to_the_bytes_and_has_no_text_index(tmp_path):
    entry = write_shard(tmp_path, "gzip")
    data = (tmp_path / NAME).read_bytes()
    assert gzip.decompress(data) == BASE
    assert data[4:8] == bytes(4)  # no time
    assert (entry.num_bytes, entry.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert names(tmp_path) == sorted([NAME, index_name(NAME)])
    offsets, compression = decode_index((tmp_path / index_name(NAME)).read_bytes(), identify(entry), 1 << 30)
    assert compression == "gzip"
    assert offsets.tolist() == list(range(0, len(BASE) + 1, FRAME_BYTES))


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_shard_written_in_other_pieces_has_the_same_bytes(tmp_path, compression, cut):
    (tmp_path / "whole").mkdir()
    entry = write_shard(tmp_path / "whole", compression)
    with ShardFile(tmp_path / "pieces", NAME, compression) as shard:
        frames = np.frombuffer(BASE, np.uint8)
        shard.write(frames[:0], SIZES[:0])
        shard.write(frames[: cut * FRAME_BYTES], SIZES[:cut])
        shard.write(memoryview(BASE)[cut * FRAME_BYTES :], SIZES[cut:])
        assert shard.num_records == NUM_RECORDS
        assert shard.commit() == entry
    for name in names(tmp_path / "whole"):
        assert (tmp_path / "pieces" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shard_without_a_record_is_a_file_and_has_indexes(tmp_path, compression):
    with ShardFile(tmp_path, NAME, compression) as shard:
        entry = shard.commit()
    assert entry.num_records == 0
    data = (tmp_path / NAME).read_bytes()
    assert (data if compression == "none" else gzip.decompress(data)) == b""
    assert is_complete(tmp_path, entry)


def test_shard_keeps_its_sizes_when_the_caller_reuses_the_array(tmp_path):
    sizes = SIZES.copy()
    with ShardFile(tmp_path, NAME) as shard:
        shard.write(BASE, sizes)
        sizes[:] = 1
        entry = shard.commit()
    assert is_complete(tmp_path, entry)


def test_shard_not_committed_leaves_nothing(tmp_path):
    with ShardFile(tmp_path, NAME) as shard:
        shard.write(BASE, SIZES)
    assert names(tmp_path) == []


def test_shard_not_committed_does_not_show_under_its_name(tmp_path):
    with ShardFile(tmp_path, NAME) as shard:
        shard.write(BASE, SIZES)
        (found,) = names(tmp_path)
        assert found.startswith(".tmp-")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shard_committed_twice_gives_the_same_entry_and_takes_no_more(tmp_path, compression):
    with ShardFile(tmp_path, NAME, compression) as shard:
        shard.write(BASE, SIZES)
        entry = shard.commit()
        assert shard.commit() is entry
        with raises_with(WriteError, "closed"):
            shard.write(BASE, SIZES)
    assert is_complete(tmp_path, entry)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shard_discarded_cannot_be_committed(tmp_path, compression):
    shard = ShardFile(tmp_path, NAME, compression)
    shard.discard()
    with raises_with(WriteError, "closed"):
        shard.commit()


def test_shard_of_sizes_that_do_not_add_up_is_refused(tmp_path):
    with ShardFile(tmp_path, NAME) as shard, raises_with(WriteError, expected=425, got=containing(340)):
        shard.write(BASE, SIZES[:4])


def test_existing_shard_is_not_overwritten(tmp_path):
    write_shard(tmp_path)
    with raises_with(PathError, advice=containing("overwrite=True")):
        ShardFile(tmp_path, NAME)


def test_shard_beyond_the_limit_of_file_sizes_names_the_path_and_the_bytes(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    left = "File too large 700 1000 bytes"
    try:
        with (
            ShardFile(tmp_path, NAME, planned_bytes=1000) as shard,
            raises_with(WriteError, left, path=containing(NAME)),
        ):
            shard.write(BASE, SIZES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == []


def test_shard_whose_disk_fills_when_it_is_synced_is_removed(tmp_path, monkeypatch):
    def fail(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with raises_with(WriteError, "No space left on device 425 bytes"):
        write_shard(tmp_path)
    assert names(tmp_path) == []


def test_shard_and_indexes_are_synced_before_their_names_and_these_before_the_end(tmp_path, monkeypatch):
    calls = []
    sync, swap = os.fsync, os.replace

    def note_sync(fd: int) -> None:
        calls.append(("sync", os.fspath(Path(f"/proc/self/fd/{fd}").readlink())))
        sync(fd)

    def note_name(before, after) -> None:
        calls.append(("name", os.fspath(before), os.fspath(after)))
        swap(before, after)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_name)
    entry = write_shard(tmp_path)
    named = [call for call in calls if call[0] == "name"]
    assert sorted(after for _, _, after in named) == sorted(
        str(tmp_path / name) for name in name_files(entry)
    )
    for call in named:
        _, before, after = call
        place = calls.index(call)
        assert ("sync", before) in calls[:place]
        assert ("sync", os.fspath(Path(after).parent)) in calls[place:]
    assert len(calls) == 3 + 3 + 2  # the folder is not synced for each


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_complete_shard_with_a_fault_anywhere_is_not_complete(tmp_path, compression):
    entry = write_shard(tmp_path, compression)
    assert is_complete(tmp_path, entry)
    assert not is_complete(tmp_path, entry._replace(num_records=entry.num_records + 1))
    for name in names(tmp_path):
        path = tmp_path / name
        data = path.read_bytes()
        for fault in (data[:-1], data + b"\n", data[:-1] + bytes([data[-1] ^ 1]), b""):
            path.write_bytes(fault)
            assert not is_complete(tmp_path, entry), name
        path.unlink()
        assert not is_complete(tmp_path, entry), name
        path.write_bytes(data)
    assert is_complete(tmp_path, entry)


def test_text_index_is_beside_the_shard(tmp_path):
    write_shard(tmp_path)
    lines = (tmp_path / tfindex_name(NAME)).read_text().splitlines()
    assert lines == [f"{i * FRAME_BYTES} {FRAME_BYTES}" for i in range(NUM_RECORDS)]
