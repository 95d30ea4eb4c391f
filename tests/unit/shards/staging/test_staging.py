"""The hidden folder that becomes the data set: all of it or nothing, and complete shards are kept."""

import ctypes
import errno
import os
import shutil
import stat

import pytest

from penstock.errors import BusyError, OptionError, PathError, WriteError
from penstock.shards.staging import publication_disk as module
from penstock.shards.staging.journal import Journal
from penstock.shards.staging.staging import Staging
from raising import containing, raises_with
from staged_writing import NUM_SHARDS, fingerprint, shard_names, write_manifest, write_shards, write_staged


@pytest.fixture
def out(tmp_path):
    return tmp_path / "pets"


@pytest.fixture
def hidden(tmp_path):
    return tmp_path / ".pets.partial"


def stop_after_shards(out, **options) -> None:
    """Write all shards, and fail then."""
    with pytest.raises(KeyboardInterrupt), Staging(out, **options) as staging:  # noqa: PT012
        staging.begin({"compression": "none"})
        write_shards(staging, "none")
        raise KeyboardInterrupt


def test_staging_committed_is_the_data_set_and_leaves_nothing_else(out, tmp_path):
    write_staged(out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets"]
    assert len(fingerprint(out)) == 3 * NUM_SHARDS + 1
    assert "penstock.json" in fingerprint(out)


def test_staging_is_not_seen_before_it_is_committed(out, hidden):
    with Staging(out) as staging:
        staging.begin({})
        entries = write_shards(staging, "none")
        write_manifest(staging, entries, "none")
        assert not out.exists()
        assert staging.folder == hidden / "data"
        staging.commit()
        assert out.exists()
        assert not hidden.exists()


def test_staging_makes_the_folders_above(tmp_path):
    write_staged(tmp_path / "a" / "b" / "pets")
    assert (tmp_path / "a" / "b" / "pets" / "penstock.json").exists()


def test_staging_replaces_an_empty_folder_and_keeps_its_permissions(out):
    out.mkdir(mode=0o700)
    write_staged(out)
    assert (out / "penstock.json").exists()
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_staging_through_a_link_writes_to_its_target(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    write_staged(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "penstock.json").exists()


def test_staging_of_an_existing_data_set_is_refused_before_any_work(out, tmp_path):
    write_staged(out)
    before = fingerprint(tmp_path)
    with raises_with(PathError, "overwrite=True"):
        Staging(out)
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("offers_exchange", [True, False])
def test_staging_with_overwrite_keeps_the_old_one_until_the_new_is_complete(
    out, tmp_path, monkeypatch, offers_exchange
):
    if not offers_exchange:
        monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: object())
    write_staged(out)
    before = fingerprint(out)

    def look() -> None:
        assert fingerprint(out) == before

    write_staged(out, overwrite=True, compression="gzip", wait=look)
    assert fingerprint(out) != before
    assert len(fingerprint(out)) == 2 * NUM_SHARDS + 1
    assert [path.name for path in tmp_path.iterdir()] == ["pets"]


def test_staging_whose_folder_appears_meanwhile_is_refused_and_can_be_resumed(out):
    def take() -> None:
        out.mkdir()
        (out / "mine").write_text("mine")

    with raises_with(PathError, "'mine'"):
        write_staged(out, wait=take)
    assert (out / "mine").read_text() == "mine"
    shutil.rmtree(out)
    write_staged(out, resume=True)
    assert (out / "penstock.json").exists()


def test_staging_that_was_not_committed_is_no_data_set(out, tmp_path):
    with Staging(out) as staging:
        staging.begin({})
        staging.write("penstock.json", b"{}")
    assert list(tmp_path.iterdir()) == []
    with raises_with(WriteError, "closed", path=str(out)):
        staging.commit()


def test_staging_after_an_error_keeps_complete_shards_and_nothing_else(out, hidden):
    with pytest.raises(ZeroDivisionError), Staging(out) as staging:  # noqa: PT012
        staging.begin({})
        (staging.scratch / "rows").write_bytes(b"spilled")
        entry, *_ = write_shards(staging, "none")
        staging.shard("test-00000-of-00001.tfrecord")
        staging.write("features.json", b"{}")
        1 / 0  # noqa: B018
    names = {name for name in fingerprint(hidden) if "tfrecord" not in name and "tfindex" not in name}
    assert names == {"journal.jsonl"}
    assert sorted(path.name for path in (hidden / "data").glob("*.tfrecord")) == shard_names()
    assert entry.name in shard_names()


def test_staging_after_an_error_without_a_shard_keeps_only_the_journal_of_the_failure(out, hidden):
    with pytest.raises(ValueError, match="row"), Staging(out) as staging:  # noqa: PT012
        staging.begin({})
        error = ValueError("no such row")
        staging.journal.add_failure(17, error)
        raise error
    assert list(fingerprint(hidden)) == ["journal.jsonl"]
    journal = Journal(hidden, resume=True)
    assert (journal.failure.row, journal.failure.error) == (17, "ValueError: no such row")
    journal.close()


def test_staging_resumed_keeps_complete_shards(out, hidden, monkeypatch):
    write_staged(out)
    undisturbed = fingerprint(out)
    shutil.rmtree(out)
    stop_after_shards(out)
    inodes = {path.name: path.stat().st_ino for path in (hidden / "data").glob("*.tfrecord")}
    write_staged(out, resume=True)
    assert fingerprint(out) == undisturbed
    assert {path.name: path.stat().st_ino for path in out.glob("*.tfrecord")} == inodes


@pytest.mark.parametrize("name", [shard_names()[1], "index", shard_names()[1].replace("tfrecord", "tfindex")])
def test_staging_resumed_writes_damaged_shards_again(out, hidden, name):
    write_staged(out)
    undisturbed = fingerprint(out)
    shutil.rmtree(out)
    stop_after_shards(out)
    if name == "index":
        shutil.rmtree(hidden / "data" / name)
    else:
        path = hidden / "data" / name
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    with Staging(out, resume=True) as staging:
        assert list(staging.journal.shards) == ([] if name == "index" else [shard_names()[0]])
    write_staged(out, resume=True)
    assert fingerprint(out) == undisturbed


def test_staging_resumed_with_nothing_to_resume_begins(out):
    write_staged(out, resume=True)
    assert (out / "penstock.json").exists()


def test_staging_not_resumed_starts_from_the_beginning(out, hidden):
    stop_after_shards(out)
    with Staging(out) as staging:
        assert staging.journal.shards == {}
        assert list(staging.folder.iterdir()) == []
    assert not hidden.exists()


def test_staging_resumed_for_another_request_is_refused_and_keeps_the_files(out, hidden):
    stop_after_shards(out)
    before = fingerprint(hidden)
    with raises_with(OptionError, ".pets.partial", field="compression", expected="'none'"):
        write_staged(out, resume=True, compression="gzip")
    assert fingerprint(hidden) == before
    write_staged(out, resume=True)


def test_staging_of_a_second_writer_is_refused_and_disturbs_nothing(out):
    with Staging(out) as staging:
        staging.begin({})
        entries = write_shards(staging, "none")
        with raises_with(BusyError, f"process {os.getpid()}"):
            Staging(out, resume=True).__enter__()
        with raises_with(BusyError, f"process {os.getpid()}"):
            Staging(out).__enter__()
        write_manifest(staging, entries, "none")
        staging.commit()
    assert (out / "penstock.json").exists()


def test_staging_that_was_not_closed_warns_and_releases_the_folder(out, hidden):
    staging = Staging(out).__enter__()
    staging.begin({})
    with pytest.warns(ResourceWarning, match="pets"):
        del staging
    assert not hidden.exists()
    assert not out.exists()


def test_staging_committed_and_closed_twice_does_nothing_more(out):
    with Staging(out) as staging:
        staging.begin({})
        write_manifest(staging, write_shards(staging, "none"), "none")
        staging.commit()
        staging.commit()
        staging.close()
    assert (out / "penstock.json").exists()


@pytest.mark.parametrize("kind", ["file", "link", "foreign"])
def test_staging_with_a_hidden_folder_of_another_program_is_refused(out, hidden, tmp_path, kind):
    if kind == "file":
        hidden.write_text("mine")
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir()
        hidden.symlink_to(tmp_path / "elsewhere")
    else:
        hidden.mkdir()
        (hidden / "diary").write_text("mine")
    before = fingerprint(tmp_path)
    expected = "folder" if kind != "foreign" else "'diary'"
    with raises_with(PathError, f".pets.partial {expected}"):
        Staging(out).__enter__()
    assert fingerprint(tmp_path) == before


def test_staging_puts_back_a_data_set_that_a_crash_left_without_its_name(out, hidden):
    write_staged(out)
    before = fingerprint(out)
    hidden.mkdir()
    out.rename(hidden / "old")
    with raises_with(PathError, advice=containing("overwrite=True")):
        Staging(out).__enter__()
    assert fingerprint(out) == before
    assert not hidden.exists()


def test_staging_whose_rename_fails_can_be_resumed(out, hidden, monkeypatch):
    def fail(folder) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(module, "_sync_tree", fail)
        with raises_with(WriteError, "Input/output"):
            write_staged(out)
    assert not out.exists()
    assert sorted(path.name for path in (hidden / "data").glob("*.tfrecord")) == shard_names()
    write_staged(out, resume=True)
    assert (out / "penstock.json").exists()
