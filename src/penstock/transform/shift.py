"""Random crops of an image padded by its own reflection: it is moved, and keeps its size.

In: the images of a batch. Out: others of the same shape.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.transform.draws import Draws


def shift(images: NDArray[np.uint8], most: float, draws: Draws) -> NDArray[np.uint8]:
    """Move each image by up to the share `most` of each side, any way."""
    reach = np.minimum(np.rint(np.array(images.shape[1:3]) * most), np.array(images.shape[1:3]) - 1)
    offsets = np.floor(draws.uniform("crop", (2,)) * (2 * reach + 1)) - reach
    moved = _native.empty(images.shape, "uint8")
    _native.shift(images, moved, offsets.astype(np.int32))
    return moved
