"""Large byte strings that stay in their files, or in the objects of a source, until their record is written.

In: sizes, hashes and digests of the values, and where they are. Out: `Deferred`, a column that only
conversion has, beside the columns of `penstock.columns`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Mask


class Deferred:
    """A column of large byte strings that are read when their record is written.

    Attributes:
        sizes: Number of bytes of each row; 0 where it is not present.
        hashes: `_native.hash_bytes` of each value, which is a part of the hash of the row.
        digests: `_native.digest_bytes` of each value, as two words: shape (rows, 2). A value that is read
            later must still have this digest.
        paths: Absolute paths of the files that hold the values; or None.
        values: The values as objects, which live as long as the source; or None.
        widths: Widths of images in pixels, 0 where unknown; None where none was read.
        heights: Heights of images in pixels, 0 where unknown; None where none was read.
        present: Which rows have a value; None if all do.
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
        missing = "" if self.present is None else f", missing={int((~self.present).sum())}"
        return f"Deferred(rows={len(self)}, bytes={int(self.sizes.sum())}{missing})"
