"""Folders that are listed once."""

import os
import time

import pytest

from penstock.source import listing
from penstock.source.listing import FolderListing, list_folder, share_listings

OLD = time.time() - 1000


@pytest.fixture
def folder(tmp_path):
    for name in ("b/2.jpg", "a.png", "b/1.JPG", "b/notes.txt", "c.csv", ".x.jpg", "b.gif"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "empty").mkdir()
    set_old(tmp_path)
    return tmp_path


def set_old(folder):
    """Let the last change of all folders be long ago, so that a further change is visible."""
    for name in ("", "b", "empty"):
        os.utime(folder / name, (OLD, OLD))


def test_images_and_other_files_are_in_order_with_their_sizes(folder):
    found = FolderListing(folder)
    names, sizes = ["a.png", "b/1.JPG", "b/2.jpg", "b.gif"], [5, 7, 7, 5]
    assert found.num_images == 4
    assert list(found.images(9)) == [(names, sizes)]
    assert list(found.images(4)) == [(names, sizes)]
    assert list(found.images(3)) == [(names[:3], sizes[:3]), (names[3:], sizes[3:])]
    assert list(found.others()) == [("b/notes.txt", 11), ("c.csv", 5)]
    assert found.find_image(lambda name: "2" in name) == "b/2.jpg"
    assert found.find_image(lambda name: "9" in name) is None


def test_names_of_many_files_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "_CHUNK_FILES", 3)
    names = [f"{i:02}.jpg" for i in range(11)]
    for name in names:
        (tmp_path / name).touch()
    found = FolderListing(tmp_path)
    assert [each.names for each in found.images(4)] == [names[:4], names[4:8], names[8:]]
    assert [name for each in found.images(1) for name in each.names] == names


def test_names_that_are_no_utf8_come_back(tmp_path):
    with open(os.fsencode(tmp_path) + b"/\xff.jpg", "wb"):  # noqa: PTH123 - a name in bytes
        pass
    (images,) = FolderListing(tmp_path).images(2)
    assert [os.fsencode(name) for name in images.names] == [b"\xff.jpg"]


def test_folder_is_listed_once_where_listings_are_shared(folder, monkeypatch):
    made = []
    monkeypatch.setattr(listing, "_list", lambda *given: made.append(given[0]) or iter(()))
    with share_listings():
        first = list_folder(folder)
        assert list_folder(folder) is first
        assert list_folder(folder / "b") is not first
    assert list_folder(folder) is not first
    assert made == [folder, folder / "b", folder]


def test_unchanged_folder_is_not_listed_again(folder, monkeypatch):
    found = FolderListing(folder)
    monkeypatch.setattr(listing, "list_files", lambda _: pytest.fail("listed again"))
    assert found.count_again() == 4


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda folder: (folder / "empty" / "new.jpg").touch(), 5),
        (lambda folder: (folder / "b" / "deep").mkdir(), 4),
        (lambda folder: (folder / "b" / "2.jpg").unlink(), 3),
        (lambda folder: (folder / "notes.txt").touch(), 4),
        (lambda folder: (folder / "b").rename(folder / ".b"), 2),
    ],
)
def test_images_of_a_changed_folder_are_counted_again(folder, change, expected):
    found = FolderListing(folder)
    change(folder)
    assert found.count_again() == expected


def test_folder_that_was_changed_just_before_is_listed_again(folder):
    # A second change within the resolution of the clock would not be visible.
    (folder / "new.jpg").touch()
    found = FolderListing(folder)
    before = folder.stat()
    (folder / "newer.jpg").touch()
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found.count_again() == 6
