"""Folders as sources: tables, a table with the files that it names, or images in class folders.

In: a folder. Out: a source, or an error that names the files that do not match.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import ChangedFileError, SourceError
from penstock.foundation.wording import count
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.schema.scalar import MAX_CATEGORIES, Bytes, Category, Image
from penstock.settings.groups import TextFiles
from penstock.source.block import BLOCK_ROWS, Block, RawColumn, Source
from penstock.source.files import FilesSource
from penstock.source.listing import (
    IMAGE_SUFFIXES,
    ImageNames,
    is_hidden,
    is_image_name,
    is_other_image_name,
    list_files,
    list_folder,
    list_folders,
)
from penstock.source.recognition import is_table_name, is_tar_name
from penstock.storage.paths import locate, write_name
from penstock.storage.store_path import AnyPath, name_folder

_SPLITS = {"train", "training", "validation", "valid", "val", "dev", "eval", "test", "testing"}


class ImageFolderSource:
    """Images in class folders: columns `image` and `label`.

    Folders inside a class folder belong to the class. If the class folders are inside folders named like
    splits (`train/cat/1.jpg`), there is a column `split`; without class folders there is no column `label`.
    """

    is_repeatable = True

    def __init__(self, folder: AnyPath, num_others: int = 0) -> None:
        """List the images.

        `num_others`: number of other files in the folder, which are ignored.
        """
        self.name = name_folder(folder)
        self._folder = folder
        self._listing = list_folder(folder)
        self._num_others = num_others
        self._columns = self._find_levels()
        self.num_rows: int | None
        self.num_bytes: int | None
        classes = self._survey()
        self.declared: Mapping[str, Field] = {"image": Image()}
        self.forms: Mapping[str, Representation] = {"image": "path"}
        if "label" in self._columns:
            values = tuple(classes) if len(classes) <= MAX_CATEGORIES else None
            self.declared = {**self.declared, "label": Category(values=values, role="target")}

    def blocks(self) -> Iterator[Block]:
        """Yield the paths, class by class."""
        first_row = 0
        for listed in self._listing.images(BLOCK_ROWS):
            columns = {name: _make_column(name, i, listed) for i, name in enumerate(self._columns)}
            num_rows, num_bytes = len(listed.names), sum(listed.sizes)
            yield Block(first_row, num_rows, columns, folder=str(self._folder), num_bytes=num_bytes)
            first_row += num_rows
        if self._listing.count_again() != self.num_rows:
            raise ChangedFileError(
                "files were added or removed while the folder was read",
                path=self._folder,
                expected=f"{self.num_rows} images",
                got="another number",
                advice="Convert the folder when no program writes to it.",
            )

    def provenance(self) -> list[dict[str, Any]]:
        """Return the number of images and a hash of names and sizes; hashing content takes too long."""
        return [
            {
                "name": write_name(self.name),
                "kind": "image folder",
                "bytes": self.num_bytes,
                "rows": self.num_rows,
                "listing_sha256": self._listing_digest,
            }
        ]

    def _find_levels(self) -> tuple[str, ...]:
        """Return the column names: "image" is the last part of each path, after "split" and "label"."""
        top = list_folders(self._folder)
        if not top:
            return ("image",)
        if all(name.lower() in _SPLITS and list_folders(self._folder / name) for name in top):
            return ("split", "label", "image")
        return ("label", "image")

    def _survey(self) -> list[str]:
        depth = len(self._columns) - 1
        counts: Counter[str] = Counter()
        digest = hashlib.sha256()
        self.num_bytes = 0
        for listed in self._listing.images(BLOCK_ROWS):
            self._check_names(listed.names, depth)
            lines = zip(listed.names, listed.sizes, strict=True)
            digest.update(b"".join([b"%b\0%d\n" % (name.encode(), size) for name, size in lines]))
            self.num_bytes += sum(listed.sizes)
            if depth:
                counts.update(_take_level(listed.names, depth - 1))
        if not self._listing.num_images:
            raise SourceError("no rows", path=self._folder, expected="images", got="an empty folder")
        self.num_rows = self._listing.num_images
        self._listing_digest = digest.hexdigest()
        self.notes = self._find_notes(counts)
        return list(counts)

    def _check_names(self, names: list[str], depth: int) -> None:
        """Check that names are UTF-8, and that the images are in class folders."""
        try:
            "".join(names).encode()
            is_fine = all(name.count("/") >= depth for name in names)
        except UnicodeEncodeError:
            is_fine = False
        for name in () if is_fine else names:
            self._check_name(name, name.count("/") >= depth)

    def _check_name(self, name: str, is_deep_enough: bool) -> None:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise SourceError(
                "name of an image", path=self._folder, expected="UTF-8", got=repr(os.fsencode(name))
            ) from None
        if not is_deep_enough:
            raise SourceError(
                f"{name!r} is outside the class folders",
                path=self._folder,
                expected="every image in the folder of its class",
                got="an image without a class",
                advice="Move it into a class folder, or list the images in a metadata.csv.",
            )

    def _find_notes(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        notes = []
        if self._num_others:
            notes.append(f"{count(self._num_others, 'file')} in the folder ignored: not named like an image.")
        if self._columns[0] == "split":
            notes.append(
                "The outer folders are named like splits and become the column 'split'. "
                "Use `split_by='split'` to keep these splits; otherwise all rows are split again."
            )
        if self._columns[-2:] == ("label", "image"):
            outer = list_folders(self._folder) if "split" in self._columns else [""]
            found = {
                name for part in outer for name in list_folders(self._folder / part if part else self._folder)
            }
            empty = sorted(found - counts.keys(), key=os.fsencode)
            notes += [f"The class folder {name!r} contains no images." for name in empty]
        return tuple(notes)


def _make_column(name: str, level: int, listed: ImageNames) -> RawColumn:
    values = listed.names if name == "image" else _take_level(listed.names, level)
    return pa.array(values, pa.large_string())


def _take_level(names: list[str], level: int) -> list[str]:
    """Return one part of each path."""
    return [name.split("/", level + 1)[level] for name in names]


_NUM_PROBED = 64  # values of a column that are checked against the folder
_NUM_NAMED = 3  # files that an error names


def open_folder(folder: AnyPath, options: TextFiles) -> Source:
    """Open a folder as tables, as a table with the files that it names, or as images by class."""
    tables, others, num_others, num_images = _survey(folder)
    metadata = [path for path in tables if path.name.split(".")[0].lower() == "metadata"]
    if metadata:
        tables = metadata
    if tables and not metadata and not num_images and not num_others:
        return FilesSource(tables, options, name_folder(folder))
    if len(tables) == 1:
        return AnnotatedFolderSource(tables[0], options)
    if tables:
        raise SourceError(
            "several tables and other files in the folder",
            path=folder,
            expected="one table that names the files",
            got=", ".join(path.name for path in tables[:_NUM_NAMED]),
            advice=f"Pass the path of one table: '{tables[0]}'.",
        )
    is_image_folder = num_images >= num_others and not any(map(is_other_image_name, others))
    if not is_image_folder:
        raise SourceError(
            "files in the folder",
            path=folder,
            expected=f"tables, or images ({' '.join(IMAGE_SUFFIXES)})",
            got=f"{count(num_others, 'other file')}: {', '.join(others)}{', …' * (num_others > len(others))}",
            advice="Move the other files away, or pass the paths of the files to convert.",
        )
    return ImageFolderSource(folder, num_others)


def find_tables(folder: AnyPath) -> list[AnyPath]:
    """Return the tables directly in a folder."""
    return _survey(folder)[0]


def _survey(folder: AnyPath) -> tuple[list[AnyPath], list[str], int, int]:
    """Return the tables, some other files, and the numbers of other files and of images.

    Tar archives are data only without tables and images: beside them, they may hold copies of the files.
    """
    tables: list[AnyPath] = []
    archives: list[AnyPath] = []
    others: list[str] = []
    num_others = 0
    listing = list_folder(folder)
    num_images = listing.num_images
    for file in listing.others():
        path = folder / file.name
        if "/" not in file.name and is_table_name(path.name):
            (archives if is_tar_name(path.name) else tables).append(path)
        else:
            num_others += 1
            # Images of unsupported formats are named first: ignoring them would lose samples.
            if is_other_image_name(file.name) and not any(map(is_other_image_name, others)):
                others = [file.name, *others[: _NUM_NAMED - 1]]
            elif len(others) < _NUM_NAMED:
                others.append(file.name)
    if not tables and not num_images:
        return archives, others, num_others, num_images
    others += [path.name for path in archives[: _NUM_NAMED - len(others)]]
    return tables, others, num_others + len(archives), num_images


class AnnotatedFolderSource(FilesSource):
    """A table in the folder of the files that it names; files that it does not name are counted."""

    def __init__(self, table: AnyPath, options: TextFiles) -> None:
        """Find the columns that name files."""
        super().__init__([table], options)
        self._folder = table.parent
        self._table = table
        self._unnamed: int | None = None
        block = next(super().blocks())
        self.declared, self.forms = _find_paths(block.columns, self._folder)
        if not self.declared:
            raise SourceError(
                "columns",
                path=table,
                expected="a column that names the files in the folder",
                got=", ".join(map(repr, list(block.columns)[:8])),
                advice="Write paths relative to the folder, or pass only the path of the table.",
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the header, and the number of files that the table does not name."""
        if not self._unnamed:
            return super().notes
        files = f"{count(self._unnamed, 'file')} in the folder"
        return (*super().notes, f"{self._table.name} does not name {files}.")

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of the table."""
        named: list[NDArray[np.int64]] = []
        for block in super().blocks():
            named += [_hash_names(block.columns[name], self._folder) for name in self.declared]
            yield block
        known = np.unique(np.concatenate(named))
        files = (file.name for file in list_files(self._folder) if file.name != self._table.name)
        self._unnamed = sum(_count_unknown(batch, known) for batch in _batches(files, 1 << 16))


def _find_paths(
    columns: Mapping[str, RawColumn], folder: AnyPath
) -> tuple[dict[str, Field], dict[str, Representation]]:
    probed = {
        name: [value for value in column.drop_null()[:_NUM_PROBED].to_pylist() if value]
        for name, column in columns.items()
        if isinstance(column, pa.Array) and _is_text(column.type)
    }
    existing = locate(folder).find_existing(
        {value for values in probed.values() for value in values}, is_hidden
    )
    declared: dict[str, Field] = {}
    for name, values in probed.items():
        found = [value for value in values if value in existing]
        if 2 * len(found) > len(values):
            is_image = all(map(is_image_name, found))
            declared[name] = Image() if is_image else Bytes()
    return declared, dict.fromkeys(declared, "path")


def _is_text(given: pa.DataType) -> bool:
    return pa.types.is_string(given) or pa.types.is_large_string(given)


def _hash_names(column: Any, folder: AnyPath) -> NDArray[np.int64]:
    """Return one hash per name: all names may not fit into memory, but eight bytes for each do."""
    prefix = f"{folder}/"
    names = (name.removeprefix(prefix) for name in column.to_pylist() if name)
    return np.fromiter((hash(posixpath.normpath(name)) for name in names), np.int64)


def _count_unknown(names: list[str], known: NDArray[np.int64]) -> int:
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    return int(np.isin(hashes, known, invert=True).sum())


def _batches(names: Iterator[str], size: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for name in names:
        batch.append(name)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
