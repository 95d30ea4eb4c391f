"""Compares what a feed of images delivers with Pillow, before anything is timed.

In: one batch, the pictures as they were made. Out: nothing, or an error that says how far off the pixels are.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from image_feeds.task import Task
from photos import PhotoSpec

NUM_COMPARED = 6
# Levels of 255 that pixels may be off, on the average of a picture. TensorFlow decodes with a quicker
# transform by default, which is 1 off; OpenCV's areas weigh pixels differently than a triangle, 1.4; what
# aliases after an image decoded at half the size is like nothing that Pillow does, 2.4; boxes of crops are
# found, 2. Red and blue exchanged are 17 off at least, another picture 30.
TOLERANCES = {"plain": 1.5, "alias": 1.5, "smooth": 1.5, "half": 1.5, "area": 2.5, "any": 4.0, "crops": 4.0}
# The resize that a picture must be less like.
OTHERS = {"alias": "smooth", "smooth": "alias", "half": "alias", "area": "alias"}
# Random crops: how many boxes are tried, into how many cells each is cut, how often the search narrows down.
NUM_BOXES, NUM_CELLS, NUM_SEARCHES = 3_000, 8, 12

Floats = npt.NDArray[np.float64]


def check_batch(images: Any, labels: Any, task: Task, pixels: str) -> float:
    """Refuse a batch whose pixels are not the pixels of its pictures; return how far they are off, of 255.

    A competitor that delivers less than it decodes delivers the last pictures of the batch.
    """
    images, labels = np.asarray(images), np.asarray(labels)
    if len(labels) != task.batch_size or len(np.unique(labels)) < 2:
        raise ValueError(f"expected {task.batch_size} labels, got {labels}")
    is_alone = len(images) != len(labels)
    height, width = (task.photos.height, task.photos.width) if is_alone else (task.size, task.size)
    if images.shape[1:] != (height, width, 3):
        raise ValueError(f"expected pixels of shape {(height, width, 3)}, got {images.shape[1:]}")
    differences, others = [], []
    for values, label in list(zip(images[::-1], labels[::-1], strict=False))[:NUM_COMPARED]:
        got = values * 255.0 if values.dtype == np.float32 else values.astype(np.float64)
        picture = open_picture(task.photos, int(label))
        expected = crop_alike(picture, got) if pixels == "crops" else resize(picture, (width, height), pixels)
        differences.append(float(np.abs(got - expected).mean()))
        if pixels in OTHERS:
            other = resize(picture, (width, height), OTHERS[pixels])
            others.append(float(np.abs(got - other).mean()))
    worst = max(differences)
    if not worst <= TOLERANCES[pixels]:
        raise ValueError(f"pixels are {worst:.2f} of 255 off on the average, not {TOLERANCES[pixels]:g}")
    if others and sum(others) <= sum(differences):
        raise ValueError(f"pixels are nearer to the pixels of another resize ({OTHERS[pixels]})")
    return worst


def open_picture(photos: PhotoSpec, label: int) -> Image.Image:
    """Open a picture by Pillow from the bytes that were written."""
    offsets = np.load(photos.offsets)
    files = np.load(photos.pictures, mmap_mode="r")
    data = files[offsets[label] : offsets[label + 1]].tobytes()
    return Image.open(io.BytesIO(data)).convert("RGB")


def resize(picture: Image.Image, size: tuple[int, int], pixels: str) -> Floats:
    """Resize as Pillow does: what aliases is its affine transform, which looks at four pixels."""
    if pixels == "plain":
        resized = picture
    elif pixels == "alias":
        scale = (picture.width / size[0], picture.height / size[1])
        matrix = (scale[0], 0, 0, 0, scale[1], 0)
        resized = picture.transform(size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    else:
        resized = picture.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(resized, np.float64)


def crop_alike(picture: Image.Image, got: Floats) -> Floats:
    """Find the box of the picture that looks most like a crop, and return what it should have been.

    Averages of cells are compared, for many boxes at once; then for boxes around the best of them.
    """
    rng = np.random.default_rng(0)
    whole = np.asarray(picture, np.float64)
    sums = np.pad(whole.cumsum(0).cumsum(1), ((1, 0), (1, 0), (0, 0)))
    side = len(got) // NUM_CELLS
    wanted = got.reshape(NUM_CELLS, side, NUM_CELLS, side, 3).mean((1, 3))
    limits = np.array(whole.shape[:2], np.float64)
    best, spread = np.array([*limits / 2, *limits / 2]), np.array([*limits, *limits]) / 2
    for _ in range(NUM_SEARCHES):
        boxes = best + spread * rng.uniform(-1, 1, (NUM_BOXES, 4))  # centres, heights and widths
        boxes[0] = best
        boxes[:, 2:] = np.clip(boxes[:, 2:], NUM_CELLS, limits)
        boxes[:, :2] = np.clip(boxes[:, :2], boxes[:, 2:] / 2, limits - boxes[:, 2:] / 2)
        errors = np.abs(_average_cells(sums, boxes) - wanted).mean((1, 2, 3))
        best = boxes[errors.argmin()]
        spread *= 0.6
    height, width = best[2:]
    box = (best[1] - width / 2, best[0] - height / 2, best[1] + width / 2, best[0] + height / 2)
    inside = np.clip(box, 0, [picture.width, picture.height] * 2).tolist()
    resized = picture.resize((len(got), len(got)), Image.Resampling.BILINEAR, box=tuple(inside))
    return np.asarray(resized, np.float64)


def _average_cells(sums: Floats, boxes: Floats) -> Floats:
    """Return the averages (n, cells, cells, 3) of the cells of boxes, from sums over all above and left."""
    shares = np.linspace(-0.5, 0.5, NUM_CELLS + 1)
    rows = np.rint(boxes[:, :1] + boxes[:, 2:3] * shares).astype(int)
    columns = np.rint(boxes[:, 1:2] + boxes[:, 3:] * shares).astype(int)
    corners = sums[rows[:, :, None], columns[:, None, :]]
    totals = np.diff(np.diff(corners, axis=1), axis=2)
    areas = np.diff(rows, axis=1)[:, :, None] * np.diff(columns, axis=1)[:, None, :]
    means: Floats = totals / np.maximum(areas, 1)[..., None]
    return means
