"""What the writers are given: the values of the read benchmark in memory, as CSV and as Parquet, and images.

In: a name and a size. Out: a `RawSource` whose files exist. They are made in a separate process
(`write_sources.py`), so that the main process stays small.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from datasets import HERE, SEED, STORE, list_datasets

# Goes up when write_sources.py would write something else from the same parameters.
PRODUCTION = 2
NUM_CLASSES = 10


@dataclass(frozen=True)
class RawSource:
    """What one column of the table starts from.

    Attributes:
        name: What it is called, here and on the command line.
        title: One line for people.
        num_records: How many there are.
        is_quick: Whether it is only for a smoke test.
        dataset: The data set of the read benchmark with the same values, if there is one.
        source: The file or folder that is converted; None where the columns are in memory.
        pixels: Width and height of the smallest images.
    """

    name: str
    title: str
    num_records: int
    is_quick: bool
    dataset: str | None = None
    source: Path | None = None
    pixels: tuple[int, int] = (384, 304)

    @property
    def parameters(self) -> dict[str, object]:
        """Everything the bytes of the source depend on; written next to them when they are complete."""
        return {
            "name": self.name,
            "num_records": self.num_records,
            "num_classes": NUM_CLASSES,
            "seed": SEED,
            "pixels": list(self.pixels),
            "production": PRODUCTION,
        }

    @property
    def labels(self) -> Path | None:
        """The labels of all records in order, where they are kept next to the source."""
        return self.source.parent / "labels.npy" if self.source and self.dataset else None

    def is_complete(self) -> bool:
        """Whether the source is on the disk, made from these very parameters, to the end."""
        if self.source is None:
            return True
        try:
            return bool(json.loads(stamp_of(self.source).read_text()) == self.parameters)
        except (OSError, ValueError):
            return False


def stamp_of(source: Path) -> Path:
    return source.parent / "parameters.json"


def list_raw_sources(is_quick: bool) -> dict[str, RawSource]:
    """Describe all there is at its full size, or at one that a smoke test can afford."""
    specs = list_datasets(is_quick)
    folder = STORE / "data" / "quick" / "sources" if is_quick else STORE / "data" / "sources"
    num_rows, num_images = specs["T"].num_records, 200 if is_quick else 4_000
    materials = [
        RawSource(name, f"{specs[name].title}, in memory", specs[name].num_records, is_quick, name)
        for name in "TSB"
    ]
    materials += [
        RawSource("csv", "T as one CSV", num_rows, is_quick, "T", folder / "csv" / "T.csv"),
        RawSource(
            "parquet", "T as one Parquet file", num_rows, is_quick, "T", folder / "parquet" / "T.parquet"
        ),
        RawSource(
            "images", "JPEGs in class folders", num_images, is_quick, None, folder / "images" / "photos"
        ),
    ]
    return {raw.name: raw for raw in materials}


def list_stage_sources(is_quick: bool) -> dict[str, RawSource]:
    """Describe the sources whose conversion is measured stage by stage."""
    folder = STORE / "data" / "quick" / "stages" if is_quick else STORE / "data" / "stages"
    num_rows, num_photos, num_blobs = (2_000, 200, 200) if is_quick else (1_000_000, 16_000, 20_000)
    title = "a table of 40 columns"
    sources = (
        RawSource("stages-parquet", title, num_rows, is_quick, "T", folder / "parquet" / "T.parquet"),
        RawSource("stages-csv", title, num_rows, is_quick, "T", folder / "csv" / "T.csv"),
        RawSource(
            "stages-photos",
            "JPEGs of about 48 KB in class folders",
            num_photos,
            is_quick,
            source=folder / "photos" / "photos",
            pixels=(264, 208),
        ),
        RawSource("stages-blobs", "blobs of 40 KB, in memory", num_blobs, is_quick),
    )
    return {raw.name.removeprefix("stages-"): raw for raw in sources}


def list_all_sources(is_quick: bool) -> dict[str, RawSource]:
    """Return all sources by their own names."""
    stages = {raw.name: raw for raw in list_stage_sources(is_quick).values()}
    return {**list_raw_sources(is_quick), **stages}


def ensure_raw_sources(names: list[str], is_quick: bool) -> None:
    """Make the sources that are missing or were made from other parameters."""
    materials = list_all_sources(is_quick)
    for name in names:
        if materials[name].is_complete():
            continue
        print(f"making {name} at {materials[name].source}", flush=True)
        write_raw_source([name, *(["--quick"] if is_quick else [])])


def write_raw_source(arguments: list[str]) -> None:
    """Make something with write_sources.py."""
    command = [sys.executable, str(HERE / "write_sources.py"), *arguments]
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"{' '.join(arguments)} could not be made:\n{finished.stderr[-2000:]}")
