"""The laws of publications, over a disk, an S3 server and the memory of this process."""

from __future__ import annotations

import errno
import gc
import pickle
import tempfile

import pytest

from memory_location import Memory, MemoryLocation
from penstock.errors import BusyError, OptionError, PathError, WriteError
from penstock.format.entry import ShardEntry
from penstock.format.index import index_name
from penstock.format.manifest import MANIFEST_NAME, Manifest, parse_manifest
from penstock.shards.staging.publication import ShardFolder
from penstock.shards.staging.staging import Staging
from penstock.storage.location import Location
from penstock.storage.paths import locate
from penstock.storage.store_path import StorePath
from staged_writing import NUM_SHARDS, frames_of, shard_names, write_manifest, write_shards

REQUEST = {"compression": "none"}


@pytest.fixture(params=["disk", "store", "memory"])
def out(request, tmp_path) -> Location:
    """The folder of a data set that does not exist yet."""
    if request.param == "disk":
        return locate(tmp_path / "pets")
    if request.param == "memory":
        return MemoryLocation(Memory(), StorePath("s3", "memory", "pets"))
    request.getfixturevalue("s3")
    return locate("s3://animals/pets")


def read_manifest(out: Location) -> Manifest:
    return parse_manifest((out / MANIFEST_NAME).read())


def list_shards(out: Location) -> dict[str, tuple[int, int]]:
    """Return the size of each shard in the manifest of a data set, and in its folder."""
    manifest = read_manifest(out)
    folder = out / manifest.folder if manifest.folder else out
    assert all((folder / index_name(each.name)).exists() for each in manifest.shards())
    return {each.name: (each.num_bytes, (folder / each.name).find_size()) for each in manifest.shards()}


def write(out: Location, compression: str = "none", *, commits: bool = True, **options: bool) -> int:
    """Write a data set, and return the number of shards that were found complete."""
    with Staging(out, **options) as staging:
        staging.begin({"compression": compression})
        staging.add_rows(12, "ab")
        known = dict(staging.journal.shards)
        entries = write_shards(staging, compression) if not known else list(known.values())
        write_manifest(staging, sorted(entries, key=lambda each: each.name), compression)
        if commits:
            staging.commit()
    return len(known)


def test_published_data_set_has_all_shards_and_nothing_is_seen_before(out):
    with Staging(out) as staging:
        staging.begin(REQUEST)
        staging.add_rows(12, "ab")
        write_manifest(staging, write_shards(staging, "none"), "none")
        assert not (out / MANIFEST_NAME).exists()
        staging.commit()
        staging.commit()  # does nothing
    shards = list_shards(out)
    assert len(shards) == NUM_SHARDS
    assert all(expected == found > 0 for expected, found in shards.values())


def test_complete_shards_of_an_unpublished_run_are_resumed(out):
    assert write(out, commits=False) == 0
    assert not (out / MANIFEST_NAME).exists()
    assert write(out, resume=True) == NUM_SHARDS
    assert len(list_shards(out)) == NUM_SHARDS


def test_complete_shards_are_not_resumed_without_being_asked(out):
    write(out, commits=False)
    assert write(out) == 0
    assert len(list_shards(out)) == NUM_SHARDS


def test_resumed_run_with_another_request_is_refused(out):
    write(out, commits=False)
    with pytest.raises(OptionError) as caught:
        write(out, "gzip", resume=True)
    assert caught.value.field == "compression"


def test_existing_data_set_is_kept_unless_it_is_overwritten(out):
    write(out)
    before = (out / MANIFEST_NAME).read()
    with pytest.raises(PathError, match="already exists"):
        Staging(out)
    write(out, "gzip", overwrite=True, commits=False)
    assert (out / MANIFEST_NAME).read() == before
    assert len(list_shards(out)) == NUM_SHARDS
    write(out, "gzip", overwrite=True)
    assert read_manifest(out).compression == "gzip"
    assert len(list_shards(out)) == NUM_SHARDS


def test_of_two_writers_one_wins_and_the_other_is_told(out):
    with Staging(out) as staging:
        staging.begin(REQUEST)
        staging.add_rows(12, "ab")
        write_manifest(staging, write_shards(staging, "none"), "none")
        if out.has_folders:
            with pytest.raises(BusyError):
                Staging(out).__enter__()
            staging.commit()
        else:
            write(out, "gzip")
            with pytest.raises(BusyError):
                staging.commit()
    assert len(list_shards(out)) == NUM_SHARDS
    assert read_manifest(out).compression == ("none" if out.has_folders else "gzip")


def test_shards_of_other_processes_are_adopted(out):
    with Staging(out) as staging:
        staging.begin(REQUEST)
        staging.add_rows(12, "ab")
        shared = staging.publication.make_shared()
        delivery = staging.make_delivery(shared)
        if not isinstance(out, MemoryLocation):  # the memory of a process stays in it
            delivery = pickle.loads(pickle.dumps(delivery))  # noqa: S301 - as a worker gets it

        def work(folder: ShardFolder) -> list[ShardEntry]:
            entries = []
            for number, name in enumerate(shard_names()):
                with folder.shard(name) as shard:
                    shard.write(*frames_of(number))
                    entries.append(folder.finish(shard))
            return entries

        new = delivery.write(work)
        entries = list(staging.adopt(shared, new))
        assert entries == new.entries
        assert list(staging.journal.shards) == [each.name for each in entries]
        write_manifest(staging, entries, "none")
        staging.commit()
    assert all(expected == found > 0 for expected, found in list_shards(out).values())


def test_closed_staging_cannot_be_committed(out):
    with Staging(out) as staging:
        staging.begin(REQUEST)
        staging.add_rows(12, "ab")
        write_manifest(staging, write_shards(staging, "none"), "none")
    with pytest.raises(WriteError, match="already closed"):
        staging.commit()
    assert not (out / MANIFEST_NAME).exists()


def test_staging_that_is_left_open_is_warned_of(out):
    staging = Staging(out).__enter__()
    with pytest.warns(ResourceWarning, match="neither committed nor closed"):
        del staging


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning", "error::ResourceWarning")
def test_disk_that_is_full_when_a_publication_to_a_store_begins_keeps_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    staging = Staging(MemoryLocation(Memory(), StorePath("s3", "memory", "pets")))
    with monkeypatch.context() as patched:
        patched.setattr("penstock.shards.staging.journal.os.ftruncate", fail)
        with pytest.raises(WriteError):
            staging.__enter__()
    assert not list(tmp_path.iterdir())
    assert not staging.publication.is_open
    del staging
    gc.collect()
