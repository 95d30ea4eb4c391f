"""List the files of a folder in an order that does not depend on the file system.

In: a folder. Out: its files without hidden ones, in the bytewise order of their names within each folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath

_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "__macosx")


class ListedFile(NamedTuple):
    """A file: its path relative to the folder, with slashes, and its size."""

    name: str
    num_bytes: int


def list_files(folder: AnyPath) -> Iterator[ListedFile]:
    """Yield the files of a folder and its subfolders.

    Of a local folder, the names of one folder per level are in memory; of a store, all names.
    """
    at = locate(folder)
    for entry in at.list(is_hidden):
        # Without folders, some tools make an empty object for each.
        if at.has_folders or entry.num_bytes or "." in entry.name.rpartition("/")[2]:
            yield ListedFile(entry.name, entry.num_bytes)


def list_folders(folder: AnyPath) -> list[str]:
    """Return the names of the folders directly in a folder."""
    return list(locate(folder).list_folders(is_hidden))


def is_hidden(name: str) -> bool:
    """Return whether a file or a folder is left out, by the last part of its name."""
    return name.startswith(".") or name.lower() in _SYSTEM_FILES
