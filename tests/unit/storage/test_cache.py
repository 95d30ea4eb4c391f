"""The cache folder: where it is, that files in it are whole, and that it has a limit."""

import os
from pathlib import Path

import pytest

from penstock.storage.cache import cache_folder, cache_path, make_room, write_cached


def test_cache_folder_is_the_folder_of_the_environment_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "given"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "given"


@pytest.mark.parametrize("variable", [None, ""])
def test_cache_folder_is_in_the_users_cache_by_default(monkeypatch, tmp_path, variable):
    if variable is None:
        monkeypatch.delenv("PENSTOCK_CACHE")
    else:
        monkeypatch.setenv("PENSTOCK_CACHE", variable)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "penstock"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "penstock"


def test_cache_path_depends_on_sources_kinds_and_content(cache):
    source = Path("/data/a.tfrecord")
    paths = [
        cache_path("index", source),
        cache_path("inflated", source),
        cache_path("index", Path("/data/b.tfrecord")),
        cache_path("index", source, 1),
        cache_path("index", source, 1, 2),
        cache_path("index", source, 12),
    ]
    assert len(set(paths)) == len(paths)
    assert paths[0] == cache_path("index", source)
    assert paths[0].parent == cache / "index"


def test_cache_path_of_a_link_equals_the_path_of_its_target(cache, tmp_path):
    target = tmp_path / "a.tfrecord"
    target.touch()
    link = tmp_path / "link"
    link.symlink_to(target)
    assert cache_path("index", link) == cache_path("index", target)


def test_cache_path_of_a_name_that_is_no_text_is_made(cache):
    assert cache_path("index", Path(os.fsdecode(b"/data/\xff.tfrecord"))).parent == cache / "index"


def test_write_cached_makes_the_folder_and_the_whole_file(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    assert write_cached(path, [b"some ", b"", b"bytes"])
    assert path.read_bytes() == b"some bytes"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_write_cached_replaces_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    assert write_cached(path, [b"after"])
    assert path.read_bytes() == b"after"


def test_write_cached_where_nothing_can_be_written_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    assert not write_cached(tmp_path / "file" / "below" / "x", [b"bytes"])


def test_write_cached_onto_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    class Full:
        def __init__(self, fd):
            os.close(fd)

        def write(self, data):
            raise OSError(28, "No space left on device")

        def flush(self):
            pass

        def close(self):
            pass

    monkeypatch.setattr(os, "fdopen", lambda fd, mode: Full(fd))
    path = tmp_path / "file"
    path.write_bytes(b"before")
    assert not write_cached(path, [b"bytes"])
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [OSError("the source is gone"), ValueError("damaged")])
def test_write_cached_raises_errors_of_its_chunks_and_leaves_nothing(tmp_path, error):
    def chunks():
        yield b"some"
        raise error

    with pytest.raises(type(error), match=str(error)):
        write_cached(tmp_path / "file", chunks())
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def copies(tmp_path):
    """Four files of 100 bytes, the first used longest ago."""
    paths = [tmp_path / f"copy {i}" for i in range(4)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes(100))
        os.utime(path, (1000 + i, 5000 - i))
    return paths


@pytest.mark.parametrize(
    ("needed", "limit", "left"), [(100, 500, 4), (100, 499, 3), (100, 400, 3), (101, 400, 2), (400, 400, 0)]
)
def test_make_room_deletes_the_least_recently_used_files(tmp_path, copies, needed, limit, left):
    assert make_room(tmp_path, needed, limit)
    assert sorted(tmp_path.iterdir()) == copies[4 - left :]


def test_make_room_for_more_than_the_limit_deletes_nothing(tmp_path, copies):
    assert not make_room(tmp_path, 401, 400)
    assert sorted(tmp_path.iterdir()) == copies


def test_make_room_in_a_folder_that_does_not_exist_is_possible(tmp_path):
    assert make_room(tmp_path / "nothing", 100, 100)
