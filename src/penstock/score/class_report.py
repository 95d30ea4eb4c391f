"""Scores of each class and the confusion matrix.

In: truths and predictions of a target with labels. Out: both in their JSON form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Task
from penstock.score.evaluation import MOST_CLASSES
from penstock.score.metrics import auc, confusion_matrix, count_classes, count_once
from penstock.score.mistakes import plain_label
from penstock.score.scores import is_scorable, predict_codes, score, to_number


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
    or predictions that are not finite.
    """
    labels = [plain_label(label) for label in task.labels]
    if not is_scorable(truth, predicted) or len(labels) > MOST_CLASSES:
        return {"labels": labels, "matrix": None}
    codes = predict_codes(task, predicted)
    if task.kind == "multilabel":
        pairs = zip(truth.T, codes.T, strict=True)
        return {"labels": labels, "matrix": [confusion_matrix(*each, 2).tolist() for each in pairs]}
    return {"labels": labels, "matrix": confusion_matrix(truth, codes, len(labels)).tolist()}


def _describe_label(truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    task = Task("label", "binary", (0, 1))
    found = describe_classes(task, truth, predicted)[1]
    kept = {name: found[name] for name in ("precision", "recall", "support")}
    return {**kept, **score(task, truth, predicted)}
