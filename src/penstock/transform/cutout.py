"""Random holes.

In: the images of a batch. Out: a square of each painted over, in place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.transform.draws import Draws


def cut_out(images: NDArray[np.uint8], side: float, colour: NDArray[np.uint8], draws: Draws) -> None:
    """Paint over a square as long as the share `side` of the shorter side, its middle anywhere."""
    height, width = images.shape[1:3]
    length = round(side * min(height, width))
    if length:
        middles = np.floor(draws.uniform("cutout", (2,)) * np.array([height, width]))
        boxes = np.full((len(images), 4), length, np.int32)
        boxes[:, :2] = middles - length // 2
        _native.erase(images, boxes, colour)
