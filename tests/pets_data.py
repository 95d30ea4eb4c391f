"""A small data set with a field of each kind, loaders over it, and what its batches are, for the bridges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.batch.loader import Loader
from penstock.columns import Ragged
from penstock.transform.pipeline import Pipeline

BATCH_SIZE = 4


def write_pets(folder: Path, num_records: int, *, is_wide: bool = False) -> ps.Dataset:
    """Write records whose every value says which record it is; with lists and large arrays, if wide."""
    numbers = np.arange(num_records)
    columns: dict[str, Any] = {
        "id": [f"pet-{i}" for i in numbers],
        "number": numbers.astype(np.int64),
        "age": numbers / 8,
        "kind": [("cat", "dog", "eel")[i % 3] for i in numbers],
        "adopted": [("no", "yes")[i % 2] for i in numbers],
    }
    fields: dict[str, Any] = {"number": ps.fields.Number("int64")}
    if is_wide:
        columns["tokens"] = [list(range(i % 5)) for i in numbers]
        columns["photo"] = [np.full((64, 64), i, np.float32) for i in numbers]
        fields |= {"tokens": ps.fields.Sequence("int64"), "photo": ps.fields.Tensor((64, 64), "float32")}
    return ps.convert(columns, folder, id="id", target="adopted", fields=fields, split="train=1.0", seed=1)


def make_pipeline(pets: ps.Dataset, **overrides: Any) -> Pipeline:
    return Pipeline.fit(pets, number={"kind": "keep"}, **overrides)


def make_loader(pets: ps.Dataset, pipeline: Pipeline | None = None, **choices: Any) -> Loader:
    choices = {"batch_size": BATCH_SIZE, "shuffle": True, "seed": 3, "num_threads": 2, **choices}
    return pets["train"].loader(pipeline or make_pipeline(pets), **choices)


def read_epochs(loader: Loader, num_epochs: int) -> list[Any]:
    """Return every batch of some epochs, frozen."""
    return [freeze(batch) for epoch in range(num_epochs) for batch in loader.read(epoch)]


def freeze(value: Any) -> Any:
    """Return a batch, of arrays or of tensors, as bytes that can be compared."""
    if isinstance(value, dict):
        return {name: freeze(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return tuple(freeze(each) for each in value)
    if isinstance(value, Ragged):
        return freeze((value.values, value.offsets))
    if hasattr(value, "row_splits"):
        return freeze((value.values, value.row_splits))
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()
