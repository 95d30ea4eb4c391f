"""The pictures of the benchmark of images: how large, how many, where they lie, whether to make them again.

In: a name and a size of the benchmark. Out: a `PhotoSpec` whose files exist. Making them needs Pillow and
Penstock, and happens in a separate process (`write_photos.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from datasets import HERE, STORE

NUM_SHARDS = 4
BATCH_SIZE = 32
SEED = 20_240_817
# Goes up when write_photos.py would make something else from the same parameters.
GENERATION = 2


@dataclass(frozen=True)
class PhotoSpec:
    """One set of pictures of one size.

    Attributes:
        name: Of the set, and of its folder.
        height: Of each picture.
        width: Of each picture.
        format: "jpeg" of quality 85 to 90 with colours at half the resolution, as cameras and the web have
            it; or "png".
        num_images: A multiple of the batch size, so that all batches are full.
        roughness: What makes a JPEG of this size take about 0.2 byte a pixel.
        folder: Where the set lies.
    """

    name: str
    height: int
    width: int
    format: Literal["jpeg", "png"]
    num_images: int
    roughness: float
    folder: Path

    @property
    def shards(self) -> list[str]:
        """The TFRecord files, as Penstock wrote them."""
        return sorted(str(path) for path in (self.folder / "shards").glob("*.tfrecord"))

    @property
    def tars(self) -> list[str]:
        """The same pictures as tar files, four next to each other as the shards are."""
        return sorted(str(path) for path in self.folder.glob("*.tar"))

    @property
    def arrays(self) -> list[str]:
        """The same pictures as ArrayRecord files; none where the writer is not installed."""
        return sorted(str(path) for path in self.folder.glob("*.array_record"))

    @property
    def pictures(self) -> Path:
        """The files of all pictures in one array of bytes, by label."""
        return self.folder / "pictures.npy"

    @property
    def offsets(self) -> Path:
        """Where each picture begins in it, and the end of the last."""
        return self.folder / "offsets.npy"

    @property
    def bytes_per_pixel(self) -> float:
        """How many bytes a pixel takes, on the average of all pictures."""
        return self.bytes_per_image / (self.height * self.width)

    @property
    def bytes_per_image(self) -> float:
        return self.pictures.stat().st_size / self.num_images

    @property
    def parameters(self) -> dict[str, object]:
        """Everything the bytes depend on; written next to them when they are complete."""
        described = asdict(self)
        del described["folder"]
        return described | {"num_shards": NUM_SHARDS, "seed": SEED, "generation": GENERATION}

    @property
    def stamp(self) -> Path:
        return self.folder / "parameters.json"

    def is_complete(self) -> bool:
        """Whether the files on disk were made from these very parameters, to the end."""
        try:
            return bool(json.loads(self.stamp.read_text()) == self.parameters)
        except (OSError, ValueError):
            return False


def list_photos(is_quick: bool) -> dict[str, PhotoSpec]:
    """Describe every set at its full size, or at one that a smoke test can afford."""
    folder = STORE / "data" / "quick" / "photos" if is_quick else STORE / "data" / "photos"
    medium, large, small, tiny = (32, 32, 32, 64) if is_quick else (256, 96, 512, 1024)
    specs = (
        PhotoSpec("500x375", 375, 500, "jpeg", medium, 2.2, folder / "500x375"),
        PhotoSpec("1024x768", 768, 1024, "jpeg", large, 3.8, folder / "1024x768"),
        PhotoSpec("224x224", 224, 224, "jpeg", small, 0.9, folder / "224x224"),
        PhotoSpec("64x64", 64, 64, "png", tiny, 0.3, folder / "64x64"),
    )
    return {spec.name: spec for spec in specs}


def ensure_photos(names: list[str], is_quick: bool) -> None:
    """Make those sets that are missing or were made from other parameters."""
    specs = list_photos(is_quick)
    for name in dict.fromkeys(names):
        if specs[name].is_complete():
            continue
        print(f"making pictures of {name} in {specs[name].folder}", flush=True)
        command = [sys.executable, str(HERE / "write_photos.py"), name, *(["--quick"] if is_quick else [])]
        finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if finished.returncode:
            raise RuntimeError(f"pictures of {name} could not be made:\n{finished.stderr[-2000:]}")
