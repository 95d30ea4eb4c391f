"""Random contrast.

In: draws, and how bright the images are. Out: maps of colours about that brightness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.transform.colour import ColourMaps, scaled_maps
from penstock.transform.draws import Draws


def contrast(most: float, channels: int, middles: NDArray[np.float64], draws: Draws) -> ColourMaps:
    """Multiply the distance of each pixel from its image's mean brightness, by 1 − `most` to 1 + `most`."""
    factors = 1 + (2 * draws.uniform("contrast") - 1) * most
    return scaled_maps(factors, (1 - factors) * middles, channels)
