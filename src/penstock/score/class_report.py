"""Scores of each class and the confusion matrix.

In: truths and predictions of a target with labels. Out: both in their JSON form.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Task
from penstock.score.evaluation import MOST_CLASSES
from penstock.score.metrics import auc, confusion_matrix, count_classes, count_once
from penstock.score.mistakes import plain_label
from penstock.score.scores import is_scorable, predict_codes, score, to_number

_MOST_PAIRS: Final = 20


def describe_classes(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> list[dict[str, Any]]:
    """Return precision, recall, F1, support and AUC of each label; for a multilabel target, all scores."""
    if not is_scorable(truth, predicted):
        return []
    if task.kind == "multilabel":
        return [
            {"label": plain_label(label), **_describe_label(truth[:, code], predicted[:, code])}
            for code, label in enumerate(task.labels)
        ]
    once = count_once(len(truth))
    found = count_classes(truth, predict_codes(task, predicted), len(task.labels), once)
    # -p and not 1 − p, in which small probabilities become ties.
    class_scores = np.stack([-predicted, predicted], axis=1) if task.kind == "binary" else predicted
    return [
        {
            "label": plain_label(label),
            "precision": to_number(found.precision[0, code]),
            "recall": to_number(found.recall[0, code]),
            "f1": to_number(found.f1[0, code]),
            "support": int(found.support[0, code]),
            "auc": to_number(auc(truth == code, class_scores[:, code])),
        }
        for code, label in enumerate(task.labels)
    ]


def describe_confusion(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return the labels and the confusion matrix: rows are true classes, columns are predicted ones.

    For a multilabel target, one 2 × 2 matrix per label. The matrix is None if there are more than 200 labels,
    or predictions that are not finite. `pairs` are the most frequent confusions of two classes, for any
    number of labels: true label, predicted label, number of records.
    """
    labels = [plain_label(label) for label in task.labels]
    if not is_scorable(truth, predicted):
        return {"labels": labels, "matrix": None, "pairs": []}
    codes = predict_codes(task, predicted)
    if task.kind == "multilabel":
        each_label = zip(truth.T, codes.T, strict=True)
        is_listed = len(labels) <= MOST_CLASSES
        matrices = [confusion_matrix(*each, 2).tolist() for each in each_label] if is_listed else None
        return {"labels": labels, "matrix": matrices, "pairs": []}
    matrix = confusion_matrix(truth, codes, len(labels)).tolist() if len(labels) <= MOST_CLASSES else None
    return {"labels": labels, "matrix": matrix, "pairs": _find_pairs(labels, truth, codes)}


def _find_pairs(labels: list[str | int], truth: NDArray[Any], codes: NDArray[np.int64]) -> list[list[Any]]:
    """Return the most frequent pairs of a true and another predicted label, and their numbers of records."""
    wrong = np.flatnonzero(truth != codes)
    cells, counts = np.unique(truth[wrong] * len(labels) + codes[wrong], return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:_MOST_PAIRS]
    pairs = zip(cells[kept].tolist(), counts[kept].tolist(), strict=True)
    return [[labels[cell // len(labels)], labels[cell % len(labels)], number] for cell, number in pairs]


def _describe_label(truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    task = Task("label", "binary", (0, 1))
    found = describe_classes(task, truth, predicted)[1]
    kept = {name: found[name] for name in ("precision", "recall", "support")}
    return {**kept, **score(task, truth, predicted)}
