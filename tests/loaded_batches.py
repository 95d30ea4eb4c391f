"""Small data sets for loaders, and batches in a form that can be compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.columns import Bytes, Dense, Dictionary
from record_files import example, write_plain


def payload(number: int, **more: Any) -> bytes:
    """Return an Example whose values all follow from its number."""
    values = {
        "n": number,
        "x": number / 3,
        "s": f"value {number % 7}",
        "l": list(range(number % 5)),
        "w": 1.0 + number % 3,
        "y": number % 2,
    }
    return example(**{**values, **more})


def write_shards(folder: Path, counts: Sequence[int], split: str = "train", first: int = 0) -> list[Path]:
    """Write a split of numbered records, so many in each of its files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i, count in enumerate(counts):
        path = folder / f"{split}-{i:05}-of-{len(counts):05}.tfrecord"
        paths.append(write_plain(path, map(payload, range(first, first + count))))
        first += count
    return paths


SCHEMA = ps.Schema(
    {
        "n": ps.fields.Number("int64"),
        "x": ps.fields.Number(),
        "s": ps.fields.Text(),
        "l": ps.fields.Sequence("int64"),
        "w": ps.fields.Number(),
        "y": ps.fields.Number("int64", role="target"),
    }
)


def open_numbers(folder: Path, split: str = "train", **choices: Any) -> Any:
    """Open a split of numbered records; its target is `y`."""
    return ps.open(folder, **{"schema": SCHEMA, **choices})[split]


def numbers_of(batches: Iterable[Any]) -> list[list[int]]:
    """Return which records each batch holds."""
    return [batch[0]["n"].tolist() for batch in batches]


def freeze(value: Any) -> Any:
    """Return an array, a column or a batch as bytes and numbers: equal only if all of it is."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((name, freeze(each)) for name, each in value.items())
    if isinstance(value, tuple):
        return tuple(freeze(each) for each in value)
    return _freeze_column(value), None if value.present is None else value.present.tobytes()


def _freeze_column(column: Any) -> Any:
    if isinstance(column, Dense):
        return freeze(column.values)
    if isinstance(column, Dictionary):
        return column.codes.tobytes(), tuple(column.values)
    if isinstance(column, Bytes):
        return tuple(column)
    values = column.values
    if isinstance(values, np.ndarray):
        values = values[: column.offsets[-1]]
    return np.diff(column.offsets).tobytes(), freeze(values)


def freeze_all(batches: Iterable[Any]) -> list[Any]:
    """Return every batch in a form that can be compared; none of their memory is held."""
    return [freeze(batch) for batch in batches]
