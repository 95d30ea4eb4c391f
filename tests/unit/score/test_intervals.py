"""Confidence intervals by resampling."""

import numpy as np
import pytest

from penstock.model.task import Task
from penstock.score import intervals
from penstock.score.intervals import find_intervals
from penstock.score.scores import score

BINARY = Task("adopted", "binary", ("no", "yes"))
NUMBERS = Task("price", "regression")


def make_records(count, seed=1):
    rng = np.random.default_rng(seed)
    truth = (rng.random(count) < 0.4).astype(np.int64)
    return truth, np.clip(rng.normal(0.4 + 0.2 * truth, 0.2), 0, 1).astype(np.float32)


def test_interval_of_accuracy_is_that_of_the_binomial_distribution() -> None:
    truth, chances = make_records(1000)
    low, high = find_intervals(BINARY, truth, chances, 1000, 0)["accuracy"]
    share = score(BINARY, truth, chances)["accuracy"]
    assert low < share < high
    assert high - low == pytest.approx(2 * 1.96 * (share * (1 - share) / 1000) ** 0.5, rel=0.1)


def test_intervals_of_one_seed_are_the_same_and_of_another_are_not() -> None:
    records = make_records(200)
    first = find_intervals(BINARY, *records, 100, 3)
    assert first == find_intervals(BINARY, *records, 100, 3)
    assert first != find_intervals(BINARY, *records, 100, 4)


def test_intervals_of_many_records_come_from_a_part_and_are_as_wide(monkeypatch) -> None:
    truth, chances = make_records(20_000)
    whole = find_intervals(BINARY, truth, chances, 300, 0)
    monkeypatch.setattr(intervals, "_MOST_WORK", 300 * 2000)
    part = find_intervals(BINARY, truth, chances, 300, 0)
    found = score(BINARY, truth, chances)
    for name in ("accuracy", "auc", "pr_auc", "f1", "log_loss"):
        low, high = part[name]
        assert low < found[name] < high, name
        assert high - low == pytest.approx(whole[name][1] - whole[name][0], rel=0.3), name


def test_interval_of_a_score_that_is_not_defined_is_none() -> None:
    found = find_intervals(BINARY, np.zeros(10, np.int64), np.full(10, 0.2), 50, 0)
    assert found["auc"] is None
    assert found["accuracy"] == (1.0, 1.0)


def test_interval_is_none_where_most_resamples_lack_a_class() -> None:
    truth = np.zeros(300, np.int64)
    truth[0] = 1  # in 63 % of the resamples: enough; what is missing there is left out
    assert find_intervals(BINARY, truth, np.linspace(0, 1, 300), 200, 0)["auc"] is not None


@pytest.mark.parametrize(("count", "resamples"), [(1, 100), (10, 0)])
def test_one_record_or_no_resamples_give_no_intervals(count, resamples) -> None:
    assert set(find_intervals(BINARY, *make_records(count), resamples, 0).values()) == {None}


def test_interval_of_numbers_without_variance_in_some_resamples_is_that_of_the_others() -> None:
    truth, guess = np.array([1.0, 1.0, 2.0]), np.array([1.0, 1.5, 2.0])
    low, high = find_intervals(NUMBERS, truth, guess, 200, 0)["r2"]
    assert low < 0.625 < high <= 1.0
