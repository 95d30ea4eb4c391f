"""Exchange of two folders."""

import ctypes
import errno

import pytest

from penstock.storage.atomic import exchange, restore_folder


@pytest.fixture
def folders(tmp_path):
    new, old, aside = (tmp_path / name for name in ("new", "old", "aside"))
    for folder in (new, old):
        folder.mkdir()
        (folder / "who").write_text(folder.name)
    return new, old, aside


@pytest.fixture(params=["exchanged", "renamed"])
def way(request, monkeypatch):
    """With the kernel's exchange of names, and on a system that does not offer it."""
    if request.param == "renamed":
        monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: object())
    return request.param


def test_exchange_gives_the_new_folder_the_name_of_the_old(folders, way):
    new, old, aside = folders
    exchange(new, old, aside)
    assert (old / "who").read_text() == "new"
    assert ((new if way == "exchanged" else aside) / "who").read_text() == "old"
    assert not (aside if way == "exchanged" else new).exists()


def test_exchange_of_a_missing_folder_leaves_the_old_one(folders, way, tmp_path):
    _, old, aside = folders
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "none", old, aside)
    assert (old / "who").read_text() == "old"
    assert not aside.exists()


def test_exchange_on_a_file_system_that_does_not_offer_it_renames(folders, monkeypatch):
    new, old, aside = folders

    class Library:
        def __init__(self, name, use_errno):
            pass

        def renameat2(self, *given):
            ctypes.set_errno(errno.EINVAL)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", Library)
    exchange(new, old, aside)
    assert (old / "who").read_text() == "new"
    assert (aside / "who").read_text() == "old"


def test_put_back_restores_a_folder_that_a_crash_left_aside(folders):
    _, old, aside = folders
    old.rename(aside)
    restore_folder(aside, old)
    assert (old / "who").read_text() == "old"
    restore_folder(aside, old)
    assert (old / "who").read_text() == "old"


def test_put_back_leaves_the_folder_that_has_the_name_now(folders):
    new, old, _ = folders
    restore_folder(new, old)
    assert (old / "who").read_text() == "old"
    assert (new / "who").read_text() == "new"
