"""Scores are what their definitions say, and a count of n is n copies of a record."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.task import Task
from penstock.score.metrics import NUM_BINS
from penstock.score.scores import CLASS_SCORES, NUMBER_SCORES, make_scorer, score

BINARY = Task("adopted", "binary", ("no", "yes"))
CLASSES = Task("breed", "multiclass", ("a", "b", "c"))
NUMBERS = Task("price", "regression")

SETTINGS = settings(max_examples=60)
chance = st.integers(0, 20).map(lambda each: each / 20)  # few values, so that there are ties
records = st.lists(st.tuples(st.booleans(), chance, st.integers(0, 3)), min_size=1, max_size=14)


def area_by_pairs(truth, scores):
    """The share of pairs that are in order."""
    pairs = [
        (p, n)
        for p, a in zip(scores, truth, strict=True)
        if a
        for n, b in zip(scores, truth, strict=True)
        if not b
    ]
    return sum((p > n) + (p == n) / 2 for p, n in pairs) / len(pairs) if pairs else None


def precision_by_thresholds(truth, scores):
    """The mean over positives of the precision among all that score at least as high."""
    if all(truth) or not any(truth):
        return None
    found = []
    for own, is_positive in zip(scores, truth, strict=True):
        if is_positive:
            above = [each for each, other in zip(truth, scores, strict=True) if other >= own]
            found.append(sum(above) / len(above))
    return sum(found) / len(found)


def calibration_by_bins(truth, scores):
    total = 0.0
    for number in range(NUM_BINS):
        low, high = number / NUM_BINS, (number + 1) / NUM_BINS
        inside = [
            (a, p)
            for a, p in zip(truth, scores, strict=True)
            if low <= p < high or (p == 1 and number == NUM_BINS - 1)
        ]
        if inside:
            total += abs(sum(a for a, _ in inside) - sum(p for _, p in inside))
    return total / len(truth)


@SETTINGS
@given(records)
def test_areas_and_calibration_equal_brute_force(drawn) -> None:
    truth, scores = [each[0] for each in drawn], [each[1] for each in drawn]
    found = score(BINARY, np.array(truth, np.int64), np.array(scores))
    for name, wanted in (
        ("auc", area_by_pairs(truth, scores)),
        ("pr_auc", precision_by_thresholds(truth, scores)),
        ("ece", calibration_by_bins(truth, scores)),
    ):
        assert found[name] == (None if wanted is None else pytest.approx(wanted, abs=1e-12)), name


@SETTINGS
@given(records)
def test_class_scores_of_counts_equal_scores_of_copies(drawn) -> None:
    truth, scores = np.array([each[0] for each in drawn], np.int64), np.array([each[1] for each in drawn])
    counts = np.array([each[2] for each in drawn])
    found = make_scorer(BINARY, truth, scores)(np.stack([counts, np.ones_like(counts)]).astype(np.float64))
    copies, once = np.repeat(np.arange(len(truth)), counts), np.arange(len(truth))
    for row, at in enumerate((copies, once)):
        wanted = score(BINARY, truth[at], scores[at])
        for name in CLASS_SCORES:
            value = None if np.isnan(found[name][row]) else found[name][row]
            assert value == (None if wanted[name] is None else pytest.approx(wanted[name], abs=1e-9)), name


@SETTINGS
@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-5, 5), st.integers(0, 3)), min_size=1, max_size=12))
def test_number_scores_of_counts_equal_scores_of_copies(drawn) -> None:
    truth, guess = np.array([each[0] for each in drawn], np.float64), np.array([each[1] for each in drawn])
    counts = np.array([each[2] for each in drawn])
    found = make_scorer(NUMBERS, truth, guess)(counts[None].astype(np.float64))
    at = np.repeat(np.arange(len(truth)), counts)
    wanted = score(NUMBERS, truth[at], guess[at])
    for name in NUMBER_SCORES:
        value = None if np.isnan(found[name][0]) else found[name][0]
        assert value == (None if wanted[name] is None else pytest.approx(wanted[name], rel=1e-9, abs=1e-9)), (
            name
        )


@SETTINGS
@given(st.lists(st.tuples(st.integers(0, 2), chance, chance, chance), min_size=1, max_size=12))
def test_class_means_are_means_of_each_class_against_the_rest(drawn) -> None:
    truth = np.array([each[0] for each in drawn])
    raw = np.array([each[1:] for each in drawn]) + 0.05
    chances = raw / raw.sum(axis=1, keepdims=True)
    found = score(CLASSES, truth, chances)
    taken = chances.argmax(axis=1)
    areas = [area_by_pairs(truth == code, chances[:, code]) for code in range(3)]
    recalls = [np.mean(taken[truth == code] == code) for code in range(3) if (truth == code).any()]
    f1s = [
        2 * np.sum((truth == code) & (taken == code)) / (np.sum(truth == code) + np.sum(taken == code))
        for code in range(3)
        if (truth == code).any() or (taken == code).any()
    ]
    defined = [area for area in areas if area is not None]
    assert found["auc"] == (pytest.approx(np.mean(defined)) if defined else None)
    assert found["balanced_accuracy"] == pytest.approx(np.mean(recalls))
    assert found["f1"] == pytest.approx(np.mean(f1s))
    assert found["accuracy"] == pytest.approx(np.mean(taken == truth))
