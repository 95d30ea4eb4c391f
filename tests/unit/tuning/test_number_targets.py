"""How targets of numbers are learned: the scale and the loss that short trials prefer."""

import numpy as np
import pytest
import yaml

import penstock as ps
from penstock.errors import OptionError, StateError
from raising import mentions, raises_with
from training_data import Listener

keras = pytest.importorskip("keras")
from penstock.training.run_facts import NumberChoice  # noqa: E402
from penstock.tuning import number_targets  # noqa: E402
from penstock.tuning.number_targets import (  # noqa: E402
    _has_heavy_tails,
    _is_skewed,
    describe_choice,
)

SMALL = ps.options.ModelOptions(preset="small")
ROWS = 400


def draw(name, rows=5_000):
    draws = np.random.default_rng(4)
    return {
        "normal": lambda: draws.normal(10, 1, rows),
        "prices": lambda: np.exp(draws.normal(5, 1, rows)),
        "shares": lambda: draws.beta(1, 20, rows),
        "losses": lambda: -np.exp(draws.normal(5, 1, rows)),
        "counts": lambda: draws.poisson(np.exp(draws.normal(1, 0.8, rows))).astype(float),
        "tails": lambda: draws.standard_t(3, rows),
        "constant": lambda: np.full(rows, 3.0),
        "nothing": lambda: np.empty(0),
    }[name]()


@pytest.mark.parametrize(
    ("name", "is_skewed", "has_tails"),
    [
        ("normal", False, False),
        ("prices", True, True),
        ("shares", False, True),
        ("losses", False, True),
        ("counts", True, True),
        ("tails", False, True),
        ("constant", False, False),
        ("nothing", False, False),
    ],
)
def test_only_skewed_or_heavy_tailed_numbers_are_tried(name, is_skewed, has_tails):
    values = draw(name)
    assert (_is_skewed(values), _has_heavy_tails(values)) == (is_skewed, has_tails)


def test_note_names_choice_trials_and_flags():
    trials = {"linear squared": {"rmse": 2.5, "mae": 2.0}, "log squared": {"rmse": 1.25, "mae": 1.0}}
    assert describe_choice("y", NumberChoice(trials=trials)) == ""
    choice = NumberChoice("log", "huber", trials)
    note = describe_choice("y", choice)
    assert mentions(note, "'y' linear squared RMSE 2.50 MAE 2.00 log squared RMSE 1.25 MAE 1.00")
    assert mentions(note, "target_scale='linear' number_loss='squared'")


def test_note_on_a_log_scale_with_higher_errors_does_not_call_them_better():
    trials = {"linear squared": {"rmse": 100.0, "mae": 50.0}, "log squared": {"rmse": 104.0, "mae": 51.0}}
    note = describe_choice("y", NumberChoice("log", "squared", trials))
    assert mentions(note, "skewed unless RMSE × MAE a tenth higher Trials RMSE 100 RMSE 104")
    assert not mentions(note, "robust")
    both = {**trials, "log huber": {"rmse": 90.0, "mae": 49.0}}
    assert mentions(describe_choice("y", NumberChoice("log", "huber", both)), "lower by 1% or more")


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    draws = np.random.default_rng(1)
    x = draws.normal(size=ROWS)
    columns = {
        "x": x.astype(np.float32),
        "price": np.exp(5 + x + draws.normal(0, 0.1, ROWS)).astype(np.float32),
    }
    folder = tmp_path_factory.mktemp("prices") / "data"
    return ps.convert(columns, folder, target="price", split="train=0.7,validation=0.2,test=0.1")


def train(data, out, **options):
    given = {"epochs": 1, "watcher": Listener(), "model_options": SMALL, **options}
    return ps.train(data, out=out, **given)


def read_numbers(run):
    """Return what `run.yaml` holds about the targets of numbers."""
    return yaml.safe_load((run.folder / "run.yaml").read_text())["facts"].get("numbers")


@pytest.fixture(scope="module")
def whole(prices, tmp_path_factory):
    """Return a run with trials that nothing disturbed, and the notes on it."""
    listener = Listener()
    run = train(prices, tmp_path_factory.mktemp("whole") / "run", watcher=listener, epochs=2)
    return run, listener.notes


def test_skewed_target_is_tried_on_both_scales(prices, whole, tmp_path):
    run, notes = whole
    found = read_numbers(run)["price"]
    assert set(found["trials"]) >= {"linear squared", "log squared"}
    assert all(errors["rmse"] >= errors["mae"] > 0 for errors in found["trials"].values())
    assert (run.pipeline.transforms["price"].kind == "scale") == (found["scale"] == "log")
    assert any("'price'" in note for note in notes) == (
        (found["scale"], found["loss"]) != ("linear", "squared")
    )
    again = train(prices, tmp_path / "again", epochs=2)
    assert read_numbers(again) == read_numbers(run)
    assert again.history[-1]["val_loss"] == run.history[-1]["val_loss"]


def test_log_scale_is_undone_in_predictions(prices, tmp_path):
    run = train(prices, tmp_path / "run", target_scale="log", number_loss="squared", epochs=30)
    assert read_numbers(run) == {"price": {"scale": "log", "loss": "squared", "trials": {}}}
    scores = ps.evaluate(run, importance=False, bootstrap=0).targets["price"]
    assert scores["r2"] > 0.6
    truths = np.array([record["price"] for record in prices["test"]])
    assert 0.3 < scores["mae"] / truths.mean() + 0.3 < 0.8  # in the units of the data
    rerun = ps.open_run(tmp_path / "run")
    assert ps.evaluate(rerun, importance=False, bootstrap=0).targets["price"] == scores


def test_usual_choice_needs_no_trial(prices, tmp_path, monkeypatch):
    monkeypatch.setattr(number_targets._Trials, "_measure", None)  # a trial would fail
    run = train(prices, tmp_path / "run", target_scale="linear", number_loss="squared")
    assert read_numbers(run) == {"price": {"scale": "linear", "loss": "squared", "trials": {}}}


def test_few_validation_records_choose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(number_targets._Trials, "_measure", None)
    columns = {"x": np.arange(900) / 7, "price": np.exp(np.arange(900) / 130)}
    columns["part"] = ["validation" if row < 3 else "train" for row in range(900)]
    data = ps.convert(columns, tmp_path / "data", target="price", split_by="part")
    run = train(data, tmp_path / "run", epochs=1)
    assert read_numbers(run) == {"price": {"scale": "linear", "loss": "squared", "trials": {}}}


def test_without_validation_nothing_is_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(number_targets._Trials, "_measure", None)
    columns = {"x": np.arange(200) / 7, "price": np.exp(np.arange(200) / 30)}
    data = ps.convert(columns, tmp_path / "data", target="price", split="train=1.0")
    run = train(data, tmp_path / "run", epochs=1)
    assert read_numbers(run) == {"price": {"scale": "linear", "loss": "squared", "trials": {}}}


def test_run_killed_during_trials_ends_like_an_undisturbed_one(prices, whole, tmp_path, monkeypatch):
    undisturbed, _ = whole
    measure = number_targets._Trials._measure
    calls = []

    def fail_second(self, *given):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(number_targets._Trials, "_measure", fail_second)
        with pytest.raises(KeyboardInterrupt):
            train(prices, tmp_path / "cut", epochs=2)
    run = train(prices, tmp_path / "cut", resume=True, epochs=2)
    assert read_numbers(run) == read_numbers(undisturbed)
    assert run.history[-1]["val_loss"] == undisturbed.history[-1]["val_loss"]


def test_run_that_started_keeps_its_choice(prices, tmp_path, monkeypatch):
    run = train(prices, tmp_path / "run", number_loss="huber", target_scale="log", epochs=1)
    monkeypatch.setattr(number_targets._Trials, "_measure", None)
    again = train(prices, tmp_path / "run", resume=True, epochs=1)
    assert read_numbers(again) == read_numbers(run)
    for option, value in (("number_loss", "squared"), ("target_scale", "linear")):
        with raises_with(
            StateError, option, expected={"number_loss": "huber", "target_scale": "log"}[option]
        ):
            train(prices, tmp_path / "run", resume=True, epochs=1, **{option: value})


def test_log_scale_for_a_given_transform_is_refused(prices, tmp_path):
    pipeline = ps.Pipeline.fit(prices)
    with raises_with(OptionError, "target_scale 'price' 'log'", field="price"):
        train(prices, tmp_path / "run", pipeline=pipeline, target_scale="log")
    assert not (tmp_path / "run").exists()


def test_own_model_is_not_tried(prices, tmp_path, monkeypatch):
    monkeypatch.setattr(number_targets._Trials, "_measure", None)
    x = keras.Input((), name="x")
    model = keras.Model({"x": x}, keras.layers.Dense(1)(keras.ops.expand_dims(x, -1)))
    run = train(prices, tmp_path / "run", model=model, model_options=None, epochs=1)
    assert read_numbers(run) is None
