"""Columns of rows that a cache holds, their images apart.

In: rows as they come. Out: any of them, in any order. Columns of small values are joined into one; images
would take twice the memory for that, so that they stay as they came, and a column refers to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from penstock.decode.gather import column_bytes, take_columns
from penstock.types import CodedColumn, CodedColumns, Dense, Mask, Pictures


class HeldImages:
    """Images in the order in which they came, field by field.

    Attributes:
        num_loose_bytes: How large those are together that no `replace` has moved elsewhere.
    """

    def __init__(self) -> None:
        self._images: dict[str, list[NDArray[np.uint8] | None]] = {}
        self._num_moved = 0
        self.num_loose_bytes = 0

    def add(self, columns: Mapping[str, Pictures]) -> dict[str, CodedColumn]:
        """Put the images of some rows; return columns that refer to them."""
        references: dict[str, CodedColumn] = {}
        for name, column in columns.items():
            images = self._images.setdefault(name, [])
            first = len(images)
            images += column.images
            self.num_loose_bytes += column_bytes(column)
            references[name] = Dense(np.arange(first, len(images), dtype=np.int64), column.present)
        return references

    def loose(self) -> dict[str, CodedColumn]:
        """Return all images that have come since the last `replace`."""
        return {name: Pictures(images[self._num_moved :]) for name, images in self._images.items()}

    def replace(self, moved: Mapping[str, CodedColumn]) -> None:
        """Take others in the place of those that `loose` returned; more may have come since."""
        count = 0
        for name, column in moved.items():
            count = len(column)
            self._images[name][self._num_moved : self._num_moved + count] = cast("Pictures", column).images
        self._num_moved += count
        self.num_loose_bytes = sum(map(column_bytes, self.loose().values()))

    def has(self, name: str) -> bool:
        """Say whether a column is one of images."""
        return name in self._images

    def take(self, name: str, references: Dense) -> Pictures:
        """Return the images that are referred to, as they are held: nobody may change them."""
        images = self._images[name]
        return Pictures([images[at] for at in references.values.tolist()], references.present)


class Held:
    """What a cache holds at one moment.

    Attributes:
        rows: Which rows, in the order in which they came.
        columns: Of these rows, with references in the place of images.
    """

    def __init__(self, rows: NDArray[np.int64], columns: CodedColumns, images: HeldImages) -> None:
        self.rows = rows
        self.columns = columns
        self._images = images
        self._order = np.argsort(rows)
        self._rising = rows[self._order]

    def find(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Mask]:
        """Return the places of rows among those that are held, and which of them are."""
        places = np.minimum(np.searchsorted(self._rising, rows), len(self._rising) - 1)
        return self._order[places], self._rising[places] == rows

    def take(self, places: NDArray[np.int64]) -> CodedColumns:
        """Return the columns of rows by their places."""
        taken = take_columns(self.columns, places)
        return {
            name: self._images.take(name, cast("Dense", column)) if self._images.has(name) else column
            for name, column in taken.items()
        }
