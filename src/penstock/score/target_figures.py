"""Figures of a target beside its scores: scores of each class, the confusion matrix, and curves for charts.

In: truths and predictions of a target. Out: their JSON form. The curves are ROC, precision–recall,
calibration and residuals of numbers, with at most a few hundred points each.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Task
from penstock.score.evaluation import MOST_CLASSES
from penstock.score.metrics import Calibration, Ranking, auc, confusion_matrix, count_classes, count_once
from penstock.score.mistakes import plain_label
from penstock.score.scores import is_scorable, predict_codes, score, to_number
from penstock.statistics.frequency import choose_edges, count_values

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


MOST_CURVES: Final = 8
"""Maximum number of classes with separate curves: the classes with the most records."""

MOST_POINTS: Final = 100
"""Maximum number of points per curve: a chart of a few hundred pixels shows no more."""

MOST_RESIDUALS: Final = 400
"""Maximum number of pairs of true and predicted numbers, at even distances among the records."""


def describe_curves(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Return the curves of a target, or an empty dict if its scores are undefined.

    Classes: `classes`, for each of the most frequent ones its label and the points of its ROC curve
    (`false_positive_rate`, `true_positive_rate`) and its precision–recall curve (`recall`, `precision`); and
    `calibration`, the bins of the expected calibration error: of the second of two labels, of the most likely
    class, or of all labels of a multilabel target together.

    Numbers: `residuals`, pairs of `truth` and `prediction`, and the histogram of prediction − truth.
    """
    if not is_scorable(truth, predicted):
        return {}
    if task.kind == "regression":
        return {"residuals": _describe_residuals(truth, predicted)}
    return {
        "classes": _describe_classes(task, truth, predicted),
        "calibration": _describe_calibration(task, truth, predicted),
    }


def _describe_classes(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> list[dict[str, Any]]:
    if task.kind == "binary":
        pairs = {1: (truth > 0, predicted)}
    elif task.kind == "multilabel":
        supports = (truth > 0).sum(axis=0)
        pairs = {code: (truth[:, code] > 0, predicted[:, code]) for code in _find_largest(supports)}
    else:
        supports = np.bincount(truth, minlength=len(task.labels))
        pairs = {code: (truth == code, predicted[:, code]) for code in _find_largest(supports)}
    found = []
    for code, (is_true, scores) in pairs.items():
        if is_true.any() and not is_true.all():
            points = _describe_ranking(Ranking(is_true, scores))
            found.append({"label": plain_label(task.labels[code]), **points})
    return found


def _find_largest(supports: NDArray[Any]) -> list[int]:
    """Return the codes with the most records, in ascending order."""
    return sorted(np.argsort(-supports, kind="stable")[:MOST_CURVES].tolist())


def _describe_ranking(ranking: Ranking) -> dict[str, Any]:
    positives, negatives = ranking.count_above()
    recall, fallout = positives / positives[-1], negatives / negatives[-1]
    # Even distances along the ROC curve, which is (0, 0) to (1, 1); the first threshold predicts nothing.
    kept = _thin(recall + fallout)
    roc = {
        "false_positive_rate": [0.0, *_plain(fallout[kept])],
        "true_positive_rate": [0.0, *_plain(recall[kept])],
    }
    precision = positives / (positives + negatives)
    kept = _thin(recall)
    return {"roc": roc, "pr": {"recall": _plain(recall[kept]), "precision": _plain(precision[kept])}}


def _thin(position: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return indices of points at about even distances of an ascending position, with both ends."""
    if len(position) <= MOST_POINTS:
        return np.arange(len(position))
    wanted = np.linspace(position[0], position[-1], MOST_POINTS)
    return np.unique(np.minimum(np.searchsorted(position, wanted), len(position) - 1))


def _describe_calibration(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any]
) -> list[dict[str, int | float | None]]:
    if task.kind == "multiclass":
        codes, at = predict_codes(task, predicted), np.arange(len(truth))
        calibration = Calibration(predicted[at, codes], codes == truth)
    else:
        calibration = Calibration(predicted.reshape(-1), truth.reshape(-1) > 0)
    return [
        {
            "low": number / calibration.num_bins,
            "high": (number + 1) / calibration.num_bins,
            "records": int(records),
            "probability": to_number(probability),
            "frequency": to_number(frequency),
        }
        for number, (records, probability, frequency) in enumerate(calibration.bins())
        if records
    ]


def _describe_residuals(truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    true, guessed = (np.asarray(each, np.float64).reshape(-1) for each in (truth, predicted))
    with np.errstate(over="ignore", invalid="ignore"):
        differences = guessed - true
    differences = differences[np.isfinite(differences)]  # the difference of two doubles may not be a double
    edges = choose_edges(differences)
    kept = np.unique(np.linspace(0, len(true) - 1, min(len(true), MOST_RESIDUALS)).astype(np.int64))
    return {
        "values": len(true),
        "truth": _plain(true[kept]),
        "prediction": _plain(guessed[kept]),
        "edges": _plain(edges),
        "counts": count_values(differences, edges).tolist(),
    }


def _plain(values: NDArray[np.floating]) -> list[float | None]:
    return [to_number(float(f"{value:.6g}")) for value in values.tolist()]
