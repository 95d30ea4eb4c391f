"""Confidence intervals by resampling."""

import numpy as np
import pytest

from penstock.model.task import Task
from penstock.score import intervals
from penstock.score.intervals import find_calibrated_error, find_intervals
from penstock.score.scores import score

BINARY = Task("adopted", "binary", ("no", "yes"))
CLASSES = Task("kind", "multiclass", ("cat", "dog", "eel"))
MANY_CLASSES = Task("breed", "multiclass", tuple(range(30)))
LABELS = Task("tags", "multilabel", ("x", "y", "z"), (3,))
NUMBERS = Task("price", "regression")


def make_records(count, seed=1):
    rng = np.random.default_rng(seed)
    truth = (rng.random(count) < 0.4).astype(np.int64)
    return truth, np.clip(rng.normal(0.4 + 0.2 * truth, 0.2), 0, 1).astype(np.float32)


def test_interval_of_accuracy_equals_the_binomial_distribution() -> None:
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
    truth[0] = 1  # in 63 % of the resamples: enough; missing scores there are left out
    assert find_intervals(BINARY, truth, np.linspace(0, 1, 300), 200, 0)["auc"] is not None


@pytest.mark.parametrize(("count", "resamples"), [(1, 100), (10, 0)])
def test_one_record_or_no_resamples_give_no_intervals(count, resamples) -> None:
    assert set(find_intervals(BINARY, *make_records(count), resamples, 0).values()) == {None}


def test_interval_of_numbers_leaves_out_resamples_without_variance() -> None:
    truth, guess = np.array([1.0, 1.0, 2.0]), np.array([1.0, 1.5, 2.0])
    low, high = find_intervals(NUMBERS, truth, guess, 200, 0)["r2"]
    assert low < 0.625 < high <= 1.0


def draw_calibrated(task, count, seed):
    """Return truths that are drawn with the probabilities of a model; or numbers with relative errors."""
    rng = np.random.default_rng(seed)
    if task.kind == "regression":
        truth = rng.lognormal(size=count)
        return truth, truth * rng.normal(1, 0.4, count)
    logits = rng.normal(0, 2, (count,) if task.kind == "binary" else (count, len(task.labels)))
    if task.kind == "multiclass":
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        truth = (chances.cumsum(axis=1) > rng.random((count, 1))).argmax(axis=1)
    else:
        chances = 1 / (1 + np.exp(-logits))
        truth = (rng.random(chances.shape) < chances).astype(np.int64)
    return truth, chances.astype(np.float32)


@pytest.mark.parametrize("task", [BINARY, CLASSES, MANY_CLASSES, LABELS, NUMBERS], ids=lambda task: task.name)
@pytest.mark.parametrize("count", [4, 20, 60, 200])
def test_every_score_lies_inside_its_interval(task, count) -> None:
    num_intervals = 0
    for seed in range(6):
        records = draw_calibrated(task, count, seed)
        found = score(task, *records)
        for name, interval in find_intervals(task, *records, 40, seed, found).items():
            if interval is not None:
                num_intervals += 1
                assert interval[0] <= found[name] <= interval[1], (name, seed)
    assert num_intervals > 6


def test_score_of_many_records_lies_inside_its_interval_from_a_part_of_them(monkeypatch) -> None:
    monkeypatch.setattr(intervals, "_LEAST_RECORDS", 20)
    monkeypatch.setattr(intervals, "_MOST_WORK", 1)
    records = draw_calibrated(CLASSES, 200, 0)
    found = score(CLASSES, *records)
    pairs = find_intervals(CLASSES, *records, 40, 0, found)
    known = {name: each for name, each in pairs.items() if each is not None}
    assert len(known) == len(found) - 1
    assert all(low <= found[name] <= high for name, (low, high) in known.items())


@pytest.mark.parametrize("task", [BINARY, CLASSES, LABELS], ids=lambda task: task.name)
def test_calibrated_models_have_the_error_that_is_due_to_chance(task) -> None:
    assert find_intervals(task, *draw_calibrated(task, 60, 0), 40, 0)["ece"] is None
    errors, drawn = [], []
    for seed in range(60):
        records = draw_calibrated(task, 60, seed)
        errors.append(score(task, *records)["ece"])
        drawn.append(find_calibrated_error(task, *records, 40, seed))
    assert np.mean(errors) == pytest.approx(np.mean([each.mean for each in drawn]), rel=0.1)
    num_below = sum(error <= each.most for error, each in zip(errors, drawn, strict=True))
    assert 50 <= num_below < 60  # 57 are expected


def test_overconfident_model_has_a_larger_error_than_chance_explains() -> None:
    truth, chances = draw_calibrated(BINARY, 300, 0)
    logits = 3 * np.log(chances / (1 - chances))
    sure = 1 / (1 + np.exp(-logits))
    assert score(BINARY, truth, sure)["ece"] > 2 * find_calibrated_error(BINARY, truth, sure, 100, 0).most


def test_calibrated_error_of_many_records_is_drawn_for_a_part_of_them(monkeypatch) -> None:
    records = draw_calibrated(BINARY, 20_000, 0)
    whole = find_calibrated_error(BINARY, *records, 100, 0)
    monkeypatch.setattr(intervals, "_MOST_WORK", 100 * 2000)
    part = find_calibrated_error(BINARY, *records, 100, 0)
    assert part == pytest.approx(whole, rel=0.1)
    assert part != whole


@pytest.mark.parametrize(("task", "count", "draws"), [(NUMBERS, 20, 40), (BINARY, 1, 40), (BINARY, 20, 0)])
def test_calibrated_error_is_none_without_classes_records_or_draws(task, count, draws) -> None:
    assert find_calibrated_error(task, *draw_calibrated(task, count, 0), draws, 0) is None
