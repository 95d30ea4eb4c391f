"""List the files of a folder in an order that does not depend on the file system.

In: a folder. Out: its files without hidden ones, in the bytewise order of their names within each folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from penstock.errors import PathError, importing
from penstock.storage.store_path import AnyPath, StorePath

FileKind: TypeAlias = Literal["csv", "jsonl", "parquet", "arrow", "excel"]

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
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
PACKED_SUFFIXES: Final = (".zip", ".bz2", ".xz")
"""Suffixes of files that hold a table and are unpacked before it is read."""

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp")
_OTHER_IMAGE_SUFFIXES = (".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".ppm", ".pgm", ".svg", ".dcm")
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "__macosx")


DUCKDB_SCHEME: Final = "duckdb://"


def is_duckdb_url(given: object) -> bool:
    """Return whether data is the URL of a table or query of a DuckDB file."""
    return isinstance(given, str) and given.lower().startswith(DUCKDB_SCHEME)


class ListedFile(NamedTuple):
    """A file: its path relative to the folder, with slashes, and its size."""

    name: str
    num_bytes: int

    @property
    def is_image(self) -> bool:
        """Whether the file is named like an image."""
        return self.name.lower().endswith(IMAGE_SUFFIXES)


def list_files(folder: AnyPath) -> Iterator[ListedFile]:
    """Yield the files of a folder and its subfolders.

    Of a local folder, the names of one folder per level are in memory; of a store, all names.

    Raises:
        PathError: A folder cannot be read, or contains a link to a folder above it.
        StoreError: The store does not answer, or refuses.
    """
    if isinstance(folder, StorePath):
        yield from _list_store(folder)
    else:
        yield from _list(str(folder), "", ())


def is_other_image(name: str) -> bool:
    """Return whether a file is named like an image of an unsupported format."""
    return name.lower().endswith(_OTHER_IMAGE_SUFFIXES)


def named_kind(path: AnyPath) -> FileKind | None:
    """Return the kind of a file by its suffix, or None."""
    suffixes = [suffix.lower() for suffix in Path(path.name).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".gzip"):
        kind = TABLE_SUFFIXES.get(suffixes[-2]) if len(suffixes) > 1 else None
        return kind if kind in ("csv", "jsonl") else None
    return TABLE_SUFFIXES.get(suffixes[-1]) if suffixes else None


def is_table_name(name: str) -> bool:
    """Return whether a file is named like a table, plain or with gzip."""
    return named_kind(Path(name)) is not None


def is_packed_name(name: str) -> bool:
    """Return whether a file is named like a compressed table or an archive."""
    path = Path(name)
    suffix = path.suffix.lower()
    return suffix == ".zip" or (
        suffix in PACKED_SUFFIXES and TABLE_SUFFIXES.get(Path(path.stem).suffix.lower()) is not None
    )


def list_folders(folder: AnyPath) -> list[str]:
    """Return the names of the folders directly in a folder."""
    if isinstance(folder, StorePath):
        with importing(f"{folder.scheme}://", "cloud"):
            from penstock.storage.object_store import list_prefixes  # noqa: PLC0415 - with obstore

        return sorted((name for name in list_prefixes(folder) if not _is_hidden(name)), key=os.fsencode)
    return [entry.name for entry in _entries(str(folder)) if entry.is_dir()]


def _list_store(folder: StorePath) -> list[ListedFile]:
    """Return the objects below a folder, in the order of a local folder with the same files."""
    with importing(f"{folder.scheme}://", "cloud"):
        from penstock.storage.object_store import list_objects  # noqa: PLC0415 - with obstore

    found = [(each.path.relative_to(folder).split("/"), each.num_bytes) for each in list_objects(folder)]
    files = [
        (parts, num_bytes)
        for parts, num_bytes in found
        # Some tools make an empty object for each folder.
        if not any(map(_is_hidden, parts)) and (num_bytes or "." in parts[-1])
    ]
    files.sort(key=lambda file: [os.fsencode(part) for part in file[0]])
    return [ListedFile("/".join(parts), num_bytes) for parts, num_bytes in files]


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
