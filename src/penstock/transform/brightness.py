"""Random brightness.

In: draws. Out: maps of colours that add to every channel alike.
"""

from __future__ import annotations

import numpy as np

from penstock.transform.colour import ColourMaps, scaled_maps
from penstock.transform.draws import Draws


def brightness(most: float, channels: int, draws: Draws) -> ColourMaps:
    """Make each image brighter or darker, by up to the share `most` of the whole range."""
    added = (2 * draws.uniform("brightness") - 1) * most * 255
    return scaled_maps(np.ones(len(draws)), added, channels)
