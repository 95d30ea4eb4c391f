"""List the files of a folder in an order that does not depend on the file system, and find its images.

In: a folder. Out: its files without hidden ones, in the bytewise order of their names within each folder.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath

IMAGE_SUFFIXES: Final = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp")
_OTHER_IMAGE_SUFFIXES: Final = (
    *(".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2"),
    *(".ppm", ".pgm", ".svg", ".dcm"),
)
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "__macosx")
_CHUNK_FILES: Final = 4096


class ListedFile(NamedTuple):
    """A file: its path relative to the folder, with slashes, and its size."""

    name: str
    num_bytes: int


def list_files(folder: AnyPath) -> Iterator[ListedFile]:
    """Yield the files of a folder and its subfolders.

    Of a local folder, the names of one folder per level are in memory; of a store, all names.
    """
    return _list(folder, [])


def _list(folder: AnyPath, folders: list[str]) -> Iterator[ListedFile]:
    """Yield the files of a folder, and add all folders to a list."""
    at = locate(folder)
    for entry in at.list(is_hidden, folders):
        # Without folders, some tools make an empty object for each.
        if at.has_folders or entry.num_bytes or "." in entry.name.rpartition("/")[2]:
            yield ListedFile(entry.name, entry.num_bytes)


def list_folders(folder: AnyPath) -> list[str]:
    """Return the names of the folders directly in a folder."""
    return list(locate(folder).list_folders(is_hidden))


def is_hidden(name: str) -> bool:
    """Return whether a file or a folder is left out, by the last part of its name."""
    return name.startswith(".") or name.lower() in _SYSTEM_FILES


def is_image_name(name: str) -> bool:
    """Return whether a file is named like an image."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def is_other_image_name(name: str) -> bool:
    """Return whether a file is named like an image of an unsupported format."""
    return name.lower().endswith(_OTHER_IMAGE_SUFFIXES)


class _Files:
    """Names and sizes of many files, in little more memory than their bytes."""

    def __init__(self) -> None:
        self.sizes = array("q")
        self._chunks: list[bytes] = []
        self._names: list[str] = []

    def add(self, file: ListedFile) -> None:
        """Add a file."""
        self._names.append(file.name)
        self.sizes.append(file.num_bytes)
        if len(self._names) == _CHUNK_FILES:
            self.close()

    def close(self) -> None:
        """Add the last names to the chunks."""
        if self._names:
            self._chunks.append(os.fsencode("\0".join(self._names)))
            self._names = []

    def chunks(self) -> Iterator[list[str]]:
        """Yield lists of names."""
        for chunk in self._chunks:
            yield os.fsdecode(chunk).split("\0")


class ImageNames(NamedTuple):
    """Consecutive images of a folder: their paths relative to the folder, and their sizes."""

    names: list[str]
    sizes: list[int]


class FolderListing:
    """The files of a folder, listed once.

    Attributes:
        num_images: Number of files that are named like images.
    """

    def __init__(self, folder: AnyPath) -> None:
        """List the folder."""
        self._folder = folder
        self._images, self._others = _Files(), _Files()
        self._folders: list[str] = []
        self._since_ns = time.time_ns()
        for file in _list(folder, self._folders):
            (self._images if is_image_name(file.name) else self._others).add(file)
        self._images.close()
        self._others.close()
        self.num_images = len(self._images.sizes)
        self._marks = self._mark()

    def others(self) -> Iterator[ListedFile]:
        """Yield the files that are not named like images."""
        sizes = iter(self._others.sizes)
        for names in self._others.chunks():
            for name in names:
                yield ListedFile(name, next(sizes))

    def images(self, num_rows: int) -> Iterator[ImageNames]:
        """Yield the images, `num_rows` at a time."""
        names: list[str] = []
        start = 0
        for chunk in self._images.chunks():
            names += chunk
            while len(names) >= num_rows:
                yield ImageNames(names[:num_rows], self._images.sizes[start : start + num_rows].tolist())
                del names[:num_rows]
                start += num_rows
        if names:
            yield ImageNames(names, self._images.sizes[start:].tolist())

    def find_image(self, is_wanted: Callable[[str], bool]) -> str | None:
        """Return the name of the first image that is wanted; None if there is none."""
        return next((name for names in self._images.chunks() for name in names if is_wanted(name)), None)

    def count_again(self) -> int:
        """Return the number of images that are in the folder now."""
        if self._marks is not None and self._mark() == self._marks:
            return self.num_images  # no name was added or removed
        return sum(is_image_name(file.name) for file in list_files(self._folder))

    def _mark(self) -> Sequence[str] | None:
        return locate(self._folder).mark_folders(self._folders, self._since_ns)


_shared: ContextVar[dict[str, FolderListing] | None] = ContextVar("shared listings", default=None)


@contextmanager
def share_listings() -> Iterator[None]:
    """List each folder once for all calls of `list_folder` inside."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def list_folder(folder: AnyPath) -> FolderListing:
    """Return the files of a folder."""
    known = _shared.get()
    if known is None:
        return FolderListing(folder)
    if str(folder) not in known:
        known[str(folder)] = FolderListing(folder)
    return known[str(folder)]
