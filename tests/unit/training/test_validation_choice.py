"""Choices on validation: the threshold of highest balanced accuracy, and their form in `run.yaml`."""

import itertools

import numpy as np
import pytest

from penstock.errors import SchemaError
from penstock.model.batch_predictor import compute_sigmoid, compute_softmax
from penstock.model.task import Task
from penstock.score.scores import score
from penstock.training.run_config import RunConfig
from penstock.training.validation_choice import (
    ValidationChoice,
    choose_on_validation,
    find_threshold,
    fit_temperature,
)
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
    found = choose_on_validation(predict, tasks, make_batches(20, 30, 7), keep=tasks)
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
        records=8,
        temperature=1.25,
        log_loss=1.5,
        raw_log_loss=1.75,
        ece=0.01,
        raw_ece=0.02,
        balanced_accuracy=0.5,
        threshold=0.25,
        threshold_balanced_accuracy=0.75,
    )
    facts = {"choices": {"sold": choice.to_json(), "kind": ValidationChoice(records=3).to_json()}}
    config = RunConfig.from_json({"facts": facts})
    assert config.facts.choices == {"sold": choice, "kind": ValidationChoice(records=3)}
    assert config.to_json() == {"facts": facts}
    calibration, balance = choice.describe()
    assert mentions(calibration, "0.0100 1.25 0.0200")
    assert mentions(balance, "0.500 0.750 0.25")
    assert ValidationChoice().describe() == []


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (3, "facts.choices.y 3"),
        ({"threshold": "a"}, "facts.choices.y.threshold 'a'"),
        ({"threshold": 1.5}, "facts.choices.y.threshold 0 1 1.5"),
        ({"temperature": 0.1}, "facts.choices.y.temperature 0.5 5.0 0.1"),
        ({"temperature": None}, "facts.choices.y.temperature number"),
        ({"ece": 1.5}, "facts.choices.y.ece 0 1 1.5"),
        ({"records": -1}, "facts.choices.y.records 0 -1"),
        ({"other": 1}, "facts.choices.y other"),
    ],
)
def test_choices_that_no_run_writes_are_refused(choice, message):
    with raises_with(SchemaError, "run") as caught:
        RunConfig.from_json({"facts": {"choices": {"y": choice}}})
    assert mentions(caught.value, message)


def draw_truths(kind, logits, draws):
    if kind == "multiclass":
        chances = compute_softmax(logits)
        return np.array([draws.choice(len(each), p=each) for each in chances])
    return (draws.random(logits.shape) < compute_sigmoid(logits)).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "shape"), [("binary", (4000,)), ("multilabel", (4000, 3)), ("multiclass", (4000, 5))]
)
@pytest.mark.parametrize("certainty", [0.7, 1.0, 2.5])
def test_temperature_undoes_false_certainty(kind, shape, certainty):
    draws = np.random.default_rng(11)
    logits = draws.normal(size=shape) * 2
    truth = draw_truths(kind, logits, draws)
    squash = compute_softmax if kind == "multiclass" else compute_sigmoid
    predicted = squash(logits * certainty)
    task = Task("y", kind, tuple("abcde"[: shape[-1]]) if kind != "binary" else ("a", "b"))
    batches = [({"x": predicted}, {"y": truth})]
    choice = choose_on_validation(lambda inputs: {"y": inputs["x"]}, {"y": task}, batches)["y"]
    assert choice.temperature == pytest.approx(certainty, rel=0.06)
    assert choice.log_loss <= choice.raw_log_loss
    assert choice.ece < 0.03
    if certainty == 1:
        assert (choice.temperature, choice.ece, choice.log_loss) == (1.0, choice.raw_ece, choice.raw_log_loss)
    else:
        assert choice.ece < choice.raw_ece
    kept = choose_on_validation(lambda inputs: {"y": inputs["x"]}, {"y": task}, batches, keep=["y"])["y"]
    assert (kept.temperature, kept.ece) == (1.0, choice.raw_ece)


def test_scores_on_validation_equal_scores_of_an_evaluation():
    draws = np.random.default_rng(2)
    for kind, shape in [("binary", (500,)), ("multilabel", (500, 3)), ("multiclass", (500, 4))]:
        logits = draws.normal(size=shape)
        truth = draw_truths(kind, logits, draws)
        predicted = (compute_softmax if kind == "multiclass" else compute_sigmoid)(logits)
        task = Task("y", kind, tuple(range(shape[-1])) if kind != "binary" else (0, 1))
        batches = [({"x": predicted}, {"y": truth})]
        choice = choose_on_validation(lambda inputs: {"y": inputs["x"]}, {"y": task}, batches, ["y"])["y"]
        scores = score(task, truth, predicted)
        assert choice.ece == pytest.approx(scores["ece"])
        assert choice.log_loss == pytest.approx(scores["log_loss"])
        if kind != "multilabel":
            assert choice.balanced_accuracy == pytest.approx(scores["balanced_accuracy"])


def test_few_records_without_a_mistake_do_not_make_a_model_certain():
    truth = np.array([0, 1] * 200)
    assert fit_temperature("binary", truth, np.where(truth > 0, 0.8, 0.2)) == 0.5
    assert fit_temperature("binary", truth[:4], np.where(truth[:4] > 0, 0.8, 0.2)) == 1.0


@pytest.mark.parametrize(
    ("truth", "predicted"),
    [
        ([1], [0.05]),
        ([1, 0, 0] * 33, [0.05, 0.05, 0.05] * 33),
        ([0] * 200, [0.05] * 200),
    ],
)
def test_few_records_and_a_single_class_have_no_temperature(truth, predicted):
    assert fit_temperature("binary", np.array(truth), np.array(predicted)) == 1.0


def test_temperature_of_certain_predictions_is_finite():
    truth = np.array([0, 1, 1, 0] * 50)
    assert fit_temperature("binary", truth, np.tile([0.0, 1.0, 0.0, 1.0], 50)) == 5.0
