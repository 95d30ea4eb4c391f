"""Scores by task, against numbers of another implementation, and where they are not defined."""

import json
import math

import numpy as np
import pytest

from penstock.model.task import Task
from penstock.score.scores import (
    CLASS_SCORES,
    NUMBER_SCORES,
    compute_losses,
    score,
    score_baseline,
    score_main,
)
from penstock.score.target_figures import describe_classes, describe_confusion

BINARY = Task("adopted", "binary", ("no", "yes"))
CLASSES = Task("breed", "multiclass", ("a", "b", "c", "d"))
LABELS = Task("tags", "multilabel", ("x", "y", "z"), (3,))
NUMBERS = Task("price", "regression")
VECTORS = Task("place", "regression", shape=(2,))

AT = np.arange(40)


def make_binary():
    truth = ((AT * 7) % 11 < 4).astype(np.int64)
    return truth, np.round(((AT * 37) % 101) / 101 * 0.6 + 0.4 * truth * ((AT * 5) % 7) / 7, 2)


def make_classes():
    truth = (AT * AT // 5 + AT) % 4
    raw = np.stack([((AT * (c + 3) * 13 + c * 29) % 97) / 97 + (truth == c) * 0.35 for c in range(4)], axis=1)
    return truth, raw / raw.sum(axis=1, keepdims=True)


def make_labels():
    truth = np.stack([(AT * (c + 2)) % 5 < 2 for c in range(3)], axis=1).astype(np.int64)
    chances = [
        ((AT * (c + 5) * 11 + c) % 89) / 89 * 0.7 + 0.3 * truth[:, c] * ((AT + c) % 3) / 2 for c in range(3)
    ]
    return truth, np.round(np.stack(chances, axis=1), 3)


def make_numbers():
    truth = np.round(np.sin(AT) * 10 + AT / 3, 3)
    return truth, np.round(truth + np.cos(AT * 3) * 2, 3)


def make_vectors():
    truth, guess = make_numbers()
    return np.stack([truth, truth * 3 + 1], axis=1), np.stack([guess, guess * 2], axis=1)


# What scikit-learn 1.9.1 gives for the same records; probabilities cut at 1e-7 for the log loss.
REFERENCE = {
    "adopted": {
        "accuracy": 0.875,
        "balanced_accuracy": 0.8333333333333333,
        "auc": 0.8773333333333333,
        "pr_auc": 0.8876143790849673,
        "f1": 0.8,
        "log_loss": 0.7853855646659674,
    },
    "breed": {
        "accuracy": 0.575,
        "balanced_accuracy": 0.5833333333333334,
        "auc": 0.8355654761904762,
        "pr_auc": 0.637965646485867,
        "f1": 0.5728512748973107,
        "log_loss": 1.0411789169135743,
    },
    "tags": {
        "accuracy": 0.5583333333333333,
        "balanced_accuracy": 0.5277777777777778,
        "auc": 0.5868055555555555,
        "pr_auc": 0.5560976065369996,
        "f1": 0.39768062397372744,
        "log_loss": 0.7913996374934339,
    },
    "price": {
        "rmse": 1.3605618232921282,
        "mae": 1.212175,
        "r2": 0.9703350181361825,
        "mape": 0.525404161401445,
    },
    "place": {
        "rmse": 8.207883594447475,
        "mae": 5.36,
        "r2": 0.7840765063171948,
        "mape": 0.5703651521961727,
    },
}
CASES = [
    (BINARY, make_binary),
    (CLASSES, make_classes),
    (LABELS, make_labels),
    (NUMBERS, make_numbers),
    (VECTORS, make_vectors),
]


@pytest.mark.parametrize(("task", "make"), CASES, ids=[task.name for task, _ in CASES])
def test_scores_of_forty_records_equal_scikit_learn(task, make) -> None:
    found = score(task, *make())
    for name, value in REFERENCE[task.name].items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize(("task", "make"), CASES, ids=[task.name for task, _ in CASES])
def test_scores_have_the_names_of_their_task_and_the_main_one_is_among_them(task, make) -> None:
    truth, predicted = make()
    found = score(task, truth, predicted)
    names = NUMBER_SCORES if task.kind == "regression" else CLASS_SCORES
    assert tuple(found) == names
    main = {"binary": "auc", "multiclass": "accuracy", "multilabel": "auc", "regression": "r2"}[task.kind]
    assert score_main(task, truth, predicted) == pytest.approx(found[main], abs=1e-12)


def test_calibration_error_of_two_bins_is_the_mean_gap_weighted_by_records() -> None:
    truth = np.array([1, 0, 0, 1])
    chances = np.array([0.72, 0.72, 0.72, 0.1])  # bins: 3 records with mean 0.72 and 1/3 true; one with 1
    assert score(BINARY, truth, chances)["ece"] == pytest.approx(0.75 * (0.72 - 1 / 3) + 0.25 * 0.9)


def test_calibration_error_of_classes_is_the_error_of_the_likeliest_one() -> None:
    chances = np.array([[0.7, 0.1, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]])
    assert score(CLASSES, np.array([0, 1]), chances)["ece"] == pytest.approx(0.2)


def test_confusion_of_classes_counts_truths_by_row() -> None:
    found = describe_confusion(CLASSES, *make_classes())
    assert found["labels"] == ["a", "b", "c", "d"]
    assert found["matrix"] == [[6, 2, 1, 3], [0, 6, 1, 1], [2, 2, 7, 1], [2, 0, 2, 4]]
    assert found["pairs"][:2] == [["a", "d", 3], ["a", "b", 2]]


def test_classes_are_described_each_as_scikit_learn_does() -> None:
    found = describe_classes(CLASSES, *make_classes())
    assert [each["label"] for each in found] == ["a", "b", "c", "d"]
    assert [each["support"] for each in found] == [12, 8, 12, 8]
    assert [each["precision"] for each in found] == pytest.approx([0.6, 0.6, 7 / 11, 4 / 9])
    assert [each["recall"] for each in found] == pytest.approx([0.5, 0.75, 7 / 12, 0.5])
    assert [each["f1"] for each in found] == pytest.approx([12 / 22, 2 / 3, 14 / 23, 8 / 17])


def test_labels_at_once_are_described_each_with_all_scores() -> None:
    truth, chances = make_labels()
    found = describe_classes(LABELS, truth, chances)
    assert [each["label"] for each in found] == ["x", "y", "z"]
    alone = score(BINARY, truth[:, 1], chances[:, 1])
    assert {name: found[1][name] for name in CLASS_SCORES} == alone
    assert found[1]["support"] == int(truth[:, 1].sum())
    matrix = describe_confusion(LABELS, truth, chances)["matrix"]
    assert np.array(matrix).sum(axis=(1, 2)).tolist() == [40, 40, 40]
    assert sum(matrix[1][1]) == int(truth[:, 1].sum())


def test_one_class_only_leaves_ranking_undefined_and_json_without_nan() -> None:
    found = score(BINARY, np.zeros(5, np.int64), np.linspace(0, 0.4, 5))
    assert found["auc"] is None
    assert found["pr_auc"] is None
    assert found["f1"] is None
    assert (found["accuracy"], found["balanced_accuracy"]) == (1.0, 1.0)
    json.dumps(found, allow_nan=False)
    assert score(BINARY, np.ones(5, np.int64), np.linspace(0, 0.4, 5))["auc"] is None


def test_class_that_is_nowhere_is_left_out_of_the_means() -> None:
    truth = np.array([0, 1, 0, 1])
    chances = np.array([[0.8, 0.1, 0.1, 0], [0.1, 0.8, 0.1, 0], [0.6, 0.3, 0.1, 0], [0.5, 0.4, 0.1, 0]])
    found = score(CLASSES, truth, chances)
    assert found["balanced_accuracy"] == 0.75
    assert found["f1"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert found["auc"] == 1.0


def test_probabilities_of_exactly_0_and_1_give_a_finite_log_loss() -> None:
    found = score(BINARY, np.array([0, 1, 1]), np.array([0.0, 1.0, 0.0], np.float32))
    assert found["log_loss"] == pytest.approx((2e-7 - math.log(1e-7)) / 3, rel=1e-6)
    everything = np.eye(4, dtype=np.float32)
    assert score(CLASSES, np.arange(4), everything)["log_loss"] == pytest.approx(1e-7, rel=1e-3)


def test_ties_count_half_in_auc() -> None:
    assert score(BINARY, np.array([0, 1, 0, 1]), np.full(4, 0.3))["auc"] == 0.5
    assert score(BINARY, np.array([0, 1, 1]), np.array([0.3, 0.3, 0.9]))["auc"] == 0.75


def test_probability_of_a_half_counts_as_the_second_label() -> None:
    assert score(BINARY, np.array([1]), np.array([0.5]))["accuracy"] == 1.0


def test_numbers_without_variance_have_no_r2() -> None:
    found = score(NUMBERS, np.full(4, 0.1), np.array([0.1, 0.2, 0.1, 0.1]))
    assert found["r2"] is None
    assert found["mae"] == pytest.approx(0.025)


def test_mape_leaves_out_truths_of_zero_and_is_none_without_others() -> None:
    assert score(NUMBERS, np.array([0.0, 2.0, -4.0]), np.array([1.0, 3.0, -4.0]))["mape"] == 0.25
    assert score(NUMBERS, np.zeros(3), np.ones(3))["mape"] is None


@pytest.mark.parametrize(("task", "make"), CASES, ids=[task.name for task, _ in CASES])
def test_no_records_have_no_scores_and_one_has_some(task, make) -> None:
    truth, predicted = make()
    assert set(score(task, truth[:0], predicted[:0]).values()) == {None}
    assert score_main(task, truth[:0], predicted[:0]) is None
    one = score(task, truth[:1], predicted[:1])
    assert one["mae" if task.kind == "regression" else "accuracy"] is not None
    assert one.get("auc") is None
    assert one.get("r2") is None


def test_predictions_that_are_no_numbers_have_no_scores() -> None:
    truth, chances = make_binary()
    chances[3] = np.nan
    assert set(score(BINARY, truth, chances).values()) == {None}
    assert describe_classes(BINARY, truth, chances) == []
    assert describe_confusion(BINARY, truth, chances)["matrix"] is None


def test_losses_of_records_are_log_losses_or_distances() -> None:
    assert compute_losses(BINARY, np.array([0, 1]), np.array([0.25, 0.25])) == pytest.approx(
        [-math.log(0.75), -math.log(0.25)]
    )
    assert compute_losses(CLASSES, np.array([3]), np.array([[0.1, 0.2, 0.3, 0.4]])) == pytest.approx(
        [-math.log(0.4)]
    )
    both = [-math.log(0.5), -math.log(0.5), -math.log(0.9)]
    assert compute_losses(LABELS, np.array([[1, 0, 1]]), np.array([[0.5, 0.5, 0.9]])) == pytest.approx(
        [sum(both) / 3]
    )
    assert compute_losses(VECTORS, np.array([[1.0, 2.0]]), np.array([[2.0, 5.0]])) == pytest.approx([2.0])


@pytest.mark.parametrize(
    ("task", "truth", "expected"),
    [
        (
            Task("y", "binary", ("no", "yes")),
            [0, 0, 0, 1],
            {"accuracy": 0.75, "balanced_accuracy": 0.5, "auc": 0.5, "pr_auc": 0.25, "f1": 0.0},
        ),
        (
            Task("y", "multiclass", ("a", "b", "c")),
            [1, 1, 2, 1],
            {"accuracy": 0.75, "balanced_accuracy": 0.5, "auc": 0.5, "pr_auc": 0.5},
        ),
        (Task("y", "multilabel", (10, 20), (2,)), [[1, 0], [1, 0], [1, 1], [0, 0]], {"accuracy": 0.75}),
        (Task("y", "regression"), [1.0, 2.0, 6.0], {"mae": 2.0, "r2": 0.0}),
        (Task("y", "regression", shape=(2,)), [[1.0, 5.0], [3.0, 9.0]], {"mae": 1.5, "r2": 0.0}),
    ],
)
def test_baseline_is_the_best_constant(task, truth, expected):
    truth = np.array(truth)
    found = score_baseline(task, truth)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    if task.kind == "binary":
        assert found["ece"] is None
        shares = np.bincount(truth) / len(truth)
        assert found["log_loss"] == pytest.approx(-np.sum(shares * np.log(shares)))
        assert found["log_loss"] < score(task, truth, np.full(len(truth), 0.3))["log_loss"]
    assert set(score_baseline(task, truth[:0]).values()) == {None}
