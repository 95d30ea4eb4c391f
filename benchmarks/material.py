"""What the writers are given: the values of the read benchmark in memory, as CSV and as Parquet, and images.

In: a name and a size. Out: a `Material` whose files exist. They are made in a process of their own
(`production.py`), so that the one that keeps the score stays small.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from datasets import HERE, SEED, list_datasets

# Goes up when production.py would write something else from the same parameters.
PRODUCTION = 2
NUM_CLASSES = 10


@dataclass(frozen=True)
class Material:
    """What one column of the table starts from.

    Attributes:
        name: What it is called, here and on the command line.
        title: One line for people.
        num_records: How many there are.
        is_quick: Whether it is only for a smoke test.
        dataset: The data set of the read benchmark with the same values, if there is one.
        source: The file or folder that is converted; None where the columns are in memory.
    """

    name: str
    title: str
    num_records: int
    is_quick: bool
    dataset: str | None = None
    source: Path | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """Everything the bytes of the source depend on; written beside them when they are complete."""
        return {
            "name": self.name,
            "num_records": self.num_records,
            "num_classes": NUM_CLASSES,
            "seed": SEED,
            "production": PRODUCTION,
        }

    @property
    def labels(self) -> Path | None:
        """The labels of all records in order, where they are kept beside the source."""
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


def list_material(is_quick: bool) -> dict[str, Material]:
    """Describe all there is at its full size, or at one that a smoke test can afford."""
    specs = list_datasets(is_quick)
    folder = HERE / "data" / "quick" / "sources" if is_quick else HERE / "data" / "sources"
    num_rows, num_images = specs["T"].num_records, 200 if is_quick else 4_000
    materials = [
        Material(name, f"{specs[name].title}, in memory", specs[name].num_records, is_quick, name)
        for name in "TSB"
    ]
    materials += [
        Material("csv", "T as one CSV", num_rows, is_quick, "T", folder / "csv" / "T.csv"),
        Material(
            "parquet", "T as one Parquet file", num_rows, is_quick, "T", folder / "parquet" / "T.parquet"
        ),
        Material(
            "images", "JPEGs in class folders", num_images, is_quick, None, folder / "images" / "photos"
        ),
    ]
    return {material.name: material for material in materials}


def ensure_produced(names: list[str], is_quick: bool) -> None:
    """Make the sources that are missing or were made from other parameters."""
    materials = list_material(is_quick)
    for name in names:
        if materials[name].is_complete():
            continue
        print(f"making {name} at {materials[name].source}", flush=True)
        run_production([name, *(["--quick"] if is_quick else [])])


def run_production(arguments: list[str]) -> None:
    """Make something with production.py."""
    command = [sys.executable, str(HERE / "production.py"), *arguments]
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"{' '.join(arguments)} could not be made:\n{finished.stderr[-2000:]}")
