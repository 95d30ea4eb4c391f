"""Choices on validation: the threshold of highest balanced accuracy, and their form in `run.yaml`."""

import itertools

import numpy as np
import pytest

from penstock.errors import SchemaError
from penstock.model.task import Task
from penstock.training.run_files import read_choices
from penstock.training.validation_choice import ValidationChoice, choose_on_validation, find_threshold
from raising import mentions, raises_with

SOLD = Task("sold", "binary", ("no", "yes"))
KIND = Task("kind", "multiclass", ("cat", "dog", "hen"))
PRICE = Task("price", "regression")


def balanced(truth, predicted, threshold):
    codes = predicted >= threshold
    return (codes[truth].mean() + (~codes[~truth]).mean()) / 2


@pytest.mark.parametrize("seed", range(5))
def test_threshold_is_the_best_of_all(seed):
    draws = np.random.default_rng(seed)
    truth = draws.random(60) < 0.2
    truth[:2] = True, False
    predicted = np.round(np.clip(draws.normal(0.2 + 0.2 * truth, 0.2), 0, 1), 2)
    threshold, highest = find_threshold(truth, predicted)
    assert highest == pytest.approx(balanced(truth, predicted, threshold))
    edges = [*np.unique(predicted), 0.5, 1.1]
    assert highest == pytest.approx(max(balanced(truth, predicted, edge) for edge in edges))


def test_threshold_stays_at_a_half_where_that_is_as_good_as_any():
    truth = np.array([False, True] * 3)
    assert find_threshold(truth, np.where(truth, 0.8, 0.1)) == (0.5, 1.0)
    assert find_threshold(truth, np.full(6, 0.3)) == (0.5, 0.5)


def test_threshold_divides_neighbouring_numbers():
    low = 0.75
    high = np.nextafter(low, 1)
    threshold, highest = find_threshold(np.array([False, True]), np.array([low, high]))
    assert (threshold, highest) == (high, 1.0)


@pytest.mark.parametrize("value", [False, True])
def test_threshold_of_a_single_class_is_not_defined(value):
    assert find_threshold(np.full(4, value), np.linspace(0, 1, 4)) == (None, None)


def make_batches(*sizes):
    draws = np.random.default_rng(3)
    for size in sizes:
        x = draws.random(size)
        targets = {"sold": (x > 0.3).astype(np.float32), "kind": draws.integers(0, 3, size), "price": x}
        yield {"x": x}, targets, {"sold": np.ones(size)}


def predict(inputs):
    chances = np.stack([inputs["x"], 1 - inputs["x"], inputs["x"] * 0], axis=1).astype(np.float32)
    return {"sold": inputs["x"].astype(np.float32), "kind": chances, "price": inputs["x"]}


def test_choices_cover_targets_with_classes_and_all_batches():
    tasks = {task.name: task for task in (SOLD, KIND, PRICE)}
    found = choose_on_validation(predict, tasks, make_batches(20, 30, 7))
    assert list(found) == ["sold", "kind"]
    assert found["sold"].records == found["kind"].records == 57
    assert 0.25 < found["sold"].threshold < 0.35
    assert found["sold"].threshold_balanced_accuracy == 1.0 > found["sold"].balanced_accuracy > 0.5
    assert (found["kind"].threshold, found["kind"].threshold_balanced_accuracy) == (None, None)
    batches = list(itertools.chain(make_batches(20, 30, 7)))
    truth = np.concatenate([targets["kind"] for _, targets, _ in batches])
    codes = np.concatenate([predict(inputs)["kind"].argmax(axis=1) for inputs, _, _ in batches])
    recalls = [np.mean(codes[truth == code] == code) for code in range(3)]
    assert found["kind"].balanced_accuracy == pytest.approx(np.mean(recalls))


def test_predictions_that_are_not_finite_choose_nothing():
    def fail(inputs):
        return {"sold": np.full(len(inputs["x"]), np.nan)}

    assert choose_on_validation(fail, {"sold": SOLD}, make_batches(5)) == {}
    assert choose_on_validation(fail, {"price": PRICE}, make_batches(5)) == {}


def test_choices_survive_run_yaml():
    choice = ValidationChoice(
        records=8, balanced_accuracy=0.5, threshold=0.25, threshold_balanced_accuracy=0.75
    )
    facts = {"choices": {"sold": choice.to_json(), "kind": ValidationChoice(records=3).to_json()}}
    assert read_choices(facts, "run.yaml") == {"sold": choice, "kind": ValidationChoice(records=3)}
    assert read_choices({"logits": {}}, "run.yaml") == read_choices(None, "run.yaml") == {}
    assert mentions(choice.describe(), "0.5000 0.7500 0.25")
    assert ValidationChoice().describe() == ""


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (3, "facts.choices.y 3"),
        ({"threshold": "a"}, "facts.choices.y.threshold 'a'"),
        ({"threshold": 1.5}, "facts.choices.y.threshold 0 1 1.5"),
        ({"records": -1}, "facts.choices.y.records 0 -1"),
        ({"other": 1}, "facts.choices.y other"),
    ],
)
def test_choices_that_no_run_writes_are_refused(choice, message):
    with raises_with(SchemaError, "run.yaml") as caught:
        read_choices({"choices": {"y": choice}}, "run.yaml")
    assert mentions(caught.value, message)
