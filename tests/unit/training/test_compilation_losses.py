"""`TaskLoss`: every kind by hand, with class weights inside and record weights on top; and class weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.model.task import Task
from penstock.training.class_weights import balance, choose_class_weights

keras = pytest.importorskip("keras")
from penstock.training.compilation import TaskLoss  # noqa: E402

BINARY = Task("y", "binary", ("no", "yes"))
CLASSES = Task("y", "multiclass", ("a", "b", "c"))
LABELS = Task("y", "multilabel", ("a", "b"), (2,))
CODES = np.array([0, 1, 1], np.int32)
CHANCES = np.array([0.2, 0.7, 0.4], np.float32)
WEIGHTS = np.array([1.0, 0.0, 3.0], np.float32)


def measure(loss: TaskLoss, wanted: Any, given: Any, weights: Any = None) -> float:
    return float(loss(wanted, given, weights))


def entropy(chances: np.ndarray) -> np.ndarray:
    """Return the loss of each record, by the chance that its label was given."""
    return -np.log(chances)


RIGHT = np.where(CODES == 1, CHANCES, 1 - CHANCES)


@pytest.mark.parametrize("given", [CHANCES, CHANCES[:, None]], ids=["vector", "column"])
def test_binary_loss_of_each_record_is_its_cross_entropy(given):
    assert measure(TaskLoss(BINARY), CODES, given) == pytest.approx(entropy(RIGHT).mean(), rel=1e-5)
    weighed = measure(TaskLoss(BINARY), CODES, given, WEIGHTS)
    assert weighed == pytest.approx((entropy(RIGHT) * WEIGHTS).mean(), rel=1e-5)


def test_binary_loss_of_logits_equals_the_loss_of_their_probabilities():
    logits = np.log(CHANCES / (1 - CHANCES))[:, None]
    found = measure(TaskLoss(BINARY, from_logits=True), CODES, logits)
    assert found == pytest.approx(entropy(RIGHT).mean(), rel=1e-5)


def test_class_weights_count_with_the_weights_of_records_on_top():
    loss = TaskLoss(BINARY, class_weights=(0.5, 2.0))
    by_class = np.array([0.5, 2.0])[CODES]
    assert measure(loss, CODES, CHANCES) == pytest.approx((entropy(RIGHT) * by_class).mean(), rel=1e-5)
    both = measure(loss, CODES, CHANCES, WEIGHTS)
    assert both == pytest.approx((entropy(RIGHT) * by_class * WEIGHTS).mean(), rel=1e-5)


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_multiclass_loss_is_weighed_by_class(shape):
    codes = np.array([2, 0, 1])
    chances = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], np.float32)
    weights = (1.0, 4.0, 0.25)
    wanted = entropy(chances[np.arange(3), codes]) * np.array(weights)[codes]
    found = measure(TaskLoss(CLASSES, class_weights=weights), codes.reshape(shape), chances)
    assert found == pytest.approx(wanted.mean(), rel=1e-5)
    logits = TaskLoss(CLASSES, class_weights=weights, from_logits=True)
    assert measure(logits, codes, np.log(chances) + 5) == pytest.approx(wanted.mean(), rel=1e-5)


def test_multilabel_loss_is_the_mean_over_labels():
    truths = np.array([[1, 0], [0, 0], [1, 1]], np.float32)
    chances = np.array([[0.9, 0.2], [0.3, 0.1], [0.6, 0.8]], np.float32)
    wanted = entropy(np.where(truths == 1, chances, 1 - chances)).mean(axis=1)
    assert measure(TaskLoss(LABELS), truths, chances) == pytest.approx(wanted.mean(), rel=1e-5)
    weighed = measure(TaskLoss(LABELS), truths, chances, WEIGHTS)
    assert weighed == pytest.approx((wanted * WEIGHTS).mean(), rel=1e-5)


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_regression_loss_is_measured_in_deviations(shape):
    task = Task("y", "regression", mean=1e6, deviation=2e5)
    wanted, given = np.array([1e6, 9e5, 1.4e6]), np.array([1.1e6, 9e5, 1e6])
    found = measure(TaskLoss(task), wanted, given.reshape(shape))
    assert found == pytest.approx((0.5**2 + 0 + 2**2) / 3, rel=1e-5)


def test_regression_of_vectors_is_the_mean_over_their_numbers():
    task = Task("y", "regression", shape=(2,), deviation=2.0)
    found = measure(TaskLoss(task), np.zeros((2, 2)), np.array([[2.0, 0.0], [4.0, 4.0]]))
    assert found == pytest.approx((0.5 + 4) / 2)


def test_target_that_never_varies_has_a_loss_all_the_same():
    assert measure(TaskLoss(Task("y", "regression", deviation=0.0)), np.ones(2), np.zeros(2)) == 1.0


def test_balanced_weights_make_classes_count_the_same_with_a_mean_of_one():
    counts = [90, 9, 1]
    weights = balance(counts)
    assert [count * weight for count, weight in zip(counts, weights, strict=True)] == pytest.approx(
        [100 / 3] * 3
    )
    assert np.average(weights, weights=counts) == pytest.approx(1)


def test_class_without_records_weighs_one_and_moves_no_other():
    assert balance([6, 0, 2]) == (pytest.approx(8 / 12), 1.0, 2.0)


@pytest.mark.parametrize(
    ("counts", "is_weighed"),
    [([75, 25], False), ([76, 24], True), ([50, 34, 17], False), ([50, 34, 16], True), ([5, 0], False)],
)
def test_classes_are_weighed_where_the_rarest_has_less_than_half_an_equal_share(counts, is_weighed):
    assert choose_class_weights(counts) == (balance(counts) if is_weighed else None)


def test_robust_loss_is_squared_within_one_deviation_and_linear_beyond():
    task = Task("price", "regression", mean=0.0, deviation=2.0)
    truth = np.zeros(4, np.float32)
    predicted = np.array([1.0, 2.0, 6.0, -8.0], np.float32)
    assert measure(TaskLoss(task), truth, predicted) == pytest.approx(np.mean([0.25, 1.0, 9.0, 16.0]))
    robust = TaskLoss(task, is_robust=True)
    assert measure(robust, truth, predicted) == pytest.approx(np.mean([0.25, 1.0, 5.0, 7.0]))
