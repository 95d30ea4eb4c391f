"""Pictures by OpenCV, for the contestants that bring no decoder of their own.

In: the bytes of a file. Out: pixels in a given place. "linear" aliases, "area" does not; "half" decodes at
half the size before it; "crops" takes a random part; "plain" does not resize.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np

from imagefeeds.task import CROP_AREA, CROP_ASPECT, Task

NUM_ATTEMPTS = 10
INTERPOLATIONS = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA, "half": cv2.INTER_AREA}
# Its own threads would come on top of those that call it.
cv2.setNumThreads(1)


def decode_into(task: Task, data: Any, out: Any, rng: np.random.Generator | None = None) -> None:
    """Decode a picture, resize it, and put it where it belongs."""
    mode = cv2.IMREAD_REDUCED_COLOR_2 if task.variant == "half" else cv2.IMREAD_COLOR_RGB
    pixels = cv2.imdecode(data, mode)
    if task.variant == "plain":
        out[...] = pixels
        return
    if task.is_cropped:
        top, left, height, width = draw_box(rng or np.random.default_rng(), *pixels.shape[:2])
        pixels = pixels[top : top + height, left : left + width]
    method = INTERPOLATIONS.get(task.variant, cv2.INTER_LINEAR)
    cv2.resize(pixels, (task.size, task.size), dst=out, interpolation=method)
    if task.variant == "half":  # there is no reduced mode that gives red first
        cv2.cvtColor(out, cv2.COLOR_BGR2RGB, dst=out)


def draw_box(rng: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
    """Draw a part of the picture by area and shape; all of it if none fits."""
    for _ in range(NUM_ATTEMPTS):
        area = height * width * rng.uniform(*CROP_AREA)
        aspect = math.exp(rng.uniform(math.log(CROP_ASPECT[0]), math.log(CROP_ASPECT[1])))
        rows, columns = round(math.sqrt(area / aspect)), round(math.sqrt(area * aspect))
        if 0 < rows <= height and 0 < columns <= width:
            top = int(rng.integers(height - rows, endpoint=True))
            left = int(rng.integers(width - columns, endpoint=True))
            return top, left, rows, columns
    return 0, 0, height, width
