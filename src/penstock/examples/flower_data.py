"""Raw data for an example: a table of flowers with one input of every kind, and a photo of each flower.

In: a folder. Out: `flowers.csv`, `more.csv`, `new.csv` and `photos/`, the same bytes every time. Whether a
flower sets seed depends on its photo, its note, the hours of insect visits and its numbers together.
"""

from __future__ import annotations

import csv
import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NUM_MORE: Final = 10
"""Rows of `more.csv`; the photo of one of them is missing."""
NUM_NEW: Final = 20
"""Rows of `new.csv`, which has no column with the answer."""
TARGET: Final = "sets_seed"

_COLUMNS = ("id", "photo", "note", "petal_cm", "soil", "plot", "seen_on", "visit_hours", TARGET)
_MISSING_PHOTO = 7  # among the rows of more.csv
_PIXELS = 16
_RED, _BLUE, _GRASS = (214, 40, 36), (72, 92, 214), (46, 125, 50)
_PLACES = ("beside the path", "under the old oak", "among tall grass", "close to the brook", "on the slope")
_SOILS = ("sand", "clay", "loam")  # from poor to rich
_MORNING, _AFTERNOON = (6, 12), (12, 20)


def write_flowers(folder: Path, num_flowers: int) -> dict[str, str]:
    """Write tables and photos, and return the answers for `new.csv` by id.

    The first flowers are the same for any number of flowers.
    """
    flowers = list(_make_flowers(num_flowers + NUM_MORE + NUM_NEW))
    (folder / "photos").mkdir(parents=True)
    for number, (row, photo) in enumerate(flowers):
        if number != num_flowers + _MISSING_PHOTO:
            (folder / row["photo"]).write_bytes(photo)
    rows = [row for row, _ in flowers]
    first_new = num_flowers + NUM_MORE
    _write_csv(folder / "flowers.csv", rows[:num_flowers], _COLUMNS)
    _write_csv(folder / "more.csv", rows[num_flowers:first_new], _COLUMNS)
    _write_csv(folder / "new.csv", rows[first_new:], _COLUMNS[:-1])
    return {row["id"]: row[TARGET] for row in rows[first_new:]}


def _make_flowers(count: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the cells and the photo of each flower."""
    random = np.random.default_rng(7)
    for number in range(count):
        is_red, is_shaded, is_early = (bool(random.integers(2)) for _ in range(3))
        petal_cm = float(random.normal(2.4, 0.5))
        is_usual = random.random(random.integers(9)) < 0.85  # most visits come in one half of the day
        ranges = (_MORNING if usual == is_early else _AFTERNOON for usual in is_usual)
        hours = sorted(int(random.integers(*each)) for each in ranges)
        place = _PLACES[random.integers(len(_PLACES))]
        soil = int(random.integers(len(_SOILS)))
        # Red flowers are open before noon and blue ones after it; other visits have no effect. So neither the
        # colour nor the hours say much alone.
        fit = 2 * np.mean([(hour < 12) == is_red for hour in hours]) - 1 if hours else -1.0
        score = (
            1.2 * fit
            + 0.5 * (1 if is_red else -1)
            + 0.8 * (-1 if is_shaded else 1)
            + 0.6 * (len(hours) - 4) / 2.6
            + 0.6 * (petal_cm - 2.4) / 0.5
            + 0.5 * (soil - 1)
            + 0.3 * float(random.normal())
        )
        row = {
            "id": f"flower-{number:03}",
            "photo": f"photos/flower-{number:03}.png",
            "note": f"{random.integers(5, 200)} steps from the gate, {place}, in the "
            f"{'shade' if is_shaded else 'sun'}.",
            "petal_cm": "" if random.random() < 0.1 else f"{petal_cm:.2f}",  # some were not measured
            "soil": _SOILS[soil],
            "plot": f"{random.integers(1, 13):03}",
            "seen_on": (date(2024, 5, 1) + timedelta(days=int(random.integers(90)))).isoformat(),
            "visit_hours": json.dumps(hours),
            TARGET: "yes" if score > 0 else "no",
        }
        yield row, _draw_photo(_RED if is_red else _BLUE, 1.5 + petal_cm, random)


def _write_csv(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _draw_photo(colour: tuple[int, int, int], radius: float, random: np.random.Generator) -> bytes:
    """Return a PNG of a flower: a disc near the middle of the grass, in random light."""
    row, column = (_PIXELS - 1) / 2 + random.uniform(-2, 2, size=2)
    light = random.uniform(0.6, 1.0)
    rows, columns = np.ogrid[:_PIXELS, :_PIXELS]
    is_petal = (rows - row) ** 2 + (columns - column) ** 2 <= radius**2
    pixels = np.where(is_petal[..., None], np.array(colour), np.array(_GRASS)) * light
    return _encode_png(pixels.astype(np.uint8))


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode pixels with the standard library alone, so that the example needs no image package."""
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits per channel, RGB
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # each line starts with its filter: none
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
