"""TensorFlow Datasets: a `GeneratorBasedBuilder` with one split, prepared into a folder.

It shuffles, cuts shards and describes itself, as Penstock does; it knows no fsync and no checksums of files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from sources import NUM_CLASSES
from writers.frames import count_records
from writers.rows import Rows, open_rows
from writers.task import Task

SCALARS = {"float": np.float32, "int64": np.int64}


class Prepared(tfds.core.GeneratorBasedBuilder):
    """A data set made of rows."""

    VERSION = tfds.core.Version("1.0.0")
    # There are no downloads, whose checksums would lie beside the code; to look for them TFDS imports a
    # package that it does not install.
    code_path = None

    def __init__(self, rows: Rows, features: dict[str, Any], data_dir: str) -> None:
        self._rows = rows
        self._features = features
        super().__init__(data_dir=data_dir)

    def _info(self) -> Any:
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(self._features))

    def _split_generators(self, manager: Any) -> dict[str, Any]:  # noqa: ARG002 - its name is TFDS's
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        names = [name for name, _, _ in self._rows.fields]
        for number, row in enumerate(self._rows.take()):
            yield number, dict(zip(names, row, strict=True))


class Writer:
    """Makes the rows ready; a pass prepares one data set."""

    def __init__(self, task: Task) -> None:
        tfds.disable_progress_bar()
        self._rows = open_rows(task, "tolist")
        self._features = {
            name: _describe(name, kind, is_scalar, task) for name, kind, is_scalar in self._rows.fields
        }

    def write(self, out: Path) -> None:
        """Build."""
        Prepared(self._rows, self._features, str(out)).download_and_prepare()

    def count(self, out: Path) -> int:
        """Count frames."""
        return count_records(out)


def _describe(name: str, kind: str, is_scalar: bool, task: Task) -> Any:
    if task.spec is None:
        is_image = name == "image"
        return tfds.features.Image() if is_image else tfds.features.ClassLabel(num_classes=NUM_CLASSES)
    if kind in ("bytes", "text"):
        return tfds.features.Text()
    if is_scalar:
        return tfds.features.Scalar(SCALARS[kind])
    length = next(field.length for field in task.spec.fields if field.name == name)
    if length is None:
        return tfds.features.Sequence(SCALARS[kind])
    return tfds.features.Tensor(shape=(length,), dtype=SCALARS[kind])
