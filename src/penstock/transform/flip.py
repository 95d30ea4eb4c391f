"""Random mirroring.

In: the images of a batch. Out: some of them mirrored, in place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.transform.draws import Draws


def flip(images: NDArray[np.uint8], across: float, down: float, draws: Draws) -> None:
    """Mirror each image left to right with probability `across`, and top to bottom with `down`."""
    if across or down:
        chances = draws.uniform("flip", (2,))
        _native.flip(images, chances[:, 0] < across, chances[:, 1] < down)
