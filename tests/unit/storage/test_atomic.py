"""Files that appear whole or not at all."""

import errno
import os
import stat

import pytest

from penstock.errors import PathError, WriteError
from penstock.storage import atomic
from penstock.storage.atomic import AtomicFile, ByteSink, sync_folder, write_failure
from raising import containing, mentions, raises_with


def test_atomic_file_appears_only_when_it_is_complete(tmp_path) -> None:
    path = tmp_path / "new folder" / "file"
    with AtomicFile(path) as file:
        file.write(b"one, ")
        file.write(b"two")
        assert not path.exists()
        assert file.num_bytes == 8
    assert path.read_bytes() == b"one, two"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_atomic_file_after_an_error_leaves_nothing(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError), AtomicFile(tmp_path / "file") as file:  # noqa: PT012
        file.write(b"half")
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []


def test_atomic_file_onto_an_existing_one_is_refused(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with raises_with(PathError, advice=containing("name", "overwrite=True")):
        AtomicFile(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_atomic_file_onto_one_that_appears_meanwhile_is_refused(tmp_path) -> None:
    path = tmp_path / "file"
    with (
        raises_with(PathError, advice=containing("overwrite=True")),
        AtomicFile(path) as file,
    ):
        file.write(b"mine")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1


def test_atomic_file_with_overwrite_replaces_at_the_end(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with AtomicFile(path, overwrite=True) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_atomic_file_has_the_permissions_of_any_new_file(tmp_path) -> None:
    before = os.umask(0o027)
    try:
        with AtomicFile(tmp_path / "file"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_atomic_file_cut_keeps_the_first_bytes(tmp_path) -> None:
    with AtomicFile(tmp_path / "file") as file:
        file.write(b"keep drop")
        file.truncate(4)
    assert (tmp_path / "file").read_bytes() == b"keep"


def test_atomic_file_discarded_gets_no_final_name(tmp_path) -> None:
    with AtomicFile(tmp_path / "file") as file:
        file.write(b"never mind")
        file.discard()
    assert list(tmp_path.iterdir()) == []


def test_atomic_file_under_a_file_names_the_path(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with raises_with(WriteError, "file/below") as caught:
        AtomicFile(tmp_path / "file" / "below")
    assert caught.value.path == str(tmp_path / "file" / "below")


def test_atomic_file_on_a_full_disk_names_the_path_and_the_bytes_left(tmp_path, monkeypatch) -> None:
    def write_some(fd: int, data: memoryview) -> int:
        if len(data) < 8:
            raise OSError(28, "No space left on device")
        return 3

    with raises_with(WriteError, "No space left on device 7 10 bytes") as caught:  # noqa: SIM117
        with AtomicFile(tmp_path / "file") as file:
            monkeypatch.setattr(os, "write", write_some)
            file.write(b"0123456789")
    assert caught.value.path == str(tmp_path / "file")
    assert isinstance(caught.value, OSError)
    assert list(tmp_path.iterdir()) == []


def test_calls_of_atomic_file_end_at_multiples_of_a_quarter_of_a_mebibyte(tmp_path, monkeypatch) -> None:
    ends = []
    write = os.write

    def note_end(fd: int, data: memoryview) -> int:
        num_written = write(fd, data)
        ends.append(os.lseek(fd, 0, os.SEEK_CUR))
        return num_written

    monkeypatch.setattr(os, "write", note_end)
    pieces = [bytes([i]) * size for i, size in enumerate((700_000, 1, 1_000_000))]
    with AtomicFile(tmp_path / "file") as file:
        for piece in pieces:
            file.write(piece)
    assert ends == [1 << 18, 2 << 18, 700_000, 700_001, *(i << 18 for i in range(3, 7)), 1_700_001]
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


def test_atomic_file_is_synced_before_it_is_renamed_and_its_folder_after(tmp_path, monkeypatch) -> None:
    calls = []
    sync, replace = os.fsync, type(tmp_path).replace

    def note_sync(fd: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        sync(fd)

    def note_rename(self, target):
        calls.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(type(tmp_path), "replace", note_rename)
    with AtomicFile(tmp_path / "file") as file:
        file.write(b"safe")
    assert calls == ["file", "rename", "folder"]


def test_atomic_file_of_many_in_a_folder_leaves_the_folder_to_the_caller(tmp_path, monkeypatch) -> None:
    synced = []
    sync = os.fsync

    def note(fd: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(fd).st_mode))
        sync(fd)

    monkeypatch.setattr(os, "fsync", note)
    for name in "ab":
        with AtomicFile(tmp_path / name, syncs_folder=False) as file:
            file.write(b"safe")
    sync_folder(tmp_path)
    assert synced == [False, False, True]


def test_atomic_file_that_is_closed_takes_no_more(tmp_path) -> None:
    with AtomicFile(tmp_path / "file") as file:
        assert not file.is_closed
        file.commit()
        assert file.is_closed
        with raises_with(WriteError, "closed", path=str(tmp_path / "file")):
            file.write(b"late")
    assert (tmp_path / "file").read_bytes() == b""


def test_atomic_file_continues_where_it_was_cut(tmp_path) -> None:
    with AtomicFile(tmp_path / "file") as file:
        file.write(b"keep drop")
        file.truncate(5)
        file.write(b"more")
    assert (tmp_path / "file").read_bytes() == b"keep more"


def test_atomic_file_of_megabytes_is_handed_to_the_disk_while_it_is_written(tmp_path, monkeypatch) -> None:
    handed = []
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, start, size, advice: handed.append((start, size)))
    part = bytes(10 << 20)
    with AtomicFile(tmp_path / "file") as file:
        for _ in range(5):
            file.write(part)
    assert handed == [(0, 20 << 20), (20 << 20, 20 << 20)]
    assert (tmp_path / "file").stat().st_size == 50 << 20


@pytest.mark.parametrize(
    ("number", "advice"),
    [(24, "ulimit -n"), (27, "ulimit -f"), (30, "write"), (28, "disk space")],
)
def test_write_failure_says_what_to_do_about_it(tmp_path, number, advice) -> None:
    error = write_failure(tmp_path, OSError(number, os.strerror(number)), "5 bytes left")
    assert mentions(error, f"({os.strerror(number)}; 5 bytes left)")
    assert mentions(error.advice, advice)


def test_byte_sink_passes_bytes_on_until_it_is_shut() -> None:
    written = bytearray()
    sink = ByteSink(written.extend)
    assert sink.write(b"ab") == 2
    assert sink.write(memoryview(bytes(8)).cast("q")) == 8
    sink.is_open = False
    assert sink.write(b"footer") == 6
    assert bytes(written) == b"ab" + bytes(8)
    assert sink.tell() == 16
    sink.close()
    assert sink.closed


@pytest.fixture(params=["posix_fallocate", "none"])
def reservation(request, monkeypatch):
    """With the system's way to reserve blocks, and on a system that does not offer it."""
    if request.param == "none":
        monkeypatch.delattr(os, "posix_fallocate")
    return request.param


@pytest.mark.parametrize("num_bytes", [5, 3 * (1 << 20) + 7])
def test_reserved_blocks_keep_the_content_and_end_in_zeros(num_bytes, reservation, tmp_path):
    with (tmp_path / "file").open("x+b", buffering=0) as file:
        file.write(b"abc")
        atomic.reserve_blocks(file.fileno(), num_bytes)
        assert file.tell() == 3
    assert (tmp_path / "file").read_bytes() == b"abc".ljust(num_bytes, b"\0")


def test_reserved_blocks_of_a_longer_file_leave_it_alone(reservation, tmp_path):
    with (tmp_path / "file").open("x+b", buffering=0) as file:
        file.write(b"abcdef")
        atomic.reserve_blocks(file.fileno(), 2)
    assert (tmp_path / "file").read_bytes() == b"abcdef"


def test_sync_on_macos_empties_the_cache_of_the_disk(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(atomic, "_FULL_SYNC", 51)
    monkeypatch.setattr(atomic.fcntl, "fcntl", lambda fd, request: calls.append(request))
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append("fsync"))
    atomic.sync_folder(tmp_path)
    assert calls == [51]


def test_sync_on_macos_where_the_file_system_refuses_is_plain(tmp_path, monkeypatch):
    calls = []

    def refuse(fd, request):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(atomic, "_FULL_SYNC", 51)
    monkeypatch.setattr(atomic.fcntl, "fcntl", refuse)
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append("fsync"))
    atomic.sync_folder(tmp_path)
    assert calls == ["fsync"]
