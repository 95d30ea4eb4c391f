"""A folder of images: one sub-folder a class, or none at all.

In: a folder. Out: blocks of paths, relative to it, with the class as label. No image is opened.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import ChangedFileError, SourceError
from penstock.foundation.wording import count
from penstock.schema.field import Field
from penstock.schema.scalar import MAX_CATEGORIES, Category, Image
from penstock.source.block import BLOCK_ROWS, Block, Form, RawColumn
from penstock.source.listing import ListedFile, list_files, list_folders
from penstock.storage.paths import write_name

_SPLITS = {"train", "training", "validation", "valid", "val", "dev", "eval", "test", "testing"}


class ImageFolderSource:
    """Images in class folders: columns `image` and `label`.

    Folders inside a class folder belong to the class. Where the class folders are inside folders that are
    called like splits (`train/cat/1.jpg`), there is a column `split`; where there are no folders, no `label`.
    """

    is_repeatable = True

    def __init__(self, folder: Path, num_others: int = 0) -> None:
        """List the images.

        Args:
            folder: Where they are.
            num_others: How many other files are there, which are left out.

        Raises:
            SourceError: There are images beside the class folders, or none at all.
        """
        self.name = folder.resolve().name
        self._folder = folder
        self._num_others = num_others
        self._columns = self._find_levels()
        self._block_bytes: list[int] = []
        classes = self._survey()
        self.num_rows: int | None
        self.num_bytes: int | None = sum(self._block_bytes)
        self.declared: Mapping[str, Field] = {"image": Image()}
        self.forms: Mapping[str, Form] = {"image": "path"}
        if "label" in self._columns:
            values = tuple(classes) if len(classes) <= MAX_CATEGORIES else None
            self.declared = {**self.declared, "label": Category(values=values, role="target")}

    def blocks(self) -> Iterator[Block]:
        """Yield the paths, class by class.

        Raises:
            ChangedFileError: Files have come or gone since the folder was listed.
        """
        files = self._list_images()
        first_row = 0
        for num_bytes in self._block_bytes:
            listed = list(islice(files, BLOCK_ROWS))
            columns = {name: _make_column(name, i, listed) for i, name in enumerate(self._columns)}
            yield Block(first_row, len(listed), columns, folder=str(self._folder), num_bytes=num_bytes)
            first_row += len(listed)
        if first_row != self.num_rows or next(files, None) is not None:
            raise ChangedFileError(
                "files have come or gone since the folder was listed",
                path=self._folder,
                expected=f"{self.num_rows} images",
                got="another number",
                advice="Convert it once nobody writes to it.",
            )

    def provenance(self) -> list[dict[str, Any]]:
        """Return how many images, and a hash of their names and sizes; their bytes would take too long."""
        return [
            {
                "name": write_name(self.name),
                "kind": "image folder",
                "bytes": self.num_bytes,
                "rows": self.num_rows,
                "listing_sha256": self._listing,
            }
        ]

    def _find_levels(self) -> tuple[str, ...]:
        """Name the columns: "split" and "label" are the first parts of each path, the last is the image."""
        top = list_folders(str(self._folder))
        if not top:
            return ("image",)
        if all(name.lower() in _SPLITS and list_folders(str(self._folder / name)) for name in top):
            return ("split", "label", "image")
        return ("label", "image")

    def _list_images(self) -> Iterator[ListedFile]:
        return (file for file in list_files(str(self._folder)) if file.is_image)

    def _survey(self) -> list[str]:
        depth = len(self._columns) - 1
        counts: dict[str, int] = {}
        listing = hashlib.sha256()
        num_rows = 0
        for file in self._list_images():
            parts = file.name.split("/")
            self._check_file(file, len(parts) > depth)
            listing.update(os.fsencode(file.name) + b"\0%d\n" % file.num_bytes)
            if num_rows % BLOCK_ROWS == 0:
                self._block_bytes.append(0)
            self._block_bytes[-1] += file.num_bytes
            num_rows += 1
            if depth:
                counts[parts[depth - 1]] = counts.get(parts[depth - 1], 0) + 1
        if not num_rows:
            raise SourceError("no rows", path=self._folder, expected="images", got="an empty folder")
        self.num_rows = num_rows
        self._listing = listing.hexdigest()
        self.notes = self._find_notes(counts)
        return list(counts)

    def _check_file(self, file: ListedFile, is_deep_enough: bool) -> None:
        try:
            file.name.encode()
        except UnicodeEncodeError:
            raise SourceError(
                "name of an image", path=self._folder, expected="UTF-8", got=repr(os.fsencode(file.name))
            ) from None
        if not is_deep_enough:
            raise SourceError(
                f"{file.name!r} lies beside the class folders",
                path=self._folder,
                expected="every image in the folder of its class",
                got="an image without a class",
                advice="Move it into one, or list the images in a metadata.csv.",
            )

    def _find_notes(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        notes = []
        if self._num_others:
            notes.append(f"{count(self._num_others, 'file')} in the folder left out: no image by name.")
        if self._columns[0] == "split":
            notes.append(
                "The outer folders are called like splits: they are the column 'split'. "
                "To keep these splits, say '--split-by split'; else all rows are split anew."
            )
        if self._columns[-2:] == ("label", "image"):
            outer = list_folders(str(self._folder)) if "split" in self._columns else [""]
            found = {name for part in outer for name in list_folders(str(self._folder / part))}
            empty = sorted(found - counts.keys(), key=os.fsencode)
            notes += [f"The class folder {name!r} holds no image." for name in empty]
        return tuple(notes)


def _make_column(name: str, level: int, listed: list[ListedFile]) -> RawColumn:
    if name == "image":
        return pa.array([file.name for file in listed], pa.large_string())
    return pa.array([file.name.split("/", level + 1)[level] for file in listed], pa.large_string())
