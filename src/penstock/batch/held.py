"""Columns of rows that a cache holds, their images apart.

In: rows as they come. Out: any of them, in any order. Columns of small values are joined; images would take
too long to, so that they stay in the pieces in which they came, and columns refer to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.decode.gather import column_bytes, take_columns
from penstock.types import CodedColumn, CodedColumns, Dense, Mask, Pictures

_PLACE_BITS = 32
_IMAGE_DIMS = 4  # rows, height, width, channels

Pieces = dict[str, CodedColumn]


def is_of_images(column: CodedColumn) -> bool:
    """Say whether a column holds pixels."""
    return isinstance(column, Pictures) or (isinstance(column, Dense) and column.values.ndim == _IMAGE_DIMS)


class HeldImages:
    """Images in the pieces in which they came.

    Attributes:
        num_loose_bytes: How large those are together that no `settle` has moved.
    """

    def __init__(self) -> None:
        self._pieces: list[Pieces] = []
        self._num_settled = 0
        self.num_loose_bytes = 0

    def add(self, images: Mapping[str, CodedColumn]) -> Pieces:
        """Put columns of images; return columns of references to them."""
        number = len(self._pieces)
        self._pieces.append(dict(images))
        self.num_loose_bytes += sum(map(column_bytes, images.values()))
        return {name: _refer(column, number) for name, column in images.items()}

    def settle(self, move: Callable[[Pieces], Pieces]) -> None:
        """Have all that were put since the last time moved elsewhere, together."""
        loose = self._pieces[self._num_settled :]
        together = {f"{i} {name}": column for i, piece in enumerate(loose) for name, column in piece.items()}
        moved = move(together)
        for i, piece in enumerate(loose):
            self._pieces[self._num_settled + i] = {name: moved[f"{i} {name}"] for name in piece}
        self._num_settled = len(self._pieces)
        self.num_loose_bytes = 0

    def has(self, name: str) -> bool:
        """Say whether a column is one of images."""
        return bool(self._pieces) and name in self._pieces[0]

    def take(self, name: str, references: Dense) -> CodedColumn:
        """Return the images that are referred to: pixels of one size as a copy, others as they are held."""
        numbers = (references.values >> _PLACE_BITS).tolist()
        places = (references.values & ((1 << _PLACE_BITS) - 1)).tolist()
        first = self._pieces[0][name]
        if isinstance(first, Pictures):
            held = [self._pieces[i][name].images[at] for i, at in zip(numbers, places, strict=True)]
            return Pictures(held, references.present)
        sample = cast("Dense", first).values
        out = _native.empty((len(numbers), *sample.shape[1:]), sample.dtype.name)
        for row, (number, at) in enumerate(zip(numbers, places, strict=True)):
            out[row] = cast("Dense", self._pieces[number][name]).values[at]
        return Dense(out, references.present)


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


def _refer(column: CodedColumn, number: int) -> Dense:
    return Dense((np.int64(number) << _PLACE_BITS) + np.arange(len(column), dtype=np.int64), column.present)
