"""Random saturation.

In: draws. Out: maps of colours about each pixel's own grey.
"""

from __future__ import annotations

import numpy as np

from penstock.transform.colour import GREY, ColourMaps, scaled_maps
from penstock.transform.draws import Draws


def saturation(most: float, draws: Draws) -> ColourMaps:
    """Multiply the distance of each pixel from its grey, by 1 − `most` to 1 + `most`."""
    factors = 1 + (2 * draws.uniform("saturation") - 1) * most
    maps = scaled_maps(factors, np.zeros(len(draws)), 3)
    maps[:, :, :3] += (1 - factors)[:, None, None] * GREY
    return maps
