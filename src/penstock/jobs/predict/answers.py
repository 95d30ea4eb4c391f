"""What a model says, as columns of a table: labels in the field's own type, probabilities, numbers.

In: tasks, and a model's outputs by target. Out: Arrow columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.model.task import Task
from penstock.score.scores import THRESHOLD

_Array = Any


class Answer:
    """The columns of one target.

    Attributes:
        fields: Their names and types.
    """

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
        """Return the arrays for what the model said of some rows; where that is NaN, there is no label."""
        kind = self._task.kind
        if kind == "regression":
            return [self._make_numbers(values)]
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
        return pa.list_(pa.float32(), self._task.units) if self._task.shape else pa.float32()

    def _name(self, codes: NDArray[np.int64], is_nothing: NDArray[np.bool_]) -> _Array:
        return self._labels.take(pa.array(codes, mask=is_nothing if is_nothing.any() else None))

    def _make_sets(self, chances: NDArray[np.float32]) -> _Array:
        rows, codes = np.nonzero(chances >= THRESHOLD)
        offsets: Any = pa.array(np.searchsorted(rows, np.arange(len(chances) + 1)).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, self._labels.take(pa.array(codes)))

    def _make_numbers(self, values: NDArray[Any]) -> _Array:
        flat = _floats(np.asarray(values, np.float32).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, self._task.units) if self._task.shape else flat


class Answers:
    """The columns of all targets, behind those that are carried; a target that is carried is `NAME_true`.

    Attributes:
        schema: All columns of the output.
    """

    def __init__(self, tasks: Mapping[str, Task], carried: pa.Schema) -> None:
        """Find the columns.

        Raises:
            OptionError: Two of them have one name.
        """
        self._answers = {name: Answer(task) for name, task in tasks.items()}
        fields = [field for answer in self._answers.values() for field in answer.fields]
        kept = list(carried)
        for place, field in enumerate(kept):
            if place and field.name in tasks:  # the first names the row
                kept[place] = field.with_name(f"{field.name}_true")
        self.schema = pa.schema([*kept, *fields])
        _refuse_clash([field.name for field in kept], [field.name for field in fields])

    def make(self, carried: pa.RecordBatch, outputs: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
        """Return the rows of the output."""
        arrays = [array for name, answer in self._answers.items() for array in answer.make(outputs[name])]
        return pa.RecordBatch.from_arrays([*carried.columns, *arrays], schema=self.schema)


def _refuse_clash(carried: list[str], made: list[str]) -> None:
    for name in carried:
        if carried.count(name) > 1:
            raise OptionError(
                f"column {show(name)}",
                field=name,
                expected="names in the output that come once",
                got="a target that is kept and another column",
                advice="Keep one of them.",
            )
        if name in made:
            raise OptionError(
                f"column {show(name)}",
                field=name,
                expected="names in the output that come once",
                got="a column of the data and one of the predictions",
                advice="Do not keep it, or rename it in the data.",
            )
    for name in made:
        if made.count(name) > 1:
            raise OptionError(
                f"column {show(name)}",
                field=name,
                expected="names in the output that come once",
                got="predictions of two targets",
                advice="Rename a target.",
            )


def _floats(values: NDArray[np.float32]) -> _Array:
    return pa.array(np.ascontiguousarray(values))


def _word(label: object) -> str:
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)
