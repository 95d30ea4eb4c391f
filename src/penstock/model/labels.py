"""Check that the labels of a split fit the losses of a model, before the first step.

In: a model, its tasks, a pipeline, a split. Out: nothing, or an error that names the first bad record; and
the tasks as the losses of a user's own model define them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.columns import Dense
from penstock.dataset import Split
from penstock.errors import FieldError
from penstock.foundation.wording import override
from penstock.model.class_outputs import check_loss
from penstock.model.logits import find_losses, name_loss
from penstock.model.signature import find_outputs, is_graph, name_outputs
from penstock.model.task import Task
from penstock.schema.scalar import find_labelled_rows
from penstock.transform.category import Encode
from penstock.transform.keep import Keep
from penstock.transform.pipeline import Pipeline

_BLOCK_ROWS: Final = 1 << 16


def read_tasks(model: keras.Model, tasks: Mapping[str, Task]) -> dict[str, Task]:
    """Return the tasks as the losses of a compiled model define them.

    A target of whole numbers, kept unchanged by the pipeline, has classes from 0 to the number of outputs - 1
    if its loss is a sparse categorical one.
    """
    losses = find_losses(model, tasks)
    found = dict(tasks)
    for name, task in tasks.items():
        is_sparse = name_loss(losses.get(name)).startswith("sparse_categorical")
        if task.kind == "regression" and not task.shape and is_sparse and is_graph(model):
            width = name_outputs(model, tasks, find_outputs(model))[name].shape[-1]
            if width is not None and width > 1:
                found[name] = replace(task, kind="multiclass", labels=tuple(range(width)))
    return found


def check_labels(model: keras.Model, tasks: Mapping[str, Task], pipeline: Pipeline, split: Split) -> None:
    """Raise an error for labels that do not fit the loss: fractions for classes, or unknown classes.

    All labels of the split are read, and no other fields.
    """
    losses = find_losses(model, tasks)
    for name, task in read_tasks(model, tasks).items():
        transform = pipeline.transforms.get(name)
        loss = name_loss(losses.get(name))
        check_loss(task, loss)
        if isinstance(transform, Encode):
            _check_codes(split, name, transform)
        if not isinstance(transform, Keep) or transform.fitted is None or task.shape:
            continue
        if task.kind in ("binary", "multiclass"):
            _check_values(split, name, 0, len(task.labels) - 1)
        elif loss == "binary_crossentropy":
            _check_values(split, name, 0, 1, is_whole=False)


def _check_codes(split: Split, name: str, transform: Encode) -> None:
    for start in range(0, len(split), _BLOCK_ROWS):
        column: Any = split.columns(start, min(start + _BLOCK_ROWS, len(split)), fields=[name])[name]
        # Records without a label are counted and skipped elsewhere.
        rows = np.flatnonzero(find_labelled_rows(split.schema[name], column))
        try:
            transform.apply(name, column.take(rows), None)
        except FieldError as error:
            error.what = f"{error.what} of split {split.name!r}"
            error.record = start + int(rows[error.record or 0])
            error.args = (str(error),)
            raise


def _check_values(split: Split, name: str, low: int, high: int, *, is_whole: bool = True) -> None:
    for start in range(0, len(split), _BLOCK_ROWS):
        column: Any = split.columns(start, min(start + _BLOCK_ROWS, len(split)), fields=[name])[name]
        if not isinstance(column, Dense):
            return
        values: NDArray[Any] = column.values
        bad = ~((values >= low) & (values <= high))
        if is_whole:
            bad |= values != np.floor(values.astype(np.float64))
        if column.present is not None:
            bad &= column.present
        if bad.any():
            row = int(np.argmax(bad))
            raise FieldError(
                f"label {name!r} of split {split.name!r}",
                field=name,
                record=start + row,
                expected=f"{low} or {high}" if high == 1 and is_whole else f"{low} to {high}",
                got=values[row].item(),
                advice=f"Fix the record; or encode the values as classes: {override(name, 'Encode()')}.",
            )
