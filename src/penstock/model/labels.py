"""Whether the labels of a split are those that a model's losses take: found out before the first step.

In: a model, its tasks, a pipeline, a split. Out: nothing, or the error that names the first bad record; and
the tasks as the losses of a model of one's own mean them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.batch.build import LoadedSplit
from penstock.columns import Dense
from penstock.dataset import Split
from penstock.decode.gather import take_column
from penstock.errors import FieldError, OptionError
from penstock.filter.expression import parse_expression
from penstock.filter.scan import filter_rows
from penstock.foundation.wording import count, show
from penstock.model.outputs import find_losses, name_loss
from penstock.model.ports import find_outputs, is_graph, name_outputs
from penstock.model.task import Task
from penstock.schema.schema import Schema
from penstock.transform.category import Encode
from penstock.transform.keep import Keep
from penstock.transform.pipeline import Pipeline

_NUM_NAMED: Final = 5
_UNFILLED: Final = ("error", "mean", None)  # no value that a user chose for records without one


@dataclass(frozen=True)
class Labelled:
    """The records of a split that have every target.

    Attributes:
        filter: Selects these records, as the option of a loader; None where all have every target.
        num_records: How many these are.
        num_missing: How many records lack a target.
        targets: Names of the targets that records may lack.
        first: Numbers of the first records that lack one.
    """

    filter: str | None
    num_records: int
    num_missing: int = 0
    targets: tuple[str, ...] = ()
    first: tuple[int, ...] = ()

    def describe(self, split: str) -> str:
        """Say how many records are left out, and why."""
        total = self.num_records + self.num_missing
        names = " or ".join(map(show, self.targets))
        return f"{self.num_missing:,} of {total:,} records of {split!r} have no {names}"

    def make_error(self, split: str) -> FieldError:
        """Return the error for records that lack a target, where that is not allowed."""
        rows = ", ".join(map(str, self.first)) + (", …" if self.num_missing > len(self.first) else "")
        return FieldError(
            f"target {' or '.join(map(show, self.targets))} of split {split!r}",
            field=self.targets[0],
            record=self.first[0],
            expected="a value in each record",
            got=f"none in {count(self.num_missing, 'record')}: {rows}",
            advice="Leave them out: --unlabelled drop, in Python unlabelled='drop'; or complete the data.",
        )


def find_labelled(source: LoadedSplit, pipeline: Pipeline, num_threads: int = 1) -> Labelled:
    """Find the records of a split that have every target of a pipeline.

    Only the targets that records may lack are read. A target with a default is never missing.

    Args:
        source: The records.
        pipeline: What is made of them.
        num_threads: How many threads read.

    Raises:
        OptionError: The name of a target cannot be written in a filter.
    """
    names = _list_optional(source.schema, pipeline)
    if not names:
        return Labelled(None, len(source.rows))
    for name in names:
        if "`" in name:
            advice = "Rename it: --rename OLD=NEW of 'penstock convert', rename={…} of ps.convert."
            expected = "a name without a backtick, as records without this target are left out by a filter"
            raise OptionError(f"target {show(name)}", field=name, expected=expected, got=name, advice=advice)
    # Those that lack a target are sought, not those that have all: a bad record that is skipped is neither.
    lacking = filter_rows(
        source.rows,
        source.schema,
        parse_expression(" or ".join(f"`{name}` is None" for name in names), source.schema),
        source.losses,
        strict=source.strict,
        num_threads=num_threads,
    )
    if not len(lacking):
        return Labelled(None, len(source.rows), targets=names)
    text = " and ".join(f"`{name}` is not None" for name in names)
    first = lacking.select(np.arange(min(_NUM_NAMED, len(lacking)))).tolist()
    return Labelled(text, len(source.rows) - len(lacking), len(lacking), names, tuple(first))


def _list_optional(schema: Schema, pipeline: Pipeline) -> tuple[str, ...]:
    """Return the targets that records may lack, and for which no transform or map gives a value instead."""
    roles = pipeline.schema
    return tuple(
        name
        for name, transform in pipeline.transforms.items()
        if roles[name].role == "target"
        and name in schema
        and schema[name].optional
        and schema[name].default is None
        and getattr(transform, "missing", "error") in _UNFILLED
    )


_ROWS_WANTED: Final = ("categorical", "kl_divergence", "kullback")  # a row of probabilities a record
_BLOCK_ROWS: Final = 1 << 16


def read_tasks(model: keras.Model, tasks: Mapping[str, Task]) -> dict[str, Task]:
    """Return the tasks as the losses of a compiled model mean them.

    A target of whole numbers that are kept, of which nothing says that they are classes, is one of classes
    where the loss is sparse: 0 to the number of outputs - 1.
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
    """Refuse labels that a loss cannot take: fractions for classes, or classes that are none.

    All labels of the split are read, those fields alone.

    Raises:
        FieldError: A label is none; the message names the first such record.
    """
    losses = find_losses(model, tasks)
    for name, task in read_tasks(model, tasks).items():
        transform = pipeline.transforms.get(name)
        loss = name_loss(losses.get(name))
        if task.kind in ("binary", "multiclass") and loss.startswith(_ROWS_WANTED):
            better = "binary_crossentropy" if task.kind == "binary" else "sparse_categorical_crossentropy"
            raise OptionError(
                f"loss of target {name!r}",
                field=name,
                expected="one that takes codes of classes",
                got=repr(loss),
                advice=f"Compile the model with {better!r}.",
            )
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
        # Records without a label are counted and left out elsewhere.
        rows = np.arange(len(column)) if column.present is None else np.flatnonzero(column.present)
        try:
            transform.apply(name, take_column(column, rows), None)
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
                advice=f"Correct the record; or let classes be found: {name}=Encode() of Pipeline.fit, in a "
                "file for --config {kind: encode} for the field.",
            )
