"""The worst mistakes of a model, with the inputs of these records.

In: truths, predictions, and the split they come from. Out: `Mistake`s, the greatest loss first.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.dataset import Split
from penstock.decode.sample import shorten_value
from penstock.errors import PenstockError
from penstock.model.task import Task
from penstock.schema.date import show_date
from penstock.score.scores import Number, compute_losses, predict_codes, to_number
from penstock.transform.vocabulary import Entry


@dataclass(frozen=True)
class Mistake:
    """A record that a model predicts wrongly.

    Attributes:
        row: Number of the record in the split.
        file: Path of the file that holds the record.
        record: Number of the record in that file.
        truth: True label, labels or number.
        prediction: Predicted label, labels or number.
        probability: Predicted probability of the prediction; None for numbers and for several labels.
        loss: Log loss of the record, or the absolute error of the number.
        inputs: Stored values of the record, shortened; images as format and size.
    """

    row: int
    file: str
    record: int
    truth: Any
    prediction: Any
    probability: Number
    loss: Number
    inputs: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dict(vars(self))


def find_mistakes(
    task: Task,
    truth: NDArray[Any],
    predicted: NDArray[Any],
    rows: NDArray[np.int64],
    split: Split,
    targets: Container[str],
    most: int,
) -> list[Mistake]:
    """Return the worst mistakes."""
    mistakes, source = [], split.as_source()
    for at in find_worst(task, truth, predicted, most).tolist():
        row = int(rows[at])
        shard, record = source.rows.locate(row)
        loss = to_number(compute_losses(task, truth[at : at + 1], predicted[at : at + 1])[0])
        label, probability = show_prediction(task, predicted[at])
        inputs = read_inputs(split, row, targets)
        mistakes.append(
            Mistake(
                row, str(shard.path), record, show_truth(task, truth[at]), label, probability, loss, inputs
            )
        )
    return mistakes


def find_worst(task: Task, truth: NDArray[Any], predicted: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Return the indices of the wrong records, the greatest loss first, at most `most`."""
    losses = compute_losses(task, truth, predicted)
    if task.kind == "regression":
        is_wrong = losses > 0
    else:
        is_wrong = (predict_codes(task, predicted) != truth).reshape(len(truth), -1).any(axis=1)
    wrong = np.flatnonzero(is_wrong & np.isfinite(losses))
    return wrong[np.argsort(-losses[wrong], kind="stable")[:most]]


def show_truth(task: Task, value: Any) -> Any:
    """Return the true value of a record as JSON can hold it: a label, labels, numbers, or a date as text."""
    if task.unit is not None:
        return show_date(round(float(value)), task.unit) if np.isfinite(value) else None
    if task.kind == "regression":
        numbers = np.asarray(value, np.float64)
        return to_number(float(numbers)) if numbers.ndim == 0 else [to_number(each) for each in numbers]
    if task.kind == "multilabel":
        return [plain_label(task.labels[code]) for code in np.flatnonzero(value).tolist()]
    return plain_label(task.labels[int(value)])


def show_prediction(task: Task, predicted: NDArray[Any]) -> tuple[Any, Number]:
    """Return the prediction for a record, as `show_truth` does, and its probability."""
    if task.kind == "regression":
        return show_truth(task, predicted), None
    code = predict_codes(task, predicted[None])[0]
    if task.kind == "multilabel":
        return show_truth(task, code), None
    probability = predicted[code] if task.kind == "multiclass" else predicted if code else 1 - predicted
    return show_truth(task, code), to_number(float(probability))


def plain_label(label: Entry | bytes) -> str | int:
    """Return a label as JSON can hold it."""
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else label


def read_inputs(samples: Split, row: int, targets: Container[str]) -> dict[str, Any]:
    """Return the stored values of a record except its targets, shortened.

    The result is empty if a field that the model does not read is damaged.
    """
    try:
        sample = samples[row]
    except PenstockError:
        return {}
    return {name: shorten_value(value) for name, value in sample.items() if name not in targets}
