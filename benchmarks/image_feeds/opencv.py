"""OpenCV in a plain loop of threads, as written by hand; records are read by Penstock's `columns`.

It reads batches of adjacent records in random order, which is less of a shuffle than the others make.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np

import penstock as ps
from image_feeds.task import CROP_AREA, CROP_ASPECT, SHUFFLE_SEED, ArrayFeed, Batch, Task
from image_feeds.threads import run_threads

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


class Feed(ArrayFeed):
    """Each thread reads, decodes and resizes a batch."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._split: Any = ps.open(task.photos.folder / "shards")["train"]
        self._num_batches = len(self._split) // task.batch_size

    def epochs(self) -> Iterator[Batch]:
        """Iterate indefinitely."""
        return run_threads(self._make_batch, self._task.num_cores)

    def _make_batch(self, number: int) -> Batch:
        epoch, step = divmod(number, self._num_batches)
        order = np.random.default_rng((SHUFFLE_SEED, epoch)).permutation(self._num_batches)
        start = int(order[step]) * self._task.batch_size
        columns = self._split.columns(start, start + self._task.batch_size)
        files = columns["image"]
        rng = np.random.default_rng((SHUFFLE_SEED, number))
        size = self._task.size
        images = np.empty((len(files.starts), size, size, 3), np.uint8)
        for i, (begin, end) in enumerate(zip(files.starts.tolist(), files.stops.tolist(), strict=True)):
            decode_into(self._task, files.arena[begin:end], images[i], rng)
        return {"image": images}, {"label": columns["label"].values}
