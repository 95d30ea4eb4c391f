"""Columns, the one currency between the stages: many records, field by field, as arrays.

In: nothing. Out: `Dense`, `Ragged`, `Bytes`, `Dictionary`, `Pictures`, each with an optional presence mask,
and the mapping `Columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
Kind: TypeAlias = Literal["int64", "float", "bytes"]
Payload: TypeAlias = Literal["example", "sequence_example", "other", "empty"]
Compression: TypeAlias = Literal["none", "gzip", "zlib"]


class Dense:
    """Values of one shape in every row: an array (rows, *shape).

    Where `present` is False the row holds the field's default, or zeros.
    """

    __slots__ = ("present", "values")

    def __init__(self, values: NDArray[Any], present: Mask | None = None) -> None:
        self.values = values
        self.present = present

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Dense(shape={self.values.shape}, dtype={self.values.dtype}{_mask_text(self.present)})"


class Bytes:
    """One byte string a row: row i is `arena[starts[i]:stops[i]]`.

    Short values lie one behind the other, and `offsets` (rows + 1) says where each begins. Large ones stay
    where they were read, with other bytes between them, so that they are not copied twice; `pack()` closes
    the gaps.
    """

    __slots__ = ("arena", "present", "starts", "stops")

    def __init__(
        self,
        arena: NDArray[np.uint8],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        present: Mask | None = None,
    ) -> None:
        self.arena = arena
        self.starts = starts
        self.stops = stops
        self.present = present

    @classmethod
    def from_offsets(
        cls, arena: NDArray[np.uint8], offsets: NDArray[np.int64], present: Mask | None = None
    ) -> Bytes:
        """Make a column from values that lie one behind the other; `offsets` has one entry more than rows."""
        return cls(arena, offsets[:-1], offsets[1:], present)

    @property
    def is_packed(self) -> bool:
        """Whether the values lie one behind the other from byte 0 of the arena."""
        if not len(self):
            return True
        return bool(self.starts[0] == 0 and np.array_equal(self.starts[1:], self.stops[:-1]))

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The rows + 1 boundaries of the values in `arena`.

        Raises:
            ValueError: The values do not lie one behind the other; in what `pack()` returns they do.
        """
        if not self.is_packed:
            raise ValueError("large values lie apart in the arena and have no offsets; call pack() first")
        lengths = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.stops - self.starts, out=lengths[1:])
        return lengths

    def pack(self) -> Bytes:
        """Return the same values one behind the other; self, if they are already."""
        if self.is_packed:
            return self
        pieces = [self.arena[a:b] for a, b in zip(self.starts.tolist(), self.stops.tolist(), strict=True)]
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.stops - self.starts, out=offsets[1:])
        return Bytes.from_offsets(np.concatenate(pieces), offsets, self.present)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        return self.arena[self.starts[row] : self.stops[row]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        view = self.arena.data
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            yield bytes(view[start:stop])

    def tolist(self) -> list[bytes]:
        """Return the values as Python objects."""
        return list(self)

    def __repr__(self) -> str:
        size = int((self.stops - self.starts).sum())
        return f"Bytes(rows={len(self)}, bytes={size}{_mask_text(self.present)})"


class Ragged:
    """A list a row: row i is `values[offsets[i]:offsets[i + 1]]`.

    `values` is an array, a `Bytes` for lists of strings, or another `Ragged` for lists of lists (the feature
    lists of a SequenceExample).
    """

    __slots__ = ("offsets", "present", "values")

    def __init__(
        self,
        values: NDArray[Any] | Bytes | Ragged,
        offsets: NDArray[np.int64],
        present: Mask | None = None,
    ) -> None:
        self.values = values
        self.offsets = offsets
        self.present = present

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any] | list[Any]:
        number = range(len(self))[row]  # negative ones count from the end; IndexError beyond
        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        if isinstance(self.values, np.ndarray):
            return self.values[start:stop]
        return [self.values[i] for i in range(start, stop)]

    def __repr__(self) -> str:
        return f"Ragged(rows={len(self)}, values={self.values!r}{_mask_text(self.present)})"


class Dictionary:
    """One of a few known values a row: row i is `values[codes[i]]`.

    The code is −1 where the row has none of those values, or none at all. What the values are, whoever asked
    for the codes knows: the core codes against a table that was fitted.
    """

    __slots__ = ("codes", "present", "values")

    def __init__(
        self, codes: NDArray[np.int32], values: Sequence[bytes], present: Mask | None = None
    ) -> None:
        self.codes = codes
        self.values = values
        self.present = present

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Dictionary(rows={len(self)}, values={len(self.values)}{_mask_text(self.present)})"


class Pictures:
    """One image a row: its pixels where they are held, its bytes where they are not.

    Nobody changes the pixels: a cache and any number of batches share them.

    Attributes:
        images: uint8 (height, width, channels), each of its own size; None where they are not held.
        present: Which rows have an image; None if all do.
        encoded: The images as they are stored, as many rows, where not all are held; or None.
    """

    __slots__ = ("encoded", "images", "present")

    def __init__(
        self,
        images: Sequence[NDArray[np.uint8] | None],
        present: Mask | None = None,
        encoded: Bytes | None = None,
    ) -> None:
        self.images = images
        self.present = present
        self.encoded = encoded

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Pictures(rows={len(self)}{_mask_text(self.present)})"


class Deferred:
    """A column of large byte strings that are fetched when their record is written: only conversion has such.

    Attributes:
        sizes: How many bytes each row has; 0 where it is not present.
        hashes: `_native.hash_bytes` of each value: it goes into the hash of the row.
        digests: `_native.digest_bytes` of each value, as two words: shape (rows, 2). A value that is fetched
            later must still have it.
        paths: The files that hold them, absolute; or None.
        values: The objects themselves, which live as long as the source; or None.
        widths: Of images, in pixels; 0 where that is not known.
        heights: Likewise.
        present: Which rows have one; None if all do.
    """

    __slots__ = ("digests", "hashes", "heights", "paths", "present", "sizes", "values", "widths")

    def __init__(
        self,
        sizes: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        digests: NDArray[np.uint64],
        paths: list[str] | None = None,
        values: list[bytes | memoryview] | None = None,
        pixels: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        present: Mask | None = None,
    ) -> None:
        self.sizes = sizes
        self.hashes = hashes
        self.digests = digests
        self.paths = paths
        self.values = values
        self.widths = None if pixels is None else pixels[0]
        self.heights = None if pixels is None else pixels[1]
        self.present = present

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Deferred(rows={len(self)}, bytes={int(self.sizes.sum())}{_mask_text(self.present)})"


Column: TypeAlias = Union[Dense, Bytes, Ragged]  # noqa: UP007 - classes defined above, evaluated here
Columns: TypeAlias = Mapping[str, Column]
# What a pipeline is fed with: strings may come as codes, images as pixels.
CodedColumn: TypeAlias = Union[Dense, Bytes, Ragged, Dictionary, Pictures]  # noqa: UP007
CodedColumns: TypeAlias = Mapping[str, CodedColumn]


def _mask_text(present: Mask | None) -> str:
    return "" if present is None else f", missing={int((~present).sum())}"
