"""The data set of the demo: flowers of a meadow, with an input of every kind.

In: a folder. Out: three small shards in it, written with `penstock.wire`; the same bytes every time.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.storage.atomic import AtomicFile
from penstock.wire.example import write_example
from penstock.wire.feature import Feature
from penstock.wire.frame import write_records

SHARDS: Final = {
    "train-00000-of-00002.tfrecord": range(120),
    "train-00001-of-00002.tfrecord": range(120, 240),
    "test-00000-of-00001.tfrecord": range(240, 300),
}
"""The numbers of the flowers in each shard."""

_SPECIES = {"cornflower": (72, 92, 214), "daisy": (240, 240, 232), "poppy": (214, 40, 36)}
_NOTES = (
    "beside the path",
    "under the old oak",
    "among tall grass",
    "close to the brook",
    "on the dry slope",
)
_PIXELS = 16
_GRASS = (46, 125, 50)


def write_meadow(folder: Path) -> list[Path]:
    """Write the shards, and return them."""
    paths = []
    flowers = list(_grow_flowers())
    for name, numbers in SHARDS.items():
        with AtomicFile(folder / name) as file:
            file.write(write_records(flowers[number] for number in numbers))
        paths.append(folder / name)
    return paths


def _grow_flowers() -> Iterator[bytes]:
    random = np.random.default_rng(7)
    for number in range(max(numbers.stop for numbers in SHARDS.values())):
        species = list(_SPECIES)[random.integers(len(_SPECIES))]
        petal_cm = float(random.normal(2.4, 0.5))
        visits = random.integers(6, 20, size=random.integers(0, 7))
        note = f"A {species} {_NOTES[random.integers(len(_NOTES))]}, seen {len(visits)} times."
        photo = _draw(_SPECIES[species], radius=1.5 + petal_cm)
        yield write_example(
            {
                "id": Feature("bytes", [f"flower-{number:03}".encode()]),
                "photo": Feature("bytes", [photo]),
                "note": Feature("bytes", [note.encode()]),
                "species": Feature("bytes", [species.encode()]),
                "petal_cm": Feature("float", [petal_cm]),
                "visit_hours": Feature("int64", sorted(visits.tolist())),
                "sets_seed": Feature("int64", [int(len(visits) + random.integers(3) > 4)]),
            }
        )


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
