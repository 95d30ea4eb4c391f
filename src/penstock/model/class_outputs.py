"""Check that the outputs and losses of a model, and the labels of a split, fit the targets of classes.

In: a Keras model, the tasks of a pipeline, a split. Out: nothing, or an error that names the output, the loss
or the first bad record; and the tasks as the losses of a user's own model define them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.bridge.keras_model import name_model, takes_array
from penstock.columns import Dense
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import override
from penstock.model.batch_predictor import describe_shape
from penstock.model.logits import find_losses, name_loss
from penstock.model.signature import call_on_symbols, find_outputs, is_graph, name_outputs
from penstock.model.task import Kind, Task, find_tasks
from penstock.schema.scalar import find_labelled_rows
from penstock.transform.category import Encode
from penstock.transform.keep import Keep
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.dataset import Split

_log = logging.getLogger("penstock")

_ROWS_WANTED: Final = (
    "categorical",
    "kl_divergence",
    "kullback",
)  # losses that need one row of probabilities per record
_MEANINGS: Final[Mapping[Kind, str]] = {
    "binary": "one number per record, the probability of the second label",
    "multiclass": "one number per class",
    "multilabel": "one number per label",
    "regression": "the predicted numbers",
}


def check_class_outputs(model: keras.Model, pipeline: Pipeline, *, is_ordered: bool = False) -> None:
    """Raise an error for a compiled model whose last layer or loss does not fit the classes of a target.

    It is for models that their owner fits: only models that cannot learn the classes are refused. Two outputs
    with a sparse loss are right for two classes, and a loss or training step of a user's own may take
    anything. Outputs beyond the classes get a warning. A subclassed model is called on symbolic inputs, which
    builds it.

    `is_ordered`: whether the targets of a batch are matched with the outputs by position, not by name.
    """
    if not getattr(model, "compiled", False) or _has_own_step(model):
        return
    try:
        tasks = find_tasks(pipeline)
        outputs = find_outputs(model) if is_graph(model) else _call(model, pipeline)
    except (OptionError, AttributeError):  # targets that ps.train does not know, or a model that is not built
        return
    if outputs is None:
        return
    named, losses = _match_targets(model, tasks, outputs, is_ordered)
    for name, tensor in named.items():
        task, loss = tasks[name], name_loss(losses.get(name))
        if not task.labels or not loss.endswith("crossentropy"):
            continue
        _check_loss(task, loss)
        is_sparse = loss.startswith("sparse_categorical")
        width = tensor.shape[-1] if len(tensor.shape) > 1 else None
        if not is_sparse or task.kind != "binary" or width == 1:
            units = 2 if is_sparse and task.kind == "binary" else task.units
            if is_sparse and width is not None and width > units:
                _log.warning("%s", refuse_output(model, task, tensor, units))
            elif width is not None and width != units:
                raise refuse_output(model, task, tensor, units)
        if task.kind == "multiclass" and not is_sparse:
            raise refuse_loss(task, loss)


def _has_own_step(model: keras.Model) -> bool:
    """Return whether a user's own class decides which values a loss compares."""
    methods = ("train_step", "compute_loss")
    return any(getattr(type(model), name) is not getattr(keras.Model, name) for name in methods)


def _call(model: keras.Model, pipeline: Pipeline) -> Any:
    """Return the symbolic outputs of a subclassed model; None if it takes no symbolic inputs."""
    inputs = pipeline.inputs
    try:
        if takes_array(model, inputs):
            (output,) = inputs.values()
            return model(keras.KerasTensor((None, *output.shape), dtype=output.dtype))
        return call_on_symbols(model, inputs)
    except Exception:  # models fail in every way; Keras has the error of a proper call
        return None


def _match_targets(
    model: keras.Model, tasks: Mapping[str, Task], outputs: Any, is_ordered: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the outputs and the losses of the targets by name; outputs without a target are left out."""
    listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    losses = find_losses(model, tasks)
    if isinstance(outputs, Mapping):
        listed, named = list(outputs.values()), dict(outputs)
    else:
        names = getattr(model, "output_names", None) or ()
        named = dict(zip(names, listed, strict=False)) if len(listed) > 1 else {}
    if len(tasks) == len(listed) == 1:
        return dict(zip(tasks, listed, strict=True)), losses
    if is_ordered and len(tasks) == len(listed):
        if isinstance(model.loss, list | tuple):
            losses = dict(zip(tasks, model.loss, strict=False))
        return dict(zip(tasks, listed, strict=True)), losses
    found = {name: named[name] for name in tasks if name in named}
    if len(tasks) > 1 and model.loss is not None and not found and not is_ordered:
        return name_outputs(model, tasks, outputs), losses
    return found, losses


def _check_loss(task: Task, loss: str) -> None:
    """Refuse a loss, by its name, that needs one row of probabilities per record for a target of classes."""
    if task.kind in ("binary", "multiclass") and loss.startswith(_ROWS_WANTED):
        raise refuse_loss(task, loss)


def refuse_loss(task: Task, loss: str) -> OptionError:
    """Return the error for a loss that does not fit a target of classes."""
    better = "binary_crossentropy" if task.kind == "binary" else "sparse_categorical_crossentropy"
    return OptionError(
        f"loss of target {task.name!r}",
        field=task.name,
        expected="a loss that takes class indices",
        got=repr(loss),
        advice=f"Compile the model with {better!r}.",
    )


def refuse_output(model: keras.Model, task: Task, tensor: Any, units: int) -> OptionError:
    """Return the error for an output of another shape than `units` numbers per record."""
    advice = f"End it with keras.layers.Dense({units}, …)."
    if task.kind == "regression":
        advice += f" If {task.name!r} holds classes, use Encode() for it."
    meaning = _MEANINGS["multiclass" if units > task.units else task.kind]
    return OptionError(
        name_output(model, task),
        field=task.name,
        expected=f"shape {describe_shape((units,))}, {meaning}",
        got=describe_shape(tuple(tensor.shape[1:])) if len(tensor.shape) else "one number for all records",
        advice=advice,
    )


def name_output(model: keras.Model, task: Task) -> str:
    """Return the text for an output in error messages."""
    return f"output of {name_model(model)} for target {task.name!r}"


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
        _check_loss(task, loss)
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
