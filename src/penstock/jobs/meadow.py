"""The raw data of the demo: a table of flowers, with an input of every kind, and a photo of each.

In: a folder. Out: `flowers.csv`, `more.csv` and `photos/` in it; the same bytes every time. Whether a flower
sets seed follows from its colour, which only its photo shows, from the hours of its visits and from its note.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FLOWERS: Final = range(300)
"""The numbers of the flowers in `flowers.csv`."""

MORE_FLOWERS: Final = range(300, 310)
"""Of those in `more.csv`."""

LOST_PHOTO: Final = 307
"""The flower of which there is no photo."""

_COLUMNS = ("id", "photo", "note", "petal_cm", "soil", "plot", "seen_on", "visit_hours", "sets_seed")
_RED, _BLUE = (214, 40, 36), (72, 92, 214)
_PLACES = ("beside the path", "under the old oak", "among tall grass", "close to the brook", "on the slope")
_SOILS = ("clay", "loam", "sand")
_FIRST_DAY = date(2024, 5, 1)
_NOON = 12
_PIXELS = 16
_GRASS = (46, 125, 50)


def write_meadow(folder: Path) -> tuple[Path, Path]:
    """Write the tables and the photos, and return the tables; the second names a photo that is not there."""
    flowers = list(_grow_flowers(MORE_FLOWERS.stop))
    (folder / "photos").mkdir(parents=True)
    for number, (row, photo) in enumerate(flowers):
        if number != LOST_PHOTO:
            (folder / row["photo"]).write_bytes(photo)
    tables = (folder / "flowers.csv", folder / "more.csv")
    for path, numbers in zip(tables, (FLOWERS, MORE_FLOWERS), strict=True):
        path.write_bytes(_write_csv(flowers[number][0] for number in numbers))
    return tables


def _grow_flowers(count: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield flowers: the cells of each, and its photo."""
    random = np.random.default_rng(7)
    for number in range(count):
        is_red, is_shaded = (bool(random.integers(2)) for _ in range(2))
        petal_cm = float(random.normal(2.4, 0.5))
        hours = sorted(random.integers(6, 20, size=random.integers(0, 9)).tolist())
        place = _PLACES[random.integers(len(_PLACES))]
        row = {
            "id": f"flower-{number:03}",
            "photo": f"photos/flower-{number:03}.png",
            "note": f"{random.integers(5, 200)} steps from the gate, {place}, in the "
            f"{'shade' if is_shaded else 'sun'}.",
            "petal_cm": "" if random.random() < 0.1 else f"{petal_cm:.2f}",  # nobody measured these
            "soil": _SOILS[random.integers(len(_SOILS))],
            "plot": f"{random.integers(1, 13):03}",
            "seen_on": (_FIRST_DAY + timedelta(days=int(random.integers(90)))).isoformat(),
            "visit_hours": json.dumps(hours),
            "sets_seed": "yes" if _sets_seed(is_red, is_shaded, hours) else "no",
        }
        yield row, _draw(_RED if is_red else _BLUE, radius=1.5 + petal_cm)


def _sets_seed(is_red: bool, is_shaded: bool, hours: list[int]) -> bool:
    """Red flowers open in the morning and blue ones after noon; in the shade they need one visit more."""
    num_visits = sum((hour < _NOON) == is_red for hour in hours)
    return num_visits >= (3 if is_shaded else 2)


def _write_csv(rows: Iterable[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _draw(colour: tuple[int, int, int], radius: float) -> bytes:
    """Return a PNG of a disc on grass."""
    rows, columns = np.ogrid[:_PIXELS, :_PIXELS]
    centre = (_PIXELS - 1) / 2
    is_petal = (rows - centre) ** 2 + (columns - centre) ** 2 <= radius**2
    pixels = np.where(is_petal[..., None], np.array(colour, np.uint8), np.array(_GRASS, np.uint8))
    return _encode_png(pixels)


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    unfiltered = np.pad(
        pixels.reshape(height, -1), ((0, 0), (1, 0))
    )  # each line begins with its filter: none
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_encode_chunk(*chunk) for chunk in chunks)


def _encode_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
