"""The data sets of the benchmark: what they hold, where they lie, whether they must be written again.

In: a name and a size. Out: a `DatasetSpec` whose files exist. The writing itself needs TensorFlow and pyarrow
and runs in a separate process (`write_datasets.py`), so that the main process stays small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
STORE = Path(os.environ.get("PENSTOCK_BENCHMARKS", HERE))
"""The folder of `data/` and `results/`."""
NUM_SHARDS = 4
SEED = 20_240_817
# Goes up when write_datasets.py or values.py would write something else from the same parameters.
GENERATION = 1

Kind = Literal["float", "int64", "bytes"]


@dataclass(frozen=True)
class Field:
    """One field of a record: its kind and how many values it holds (None: any number)."""

    name: str
    kind: Kind
    length: int | None = 1


@dataclass(frozen=True)
class DatasetSpec:
    """One data set: fields, size, batch size, and whether the keys of each record are in random order."""

    name: str
    title: str
    fields: tuple[Field, ...]
    num_records: int
    batch_size: int
    folder: Path
    shuffled_from: str | None = None

    def shards(self, suffix: str) -> list[Path]:
        """Name the files of one format in the order of the records."""
        names = [f"{self.name}-{i:05d}-of-{NUM_SHARDS:05d}.{suffix}" for i in range(NUM_SHARDS)]
        return [self.folder / name for name in names]

    @property
    def records_per_shard(self) -> int:
        return self.num_records // NUM_SHARDS

    @property
    def parameters(self) -> dict[str, object]:
        """Everything the bytes depend on; written next to them when they are complete."""
        described: dict[str, object] = asdict(replace(self, folder=Path()))
        described["fields"] = [asdict(field) for field in self.fields]
        del described["folder"], described["batch_size"]
        return described | {"num_shards": NUM_SHARDS, "seed": SEED, "generation": GENERATION}

    @property
    def stamp(self) -> Path:
        return self.folder / "parameters.json"

    @property
    def labels(self) -> Path:
        """The labels of all records in order: what the sums of every competitor are checked against."""
        return self.folder / "labels.npy"

    @property
    def tfrecord_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.shards("tfrecord"))

    def is_complete(self) -> bool:
        """Whether the files on disk were written from these very parameters, to the end."""
        try:
            return bool(json.loads(self.stamp.read_text()) == self.parameters)
        except (OSError, ValueError):
            return False


LABEL = Field("label", "int64")
T_FIELDS = (
    *(Field(f"f{i:02d}", "float") for i in range(13)),
    *(Field(f"i{i:02d}", "int64") for i in range(13)),
    *(Field(f"s{i:02d}", "bytes") for i in range(13)),
    LABEL,
)
S_FIELDS = (Field("ids", "int64", None), Field("vector", "float", 64), LABEL)
B_FIELDS = (Field("blob", "bytes"), LABEL)
R_FIELDS = (Field("text", "bytes"), LABEL)


def list_datasets(is_quick: bool) -> dict[str, DatasetSpec]:
    """Describe every data set at its full size, or at one that a smoke test can afford."""
    folder = STORE / "data" / "quick" if is_quick else STORE / "data"
    # Of the quick table, one field has more distinct strings than the default `Encode` keeps: 10,000.
    tabular, lists, blobs, texts = (
        (20_000, 2_000, 500, 1_000) if is_quick else (200_000, 200_000, 20_000, 50_000)
    )
    specs = (
        DatasetSpec("T", "tabular, 40 fields", T_FIELDS, tabular, 1024, folder / "T"),
        DatasetSpec("T-shuffled", "T, random key order", T_FIELDS, tabular, 1024, folder / "T-shuffled", "T"),
        DatasetSpec("S", "5-200 ids and a vector of 64", S_FIELDS, lists, 1024, folder / "S"),
        DatasetSpec("B", "blobs of 40 KB", B_FIELDS, blobs, 256, folder / "B"),
        DatasetSpec("R", "reviews of 230 words", R_FIELDS, texts, 1024, folder / "R"),
    )
    return {spec.name: spec for spec in specs}


def ensure_written(names: list[str], is_quick: bool) -> None:
    """Write those data sets that are missing or were written from other parameters."""
    specs = list_datasets(is_quick)
    sources = [source for name in names if (source := specs[name].shuffled_from)]
    for name in dict.fromkeys(sources + names):
        if specs[name].is_complete():
            continue
        print(f"writing data set {name} to {specs[name].folder}", flush=True)
        command = [sys.executable, str(HERE / "write_datasets.py"), name, *(["--quick"] if is_quick else [])]
        finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if finished.returncode:
            raise RuntimeError(f"data set {name} could not be written:\n{finished.stderr[-2000:]}")
