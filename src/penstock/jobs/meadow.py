"""The raw data of the demo: a table of flowers, with an input of every kind, and a photo of each.

In: a folder. Out: `flowers.csv`, `more.csv`, `new.csv` and `photos/` in it; the same bytes every time.
Whether a flower sets seed follows from its photo, its note, the hours of its visits and its numbers together.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NUM_FLOWERS: Final = 3000
"""Rows of `flowers.csv`: enough for 300 in the test split, where a figure is good to three hundredths."""

NUM_MORE: Final = 10
"""Rows of `more.csv`, the photo of one of which is lost."""

NUM_NEW: Final = 20
"""Rows of `new.csv`, of which nobody knows yet whether they set seed."""

TARGET: Final = "sets_seed"

_COLUMNS = ("id", "photo", "note", "petal_cm", "soil", "plot", "seen_on", "visit_hours", TARGET)
_LOST = 7  # among the flowers of more.csv
_RED, _BLUE = (214, 40, 36), (72, 92, 214)
_PLACES = ("beside the path", "under the old oak", "among tall grass", "close to the brook", "on the slope")
_SOILS = ("sand", "clay", "loam")  # from poor to rich
_FIRST_DAY = date(2024, 5, 1)
_MORNING, _AFTERNOON = (6, 12), (12, 20)
_USUAL_SHARE = 0.85  # of the visits to a flower that come in its usual half of the day
_MEAN_PETAL_CM, _PETAL_DEVIATION = 2.4, 0.5
_MEAN_VISITS, _VISITS_DEVIATION = 4, 2.6
_PIXELS = 16
_GRASS = (46, 125, 50)


@dataclass(frozen=True)
class Meadow:
    """What was written.

    Attributes:
        flowers: The table to learn from.
        more: A few rows more; one names a photo that is not there.
        new: Rows without the answer.
        answers: What is the case with those, by id: nobody could know it but who made them up.
    """

    flowers: Path
    more: Path
    new: Path
    answers: dict[str, str]


def write_meadow(folder: Path, num_flowers: int = NUM_FLOWERS) -> Meadow:
    """Write the tables and the photos; the first flowers are the same, however many follow."""
    flowers = list(_grow_flowers(num_flowers + NUM_MORE + NUM_NEW))
    (folder / "photos").mkdir(parents=True)
    for number, (row, photo) in enumerate(flowers):
        if number != num_flowers + _LOST:
            (folder / row["photo"]).write_bytes(photo)
    rows = [row for row, _ in flowers]
    first, last = num_flowers, num_flowers + NUM_MORE
    made = Meadow(
        folder / "flowers.csv",
        folder / "more.csv",
        folder / "new.csv",
        {row["id"]: row[TARGET] for row in rows[last:]},
    )
    made.flowers.write_bytes(_write_csv(rows[:first], _COLUMNS))
    made.more.write_bytes(_write_csv(rows[first:last], _COLUMNS))
    made.new.write_bytes(_write_csv(rows[last:], [name for name in _COLUMNS if name != TARGET]))
    return made


def _grow_flowers(count: int) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield flowers: the cells of each, and its photo."""
    random = np.random.default_rng(7)
    for number in range(count):
        is_red, is_shaded, is_early = (bool(random.integers(2)) for _ in range(3))
        petal_cm = float(random.normal(_MEAN_PETAL_CM, _PETAL_DEVIATION))
        hours = _draw_hours(random, is_early)
        place = _PLACES[random.integers(len(_PLACES))]
        soil = int(random.integers(len(_SOILS)))
        luck = float(random.normal())
        is_seeded = _sets_seed(is_red, is_shaded, hours, petal_cm, soil, luck)
        row = {
            "id": f"flower-{number:03}",
            "photo": f"photos/flower-{number:03}.png",
            "note": f"{random.integers(5, 200)} steps from the gate, {place}, in the "
            f"{'shade' if is_shaded else 'sun'}.",
            "petal_cm": "" if random.random() < 0.1 else f"{petal_cm:.2f}",  # nobody measured these
            "soil": _SOILS[soil],
            "plot": f"{random.integers(1, 13):03}",
            "seen_on": (_FIRST_DAY + timedelta(days=int(random.integers(90)))).isoformat(),
            "visit_hours": json.dumps(hours),
            TARGET: "yes" if is_seeded else "no",
        }
        yield row, _draw(_RED if is_red else _BLUE, 1.5 + petal_cm, random)


def _draw_hours(random: np.random.Generator, is_early: bool) -> list[int]:
    """Return when insects came: mostly before noon, or mostly after it."""
    is_usual = random.random(random.integers(9)) < _USUAL_SHARE
    return sorted(int(random.integers(*(_MORNING if each == is_early else _AFTERNOON))) for each in is_usual)


def _sets_seed(
    is_red: bool, is_shaded: bool, hours: Sequence[int], petal_cm: float, soil: int, luck: float
) -> bool:
    """Tell what becomes of a flower.

    Red flowers are open before noon and blue ones after it, and visits at another time are in vain: neither
    the colour nor the hours tell much alone. Red, sun, visits, wide petals and rich soil help, and some luck.
    """
    num_fitting = sum((hour < _AFTERNOON[0]) == is_red for hour in hours)
    fit = 2 * num_fitting / len(hours) - 1 if hours else -1.0
    score = (
        1.2 * fit
        + 0.5 * (1 if is_red else -1)
        + 0.8 * (-1 if is_shaded else 1)
        + 0.6 * (len(hours) - _MEAN_VISITS) / _VISITS_DEVIATION
        + 0.6 * (petal_cm - _MEAN_PETAL_CM) / _PETAL_DEVIATION
        + 0.5 * (soil - 1)
        + 0.3 * luck
    )
    return score > 0


def _write_csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _draw(colour: tuple[int, int, int], radius: float, random: np.random.Generator) -> bytes:
    """Return a PNG of a flower on grass: a disc somewhere near the middle, in the light of some hour."""
    row, column = (_PIXELS - 1) / 2 + random.uniform(-2, 2, size=2)
    light = random.uniform(0.6, 1.0)
    rows, columns = np.ogrid[:_PIXELS, :_PIXELS]
    is_petal = (rows - row) ** 2 + (columns - column) ** 2 <= radius**2
    pixels = np.where(is_petal[..., None], np.array(colour), np.array(_GRASS)) * light
    return _encode_png(pixels.astype(np.uint8))


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # each line begins with its filter: none
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_encode_chunk(*chunk) for chunk in chunks)


def _encode_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
