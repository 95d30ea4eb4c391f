"""A bounded sample of a split, from which all figures about the data come.

In: a split, and how many records to read. Out: `SplitSample`: statistics, sampled numbers, and one key per
record and field, by which equal values are found. Blocks of records are read at even distances, one block at
a time, so that memory does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Column, Dense, Mask, Ragged
from penstock.dataset import Split
from penstock.plan.leakage import ComparableColumn
from penstock.statistics.statistics import Statistics, measure_block
from penstock.statistics.summary import FieldStatistics

_BLOCK_RECORDS: Final = 256
_BLOCK_BYTES: Final = 16 << 20
_MOST_BYTES: Final = 256 << 20  # of each split
_MOST_CELLS: Final = 4_000_000  # records × fields of all splits: 8 bytes of keys each
_LEAST_RECORDS: Final = 100
_MISSING: Final = np.uint64(0x9E3779B97F4A7C15)

Keys = NDArray[np.uint64]
_START: Final = np.zeros(1, np.int64)
EMPTY_KEY: Final = _native.hash_strings(np.zeros(0, np.uint8), _START, _START)[0]
"""Key of an empty text, list or byte string."""

OnRecords = Callable[[int, int], None]


@dataclass
class SplitSample:
    """Records of a split, measured.

    Attributes:
        name: Name of the split.
        num_records: Number of records of the split.
        num_bytes: Size of the split in bytes, uncompressed.
        num_read: Number of records that were measured.
        num_skipped: Number of bad records that were skipped on the way.
        fields: Statistics of each field.
        values: Sorted samples of the numbers of each field, by part of its statistics.
        keys: One key per record for each field; equal values have equal keys.
        present: Mask of the records that have a field; fields that all records have are not listed.
        numbers: Numbers of fields with one number per record.
    """

    name: str
    num_records: int
    num_bytes: int
    num_read: int = 0
    num_skipped: int = 0
    fields: dict[str, FieldStatistics] = field(default_factory=dict)
    values: dict[str, dict[str, NDArray[np.float64]]] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)
    present: dict[str, Mask] = field(default_factory=dict)
    numbers: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether all records of the split were measured."""
        return self.num_read + self.num_skipped >= self.num_records

    def compare(self, name: str) -> ComparableColumn:
        """Return the values of a field as numbers, for the check of target leakage."""
        present = self.present.get(name)
        values = self.numbers.get(name, self.keys[name])
        if name in self.numbers and values.dtype.kind == "f" and np.isnan(values).any():
            present = ~np.isnan(values) if present is None else present & ~np.isnan(values)
        values = values if present is None else values[present]
        return ComparableColumn(values, present, len(np.unique(values)), name in self.numbers)


def choose_records(split: Split, most: int, num_splits: int) -> int:
    """Return how many records of a split to read: fewer, if they are large or have many fields."""
    rows = split.as_source().rows
    room = _MOST_CELLS // max(1, len(split.schema) * num_splits)
    size = rows.frame_bytes(0, len(rows)) // max(1, len(rows))
    fitting = _MOST_BYTES // max(1, size)
    return min(len(rows), most, max(_LEAST_RECORDS, min(room, fitting)))


def sample_split(split: Split, num_wanted: int, on_records: OnRecords | None = None) -> SplitSample:
    """Read and measure records of a split.

    `on_records`: called with the number of records that are done, and of those that are wanted.
    """
    rows = split.as_source().rows
    sample = SplitSample(split.name, len(rows), rows.frame_bytes(0, len(rows)))
    statistics = Statistics(split.schema)
    keys: dict[str, list[Keys]] = {name: [] for name in split.schema}
    present: dict[str, list[Mask]] = {name: [] for name in split.schema}
    numbers: dict[str, list[NDArray[Any]]] = {
        name: [] for name, each in split.schema.items() if each.type_name in ("number", "date")
    }
    before = split.num_skipped
    for start, stop in _choose_ranges(len(rows), num_wanted, sample.num_bytes):
        columns = split.columns(start, stop)
        num_rows = max((len(column) for column in columns.values()), default=0)
        if not num_rows:
            continue
        order = _native.mix_rows(0, start, num_rows)
        statistics.merge(measure_block(split.schema, columns, None, order))
        for name, column in columns.items():
            keys[name].append(hash_values(column))
            present[name].append(np.array(column.mask()))
        for name, pieces in numbers.items():
            pieces.append(np.array(Dense.of(columns[name]).values))
        sample.num_read += num_rows
        if on_records is not None:
            on_records(sample.num_read, num_wanted)
    sample.num_skipped = split.num_skipped - before
    sample.fields = statistics.fields()
    sample.values = statistics.sampled_values()
    sample.keys = {name: _join(pieces, np.uint64) for name, pieces in keys.items()}
    masks = {name: _join(pieces, np.bool_) for name, pieces in present.items()}
    sample.present = {name: mask for name, mask in masks.items() if not mask.all()}
    sample.numbers = {
        name: _join(pieces, np.float64)
        for name, pieces in numbers.items()
        if all(each.ndim == 1 for each in pieces)
    }
    return sample


def _choose_ranges(num_records: int, num_wanted: int, num_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of records, ascending: all of them, or blocks at even distances."""
    size = num_bytes // max(1, num_records)
    block = max(1, min(_BLOCK_RECORDS, _BLOCK_BYTES // max(1, size), num_wanted))
    num_blocks = -(-min(num_wanted, num_records) // block)
    if num_blocks * block >= num_records:
        yield from ((start, min(start + block, num_records)) for start in range(0, num_records, block))
        return
    for number in range(num_blocks):
        start = number * num_records // num_blocks
        yield start, start + block


def hash_values(column: Column) -> Keys:
    """Return one key per row: equal values have equal keys, and others different ones, but for chance."""
    keys = _hash(column)
    if column.present is not None:
        keys[~column.present] = _MISSING
    return keys


def hash_rows(keys: Mapping[str, Keys]) -> Keys:
    """Return one key per record from the keys of its fields."""
    return _hash_array(np.stack(list(keys.values()), axis=1)) if keys else np.zeros(0, np.uint64)


def _hash(column: Column) -> Keys:
    if isinstance(column, Dense):
        return _hash_array(column.values)
    if isinstance(column, Bytes):
        return _native.hash_strings(*column.spans())
    values, offsets = Ragged.of(column).flatten()
    if isinstance(values, Bytes):
        # Of the strings' own keys, so that ["ab"] and ["a", "b"] differ.
        values = _native.hash_strings(*values.spans())
    flat = np.ascontiguousarray(values)
    width = flat.itemsize * int(np.prod(flat.shape[1:], dtype=np.int64))
    arena = flat.reshape(-1).view(np.uint8)
    return _native.hash_strings(arena, offsets[:-1] * width, offsets[1:] * width)


def _hash_array(values: NDArray[Any]) -> Keys:
    flat = np.ascontiguousarray(values)
    if flat.dtype.kind == "f":
        flat = flat + flat.dtype.type(0)  # -0.0 equals 0.0
    width = flat.itemsize * int(np.prod(flat.shape[1:], dtype=np.int64))
    starts = np.arange(len(flat), dtype=np.int64) * width
    return _native.hash_strings(flat.reshape(-1).view(np.uint8), starts, starts + width)


def _join(pieces: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype)
