"""Changes of colour as affine maps of a pixel, so that several cost one pass and are rounded once.

In: maps (rows, channels, channels + 1), a matrix and what is added, an image each; pixels are 0 to 255. Out:
maps.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

ColourMaps: TypeAlias = NDArray[np.float64]

GREY: Final = np.array([0.299, 0.587, 0.114])
"""How bright red, green and blue are, as in JPEG."""


def scaled_maps(factors: NDArray[np.float64], added: NDArray[np.float64], channels: int) -> ColourMaps:
    """Return maps that multiply each channel, and add to it; both are (rows,)."""
    maps = np.zeros((len(factors), channels, channels + 1))
    maps[:, range(channels), range(channels)] = factors[:, None]
    maps[:, :, channels] = added[:, None]
    return maps


def combine(first: ColourMaps, second: ColourMaps) -> ColourMaps:
    """Return the maps that do what `first` does, and then what `second` does."""
    channels = first.shape[1]
    # Written out: products of matrices may be added up in any order, and so differ from machine to machine.
    maps = np.zeros_like(first)
    for inner in range(channels):
        maps += second[:, :, inner, None] * first[:, None, inner, :]
    maps[:, :, channels] += second[:, :, channels]
    return maps


def brightness_of(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how bright images are, by the means of their channels; (rows,)."""
    if means.shape[1] == 1:
        return means[:, 0]
    grey: NDArray[np.float64] = means[:, 0] * GREY[0] + means[:, 1] * GREY[1] + means[:, 2] * GREY[2]
    return grey
