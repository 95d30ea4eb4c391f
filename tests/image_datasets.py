"""Small data sets of images, and pipelines over them."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from image_files import jpeg, png, scene
from record_files import example, write_plain

SCHEMA = ps.Schema(
    {
        "image": ps.fields.Image(),
        "n": ps.fields.Number("int64"),
        "w": ps.fields.Number(),
        "y": ps.fields.Number("int64", role="target"),
    }
)


@cache
def photo(number: int) -> bytes:
    """Return one of many images: JPEGs and PNGs of several sizes, all different."""
    height, width = 20 + 3 * (number % 5), 24 + 5 * (number % 4)
    picture = scene(height, width, number)
    return png(picture) if number % 3 == 2 else jpeg(picture)


def photo_record(number: int, image: bytes | None, **more: Any) -> bytes:
    """Return an Example of an image, or of none; its other values follow from its number."""
    values = {"n": number, "w": 1.0 + number % 3, "y": number % 2, **more}
    return example(**values) if image is None else example(image=image, **values)


def write_photos(
    folder: Path, images: Sequence[bytes | None], counts: Sequence[int] = (), split: str = "train"
) -> Path:
    """Write a split of images, so many in each of its files; all in one, if that is not said."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = counts or [len(images)]
    assert sum(counts) == len(images)
    first = 0
    for i, count in enumerate(counts):
        path = folder / f"{split}-{i:05}-of-{len(counts):05}.tfrecord"
        write_plain(path, [photo_record(n, images[n]) for n in range(first, first + count)])
        first += count
    return folder


def open_photos(folder: Path, split: str = "train", schema: ps.Schema = SCHEMA, **choices: Any) -> Any:
    """Open a split of images."""
    return ps.open(folder, schema=schema, **choices)[split]


def fit_photos(split: Any, **options: Any) -> ps.Pipeline:
    """Return a pipeline that feeds images of 12 x 10 pixels, and numbers as they are."""
    image = ps.transform.Image(**{"size": (12, 10), **options})
    return ps.Pipeline.fit(split, image=image, n={"kind": "keep"}, w={"kind": "keep"})


def images_by_number(batches: Iterable[Any]) -> dict[int, list[bytes]]:
    """Return the pixels of each record, as often as it came."""
    found: dict[int, list[bytes]] = {}
    for inputs, *_ in batches:
        for number, image in zip(inputs["n"].tolist(), inputs["image"], strict=True):
            found.setdefault(number, []).append(np.ascontiguousarray(image).tobytes())
    return found
