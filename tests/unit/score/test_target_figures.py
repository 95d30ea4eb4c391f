"""Curves of predictions, against points that were counted by hand."""

import json

import numpy as np
import pytest

from penstock.model.task import Task
from penstock.score.scores import score
from penstock.score.target_figures import (
    MOST_CURVES,
    MOST_POINTS,
    MOST_RESIDUALS,
    describe_confusion,
    describe_curves,
)

BINARY = Task("adopted", "binary", ("no", "yes"))
CLASSES = Task("breed", "multiclass", ("a", "b", "c"))
LABELS = Task("tags", "multilabel", ("x", "y"), (2,))
NUMBERS = Task("price", "regression")

# From the highest score on: yes, no, (yes, no) with equal scores, no.
TRUTH = np.array([0, 1, 0, 1, 0])
CHANCES = np.array([0.7, 0.9, 0.5, 0.5, 0.1])


def test_roc_and_precision_recall_have_a_point_per_distinct_score():
    (found,) = describe_curves(BINARY, TRUTH, CHANCES)["classes"]
    assert found["label"] == "yes"
    assert found["roc"]["false_positive_rate"] == pytest.approx([0, 0, 1 / 3, 2 / 3, 1], abs=1e-6)
    assert found["roc"]["true_positive_rate"] == [0, 0.5, 0.5, 1, 1]
    assert found["pr"]["recall"] == [0.5, 0.5, 1, 1]
    assert found["pr"]["precision"] == pytest.approx([1, 1 / 2, 2 / 4, 2 / 5])


def test_area_below_the_roc_points_is_the_auc():
    draws = np.random.default_rng(3)
    truth = draws.integers(0, 2, 5000)
    chances = np.clip(truth * 0.3 + draws.random(5000) * 0.7, 0, 1)
    (found,) = describe_curves(BINARY, truth, chances)["classes"]
    x, y = found["roc"]["false_positive_rate"], found["roc"]["true_positive_rate"]
    assert len(x) <= MOST_POINTS + 1
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(y, x) == pytest.approx(score(BINARY, truth, chances)["auc"], abs=2e-3)


def test_calibration_bins_are_the_bins_of_the_calibration_error():
    bins = describe_curves(BINARY, TRUTH, CHANCES)["calibration"]
    assert sum(each["records"] for each in bins) == 5
    (half,) = (each for each in bins if each["records"] == 2)
    assert (half["low"], half["probability"], half["frequency"]) == (7 / 15, 0.5, 0.5)
    error = sum(each["records"] * abs(each["frequency"] - each["probability"]) for each in bins) / 5
    assert error == pytest.approx(score(BINARY, TRUTH, CHANCES)["ece"])


def test_calibration_of_several_classes_is_the_calibration_of_the_likeliest():
    truth = np.array([0, 1, 2, 2])
    chances = np.array([[0.9, 0.05, 0.05], [0.9, 0.1, 0.0], [0.2, 0.2, 0.6], [0.3, 0.1, 0.6]])
    found = describe_curves(CLASSES, truth, chances)
    assert [(each["records"], each["frequency"]) for each in found["calibration"]] == [(2, 1.0), (2, 0.5)]
    assert [each["label"] for each in found["classes"]] == ["a", "b", "c"]


def test_classes_without_records_and_beyond_the_limit_have_no_curves():
    labels = tuple(f"c{code}" for code in range(40))
    truth = np.repeat(np.arange(30), np.arange(1, 31))
    chances = np.full((len(truth), 40), 1 / 40)
    found = describe_curves(Task("breed", "multiclass", labels), truth, chances)
    assert [each["label"] for each in found["classes"]] == [f"c{code}" for code in range(22, 30)]
    assert len(found["classes"]) == MOST_CURVES


def test_labels_of_a_set_have_curves_each_and_one_calibration():
    truth = np.array([[1, 0], [0, 0], [1, 0]])
    chances = np.array([[0.9, 0.1], [0.1, 0.1], [0.9, 0.1]])
    found = describe_curves(LABELS, truth, chances)
    assert [each["label"] for each in found["classes"]] == ["x"]  # the other is in no record
    assert [(each["records"], each["frequency"]) for each in found["calibration"]] == [(4, 0), (2, 1)]


def test_residuals_are_prediction_minus_truth():
    found = describe_curves(NUMBERS, np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0]))["residuals"]
    assert (found["truth"], found["prediction"], found["values"]) == ([1, 2, 3], [2, 2, 5], 3)
    assert (found["edges"], found["counts"]) == ([-0.5, 0.5, 1.5, 2.5], [1, 1, 1])


def test_residuals_of_many_numbers_are_thinned_and_all_are_counted():
    truth = np.arange(10_000.0)
    found = describe_curves(NUMBERS, truth, truth * 1.01)["residuals"]
    assert len(found["truth"]) == MOST_RESIDUALS
    assert sum(found["counts"]) == found["values"] == 10_000


def test_huge_numbers_and_one_record_are_described():
    huge = np.array([1e308, -1e308])
    found = describe_curves(NUMBERS, huge, -huge)["residuals"]
    assert found["counts"] == []  # the differences are infinite
    json.dumps(found, allow_nan=False)
    one = describe_curves(BINARY, np.array([1]), np.array([0.25]))
    assert one["classes"] == []
    assert one["calibration"][0]["records"] == 1


def test_undefined_scores_have_no_curves():
    assert describe_curves(BINARY, np.array([1]), np.array([np.nan])) == {}
    assert describe_curves(NUMBERS, np.zeros(0), np.zeros(0)) == {}


def test_most_frequent_confusions_are_listed_for_any_number_of_classes():
    labels = tuple(f"c{code}" for code in range(300))
    truth = np.array([5, 5, 5, 7, 8])
    chances = np.zeros((5, 300))
    chances[np.arange(5), [6, 6, 5, 9, 8]] = 1
    found = describe_confusion(Task("breed", "multiclass", labels), truth, chances)
    assert found["matrix"] is None
    assert found["pairs"] == [["c5", "c6", 2], ["c7", "c9", 1]]
