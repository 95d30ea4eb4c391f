"""List the files of a folder in an order that does not depend on the file system.

In: a folder. Out: its files without hidden ones, in the bytewise order of their names within each folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from penstock.errors import PathError

FileKind: TypeAlias = Literal["csv", "jsonl", "parquet", "arrow"]

TABLE_SUFFIXES: Final[dict[str, FileKind]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
}

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp")
_OTHER_IMAGE_SUFFIXES = (".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".ppm", ".pgm", ".svg", ".dcm")
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "__macosx")


class ListedFile(NamedTuple):
    """A file: its path relative to the folder, with slashes, and its size."""

    name: str
    num_bytes: int

    @property
    def is_image(self) -> bool:
        """Whether the file is named like an image."""
        return self.name.lower().endswith(IMAGE_SUFFIXES)


def list_files(folder: str) -> Iterator[ListedFile]:
    """Yield the files of a folder and its subfolders; the names of one folder per level are in memory.

    Raises:
        PathError: A folder cannot be read, or contains a link to a folder above it.
    """
    yield from _list(folder, "", ())


def is_other_image(name: str) -> bool:
    """Return whether a file is named like an image of an unsupported format."""
    return name.lower().endswith(_OTHER_IMAGE_SUFFIXES)


def named_kind(path: Path) -> FileKind | None:
    """Return the kind of a file by its suffix, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".gzip"):
        kind = TABLE_SUFFIXES.get(suffixes[-2]) if len(suffixes) > 1 else None
        return kind if kind in ("csv", "jsonl") else None
    return TABLE_SUFFIXES.get(suffixes[-1]) if suffixes else None


def list_folders(folder: str) -> list[str]:
    """Return the names of the folders directly in a folder."""
    return [entry.name for entry in _entries(folder) if entry.is_dir()]


def _list(folder: str, prefix: str, above: tuple[str, ...]) -> Iterator[ListedFile]:
    real = os.path.realpath(folder)
    if real in above:
        raise PathError("a link leads back to a folder above it", path=folder, advice="Remove the link.")
    for entry in _entries(folder):
        if entry.is_dir():
            yield from _list(entry.path, f"{prefix}{entry.name}/", (*above, real))
            continue
        try:
            num_bytes = entry.stat().st_size
        except OSError:
            num_bytes = 0  # a broken link: opening it raises an error later
        yield ListedFile(prefix + entry.name, num_bytes)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not _is_hidden(entry.name)]
    except OSError as error:
        raise PathError(
            f"the folder cannot be read ({error.strerror})", path=folder, advice="Check its permissions."
        ) from error
    return sorted(seen, key=lambda entry: os.fsencode(entry.name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in _SYSTEM_FILES
