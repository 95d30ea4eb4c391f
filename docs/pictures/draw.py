"""Draws the pictures of `docs/pictures.md`: `python docs/pictures/draw.py`, with `--out` for another folder.

In: scenes made in code. Out: JPEG and PNG files. All but the first are what a loader gives.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scene import draw_scene, draw_zone_plate

import penstock as ps

Pixels = NDArray[np.uint8]

ORIENTATION = 0x0112  # the tag of EXIF
HOW_HELD = {  # by the number that a camera notes: what undoes it, as Pillow names it
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
OPERATIONS: dict[str, dict[str, Any]] = {
    "flip": {"flip": 0.5},
    "flip_down": {"flip_down": 0.5},
    "crop": {"crop": 0.2},
    "brightness": {"brightness": 0.3},
    "contrast": {"contrast": 0.6},
    "saturation": {"saturation": 0.9},
    "cutout": {"cutout": 0.4},
    "usual": {**ps.transform.Augment.usual().to_json()},
    "all": {"flip": 0.5, "crop": 0.1, "brightness": 0.2, "contrast": 0.3, "saturation": 0.5, "cutout": 0.3},
}


class Sheet:
    """Pictures side by side, in rows, with a line of words below each."""

    def __init__(self) -> None:
        self._rows: list[list[tuple[Pixels, str]]] = []

    def add(self, tiles: Sequence[tuple[Pixels, str]]) -> None:
        """Add a row."""
        self._rows.append(list(tiles))

    def save(self, path: Path, gap: int = 6, line: int = 17) -> None:
        """Write the file; narrow pictures leave the rest white."""
        width = max(sum(tile.shape[1] + gap for tile, _ in row) for row in self._rows) - gap
        heights = [max(tile.shape[0] for tile, _ in row) + line for row in self._rows]
        sheet = Image.new("RGB", (width, sum(heights)), "white")
        pen = ImageDraw.Draw(sheet)
        font = ImageFont.load_default(12)
        top = 0
        for row, height in zip(self._rows, heights, strict=True):
            left = 0
            for tile, words in row:
                sheet.paste(Image.fromarray(tile), (left, top))
                pen.text((left + 1, top + tile.shape[0] + 1), words, "black", font)
                left += tile.shape[1] + gap
            top += height
        if path.suffix == ".png":
            sheet.save(path, optimize=True)
        else:
            sheet.save(path, quality=82, subsampling="4:4:4")


def encode(pixels: Pixels, orientation: int = 1) -> bytes:
    """Return a JPEG, as a camera writes it that was held in one of eight ways."""
    image = Image.fromarray(pixels)
    if orientation > 1:
        image = image.transpose(HOW_HELD[orientation])
    notes = Image.Exif()
    notes[ORIENTATION] = orientation
    file = io.BytesIO()
    image.save(file, "JPEG", quality=92, exif=notes)
    return file.getvalue()


def load(files: Sequence[bytes], num_epochs: int = 0, **options: Any) -> list[list[Pixels]]:
    """Return what a loader makes of files: of each epoch a list, augmented; or one list, as in evaluation."""
    samples = [{"photo": content, "number": number} for number, content in enumerate(files)]
    fields = {"photo": ps.fields.Image(), "number": ps.fields.Number("int64")}
    with tempfile.TemporaryDirectory() as folder:
        data = ps.convert(samples, Path(folder) / "data", fields=fields, split={"train": 1.0})
        choices = {"photo": ps.transform.Image(**options), "number": ps.transform.Keep()}
        pipeline = ps.Pipeline.fit(data, **choices)
        loader = data["train"].loader(
            pipeline, batch_size=len(files), seed=3, repeat=num_epochs or 1, augment=num_epochs > 0
        )
        batches = [inputs for inputs, *_ in loader]
    return [list(batch["photo"][np.argsort(batch["number"])]) for batch in batches]


def enlarge(pixels: Pixels, times: int) -> Pixels:
    """Return each pixel as a square."""
    return pixels.repeat(times, axis=0).repeat(times, axis=1)


def draw_modes(photo: bytes, folder: Path) -> None:
    """Draw one photo in a square, in every mode."""
    sheet = Sheet()
    modes: tuple[dict[str, Any], ...] = (
        {"resize": "stretch"},
        {"resize": "pad", "fill": (128, 128, 128)},
        {"resize": "crop"},
    )
    sheet.add([(load([photo], size=192, **mode)[0][0], f'"{mode["resize"]}"') for mode in modes])
    drawn = load([photo], 3, size=192, resize="random")
    sheet.add([(epoch[0], f'"random", epoch {number}') for number, epoch in enumerate(drawn)])
    sheet.save(folder / "resize.jpg")


def draw_antialias(scene: Pixels, folder: Path) -> None:
    """Draw rings, and the scene, a quarter as wide, with and without."""
    rings, views = (Sheet() for _ in range(2))
    words = {True: "antialias=True", False: "antialias=False"}
    plate = draw_zone_plate(512)
    file = io.BytesIO()
    Image.fromarray(plate).save(file, "PNG")
    shown = {flag: load([file.getvalue()], size=128, antialias=flag)[0][0] for flag in words}
    rings.add([(enlarge(shown[flag], 2), words[flag]) for flag in words])
    rings.save(folder / "rings.png")
    whole = encode(scene)
    small = {flag: load([whole], size=(180, 240), antialias=flag, draft=False)[0][0] for flag in words}
    views.add([(enlarge(small[flag], 2)[130:], words[flag]) for flag in words])
    views.save(folder / "antialias.png")


def draw_draft(scene: Pixels, folder: Path) -> None:
    """Draw the scene decoded whole, and at a half, and how they differ."""
    photo, sheet = encode(scene), Sheet()
    whole, draft = (load([photo], size=(180, 240), draft=flag)[0][0] for flag in (False, True))
    apart = np.clip(128 + 8 * (draft.astype(np.int64) - whole), 0, 255).astype(np.uint8)
    sheet.add([(whole, "draft=False"), (draft, "draft=True"), (apart, "eight times the difference")])
    sheet.save(folder / "draft.jpg")


def draw_augmented(photo: bytes, folder: Path) -> None:
    """Draw one photo over some epochs, by each operation alone, and by all of them."""
    sheet = Sheet()
    for name, options in OPERATIONS.items():
        epochs = load([photo], 6, size=(75, 100), augment=options)
        sheet.add([(epoch[0], "" if number else name) for number, epoch in enumerate(epochs)])
    sheet.save(folder / "augment.jpg")


def draw_orientations(scene: Pixels, folder: Path) -> None:
    """Draw photos of a camera that was held in eight ways, as they are stored and upright."""
    photos = [encode(scene, orientation) for orientation in range(1, 9)]
    stored = load(photos, size=80, resize="pad", fill=255, orient=False)[0]
    upright = load(photos, size=80, resize="pad", fill=255)[0]
    sheet = Sheet()
    sheet.add([(tile, f"stored, {number}") for number, tile in enumerate(stored, 1)])
    sheet.add([(tile[10:70], "upright") for tile in upright])
    sheet.save(folder / "orientation.jpg")


def main() -> None:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the pictures")
    folder = parser.parse_args().out
    scene = draw_scene()
    photo = encode(scene)
    halves = scene.reshape(scene.shape[0] // 2, 2, scene.shape[1] // 2, 2, 3).mean(axis=(1, 3))
    Image.fromarray(np.rint(halves).astype(np.uint8)).save(folder / "scene.jpg", quality=85)
    draw_modes(photo, folder)
    draw_antialias(scene, folder)
    draw_draft(scene, folder)
    draw_augmented(photo, folder)
    draw_orientations(scene, folder)


if __name__ == "__main__":
    main()
