"""Predictions as columns of a table: labels in the type of the field, probabilities, numbers.

In: tasks, and the outputs of a model by target. Out: Arrow columns, and `Predictions`, the result of a
prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.decode.arrow import DATE_TYPES
from penstock.errors import OptionError, PenstockError
from penstock.foundation.html import Html, display_safely, make_block, make_line, make_table
from penstock.foundation.wording import count, show
from penstock.model.task import Task
from penstock.schema.date import DATE_LIMITS
from penstock.score.scores import THRESHOLD
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath

_Array = Any
HEAD_ROWS: Final = 10
"""Number of rows that are shown."""

_MOST_COLUMNS: Final = 8
_MOST_CHARS: Final = 24
_MOST_NAME_CHARS: Final = 40


class Answer:
    """Output columns of one target: their names and types are `fields`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        name, chance = task.name, pa.float32()
        self._labels: Any = pa.array(list(task.labels)) if task.labels else None
        fields = [pa.field(name, self._find_type())]
        if task.kind in ("binary", "multiclass"):
            fields.append(pa.field(f"{name}_probability", chance))
        if task.labels:
            fields += [pa.field(f"{name}_probability_{_word(label)}", chance) for label in task.labels]
        self.fields: list[pa.Field[Any]] = fields

    def make(self, values: NDArray[Any]) -> list[_Array]:
        """Return the arrays of some rows, from the outputs of the model; the label of NaN is null."""
        kind = self._task.kind
        if kind == "regression":
            return [self._make_numbers(values) if self._task.unit is None else self._make_dates(values)]
        chances = np.ascontiguousarray(values, np.float32)
        if kind == "multilabel":
            return [self._make_sets(chances), *map(_floats, chances.T)]
        if kind == "binary":
            chances = np.stack([1 - chances.reshape(-1), chances.reshape(-1)], axis=1)
            codes = (chances[:, 1] >= THRESHOLD).astype(np.int64)
        else:
            codes = chances.argmax(axis=1)
        given = chances[np.arange(len(codes)), codes]
        return [self._name(codes, np.isnan(given)), _floats(given), *map(_floats, chances.T)]

    def _find_type(self) -> Any:
        kind = None if self._labels is None else self._labels.type
        if self._task.kind == "multilabel":
            return pa.list_(kind)
        if kind is not None:
            return kind
        if self._task.unit is not None:
            return DATE_TYPES[self._task.unit]
        return pa.list_(pa.float32(), self._task.units) if self._task.shape else pa.float32()

    def _name(self, codes: NDArray[np.int64], is_null: NDArray[np.bool_]) -> _Array:
        return self._labels.take(pa.array(codes, mask=is_null if is_null.any() else None))

    def _make_sets(self, chances: NDArray[np.float32]) -> _Array:
        rows, codes = np.nonzero(chances >= THRESHOLD)
        offsets: Any = pa.array(np.searchsorted(rows, np.arange(len(chances) + 1)).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, self._labels.take(pa.array(codes)))

    def _make_numbers(self, values: NDArray[Any]) -> _Array:
        flat = _floats(np.asarray(values, np.float32).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, self._task.units) if self._task.shape else flat

    def _make_dates(self, values: NDArray[Any]) -> _Array:
        """Return predicted dates; null for NaN, and for numbers that are no dates of Python."""
        numbers = np.rint(np.asarray(values, np.float64).reshape(-1))
        low, high = DATE_LIMITS[self._task.unit or "days"]
        is_null = ~((numbers >= low) & (numbers <= high))
        whole = np.where(is_null, 0, numbers).astype(np.int64)
        stored = pa.array(whole.astype(np.int32) if self._task.unit == "days" else whole, mask=is_null)
        return stored.view(DATE_TYPES[self._task.unit or "days"])


class Answers:
    """Output columns of all targets, after the kept columns; a target that is kept is named `NAME_true`."""

    def __init__(self, answers: Mapping[str, Answer], kept: pa.Schema) -> None:
        """Determine the columns."""
        self._answers = answers
        fields = [each for answer in self._answers.values() for each in answer.fields]
        columns = list(kept)
        for index, column in enumerate(columns):
            if index and column.name in answers:  # the first column identifies the row
                columns[index] = column.with_name(f"{column.name}_true")
        self.schema = pa.schema([*columns, *fields])
        _refuse_clash([column.name for column in columns], [column.name for column in fields])

    def make(self, kept: pa.RecordBatch, outputs: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
        """Return the rows of the output."""
        arrays = [array for name, answer in self._answers.items() for array in answer.make(outputs[name])]
        return pa.RecordBatch.from_arrays([*kept.columns, *arrays], schema=self.schema)


def _refuse_clash(kept: list[str], made: list[str]) -> None:
    for name in [*kept, *made]:
        if kept.count(name) > 1:
            got, advice = "a target that is kept and another column", "Keep one of them."
        elif name in kept and name in made:
            got = "a column of the data and one of the predictions"
            advice = "Do not keep it, or rename it in the data."
        elif made.count(name) > 1:
            got, advice = "predictions of two targets", "Rename a target."
        else:
            continue
        expected = "unique column names in the output"
        raise OptionError(f"column {show(name)}", field=name, expected=expected, got=got, advice=advice)


def _floats(values: NDArray[np.float32]) -> _Array:
    return pa.array(np.ascontiguousarray(values))


def _word(label: object) -> str:
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


@dataclass(frozen=True)
class Predictions:
    """Result of a prediction.

    Attributes:
        num_rows: Number of rows that were predicted.
        num_skipped: Number of rows of the data that were skipped because they are not valid.
        out: Path of the file that was written, or None.
        table: Predictions, if no file was written, or None.
        head: First rows of the predictions.
        rejected: Errors of the skipped rows.
        notes: Notes about the data.
        cautions: Those notes that may change predictions, such as a column that does not exist.
    """

    num_rows: int
    num_skipped: int
    out: AnyPath | None
    table: pa.Table | None
    head: pa.Table
    rejected: list[PenstockError] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.head.schema.names)

    def to_arrow(self) -> pa.Table:
        """Return the predictions as an Arrow table; predictions in a file are read completely."""
        if self.table is not None:
            return self.table
        with locate(str(self.out)).copied() as path:
            if path.name.lower().endswith(".parquet"):
                return pq.read_table(path)
            read: Any = pyarrow.csv.read_csv if path.name.lower().endswith(".csv") else pyarrow.json.read_json
            table: pa.Table = read(path)
            return table

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the predictions as one dict per row."""
        return self.to_arrow().to_pylist()

    def to_pandas(self) -> Any:
        """Return the predictions as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def __len__(self) -> int:
        return self.num_rows

    def _repr_html_(self) -> str:
        return display_safely(repr(self), self._draw)

    def _draw(self) -> Html:
        names = self.columns[:_MOST_COLUMNS]
        columns = [map(_write, self.head.column(at).to_pylist()) for at in range(len(names))]
        hidden = len(self.columns) - len(names)
        more = [make_line(f"… {count(hidden, 'column')} more", is_faint=True)] if hidden else []
        rows = zip(*columns, strict=True)
        return make_block(repr(self), make_table(names, rows, num_rows=self.num_rows), *more)

    def __repr__(self) -> str:
        skipped = f", {self.num_skipped} skipped" if self.num_skipped else ""
        out = "" if self.out is None else f", out={str(self.out)!r}"
        return f"Predictions({count(self.num_rows, 'row')}{skipped}{out})"

    def __str__(self) -> str:
        names = self.columns[:_MOST_COLUMNS]
        cells = [[_write(value) for value in self.head.column(i).to_pylist()] for i in range(len(names))]
        shown = [[_cut(name, _MOST_NAME_CHARS), *column] for name, column in zip(names, cells, strict=True)]
        widths = [max(map(len, column)) for column in shown]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*shown, strict=True)
        ]
        rest = [f"… {count(self.num_rows, 'row')}"] if self.num_rows > self.head.num_rows else []
        hidden = len(self.columns) - len(names)
        rest += [f"… {count(hidden, 'column')} more"] if hidden else []
        return "\n".join([*lines, *rest])


def _write(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else _cut(str(value))


def _cut(text: str, most: int = _MOST_CHARS) -> str:
    # Texts come from files: a control character must not reach a terminal.
    plain = text if text.isprintable() else repr(text)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
