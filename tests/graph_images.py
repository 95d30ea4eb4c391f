"""Images that the tests make, of all kinds that TensorFlow and Penstock decode alike, and records of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

import penstock as ps
from record_files import example, write_plain

ORIENTATION = 0x0112


def draw(height: int, width: int, mode: str = "RGB") -> Any:
    """Return a picture of soft waves: what a photo is to a resize."""
    y, x = np.mgrid[:height, :width]
    waves = [127 + 120 * np.sin(x / (9 + k) + k) * np.cos(y / (7 + k)) for k in range(3)]
    return PIL.Image.fromarray(np.stack(waves, axis=-1).astype(np.uint8)).convert(mode)


def encode(picture: Any, format: str, orientation: int | None = None) -> bytes:
    file = io.BytesIO()
    options: dict[str, Any] = {"quality": 90} if format == "jpeg" else {}
    if orientation is not None:
        exif = PIL.Image.Exif()
        exif[0x010F], exif[ORIENTATION] = "A maker of cameras", orientation
        options["exif"] = exif
    picture.save(file, format, **options)
    return file.getvalue()


JPEGS = [encode(draw(*size), "jpeg") for size in ((37, 50), (100, 333), (480, 320), (48, 48))]
TURNED = [encode(draw(91 + 10 * turn, 153), "jpeg", turn) for turn in range(1, 9)]
PNGS = [encode(draw(30, 60 + len(mode), mode), "png") for mode in ("RGB", "L", "RGBA", "LA", "P")]
GREY = [encode(draw(80, 60, "L"), "jpeg")]


def open_images(path: Path, images: list[bytes | None], **declared: Any) -> ps.Dataset:
    rows = [{"row": i} if image is None else {"row": i, "photo": image} for i, image in enumerate(images)]
    write_plain(path, [example(**row) for row in rows])
    schema = {"photo": ps.fields.Image(**declared), "row": ps.fields.Number("int64")}
    return ps.open(path, schema=ps.Schema(schema))
