"""Columns to fit transforms on and to apply them to, without files."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from penstock.columns import Bytes, Column, Dense, Ragged
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.statistics.summary import FieldStatistics
from penstock.transform.base import Transform
from penstock.transform.measurement import measure_columns


def numbers(values: list[Any], dtype: str = "float32", shape: tuple[int, ...] | None = None) -> Dense:
    """Return a column of numbers, or of arrays; None is a missing one."""
    present = np.array([value is not None for value in values])
    filler = next((np.zeros_like(value) for value in values if value is not None), np.zeros(shape or ()))
    array = np.array([filler if value is None else value for value in values], dtype)
    return Dense(array if shape is None else array.reshape(-1, *shape), None if present.all() else present)


def strings(values: list[str | bytes | None]) -> Bytes:
    """Return a column of strings; None is a missing one."""
    present = np.array([value is not None for value in values])
    data = [value.encode() if isinstance(value, str) else value or b"" for value in values]
    offsets = np.zeros(len(data) + 1, np.int64)
    np.cumsum([len(each) for each in data], out=offsets[1:])
    arena = np.frombuffer(b"".join(data), np.uint8)
    return Bytes.from_offsets(arena, offsets, None if present.all() else present)


def lists(rows: list[Any], dtype: str = "int64", step: tuple[int, ...] = ()) -> Ragged:
    """Return a column of lists of numbers or strings, or of steps of one shape; None is a missing one."""
    present = np.array([row is not None for row in rows])
    items = [item for row in rows for item in row or ()]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row or ()) for row in rows], out=offsets[1:])
    values: Any = strings(items) if dtype == "string" else np.array(items, dtype).reshape(len(items), *step)
    return Ragged(values, offsets, None if present.all() else present)


def nested(rows: list[list[list[Any]]], dtype: str = "int64") -> Ragged:
    """Return a column of lists of lists."""
    steps = lists([step for row in rows for step in row], dtype)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return Ragged(steps, offsets)


class ColumnSource:
    """Columns as a source to fit on; it counts how often it is read."""

    def __init__(self, schema: Schema, columns: Mapping[str, Column]) -> None:
        self._schema = schema
        self._columns = columns
        self.num_passes = 0

    @property
    def num_rows(self) -> int:
        return len(next(iter(self._columns.values())))

    def knows(self, name: str) -> bool:
        return False

    def statistics(self, name: str) -> FieldStatistics:
        return measure_columns(self._schema.select(name), [{name: self._columns[name]}])[name]

    def columns(self, name: str, num_wanted: int | None = None) -> Iterator[Column]:
        self.num_passes += 1
        yield self._columns[name]

    def sample(self, name: str) -> Column:
        return self._columns[name]


def fit(transform: Transform, field: Field, column: Column, name: str = "x") -> Any:
    """Fit a transform to a column, and take it through JSON."""
    fitted = transform.fit(name, field, ColumnSource(Schema({name: field}), {name: column}))
    assert type(fitted).from_json(fitted.to_json()) == fitted
    return fitted


def run(transform: Transform, column: Any, name: str = "x") -> Any:
    """Apply a fitted transform; check that it gives what it promised; return the array, or all of several."""
    arrays = transform.apply(name, column, None)
    outputs = {output.name: output for output in transform.outputs(name)}
    assert list(arrays) == list(outputs)
    for key, value in arrays.items():
        assert outputs[key].accepts(value, len(column)), (outputs[key].describe(), value)
        parts = [value.values, value.offsets] if isinstance(value, Ragged) else [value]
        for part in parts:
            array = part.values if isinstance(part, Ragged) else part
            assert array.ctypes.data % 64 == 0
            assert array.flags.c_contiguous
    return arrays if len(arrays) > 1 else arrays[name]
