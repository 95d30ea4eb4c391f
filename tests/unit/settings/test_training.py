"""Options of training: values that cannot be, and the table of `run.yaml`."""

import json
import math
from pathlib import Path
from types import MappingProxyType

import pytest

from penstock.errors import OptionError
from penstock.foundation.json_form import Document, JsonValue
from penstock.settings.training import TrainCall, TrainOptions
from raising import containing, raises_with


def test_defaults_equal_the_docstring():
    options = TrainOptions()
    assert (options.epochs, options.batch_size, options.seed, options.shuffle) == (None, None, 0, True)
    assert (options.learning_rate, options.schedule, options.averaging) == (2e-3, None, None)
    assert (options.optimizer, options.class_weights, options.loss_weights) == ("adamw", "none", {})
    assert (options.monitor, options.patience) == ("val_data_loss", "auto")
    assert (options.hold_out, options.cache, options.checkpoint_steps) == (0.0, None, None)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epochs", 0, "1"),
        ("epochs", 2.0, "1"),
        ("epochs", True, "1"),
        ("averaging", 1.0, "0.9999"),
        ("averaging", -0.1, "0"),
        ("schedule", "step", "constant"),
        ("epochs", "3", "1"),
        ("seed", -1, "0"),
        ("seed", None, "0"),
        ("seed", 2**32, "4294967295"),
        ("batch_size", 0, "1"),
        ("batch_size", "auto", "1"),
        ("patience", -1, "0"),
        ("patience", False, "0"),
        ("num_threads", -1, "0"),
        ("checkpoint_steps", 0, "1"),
        ("learning_rate", 0, "0"),
        ("learning_rate", -1e-3, "0"),
        ("learning_rate", math.nan, "0"),
        ("learning_rate", "fast", "0"),
        ("learning_rate", True, "0"),
        ("learning_rate", None, "0"),
        ("weight_decay", -0.1, "0"),
        ("clip", -1, "0"),
        ("clip", None, "0"),
        ("warmup", 1.5, "0 1"),
        ("warmup", -0.1, "0 1"),
        ("hold_out", 0.95, "0 0.9"),
        ("hold_out", math.nan, "0 0.9"),
        ("checkpoint_seconds", -1, "0"),
        ("optimizer", "adamm", "'adamw' 'adam' 'sgd' 'rmsprop' 'lion'"),
        ("optimizer", None, "'adamw' 'adam' 'sgd' 'rmsprop' 'lion'"),
        ("shuffle", 1, "True False"),
        ("shuffle", "global", "True False"),
        ("monitor", "", "history"),
        ("monitor", None, "history"),
        ("class_weights", "yes", "'none' 'balanced' 'auto'"),
        ("class_weights", None, "'none' 'balanced' 'auto'"),
        ("class_weights", [1.0, 2.0], "'none' 'balanced' 'auto'"),
        ("loss_weights", 2.0, "dict"),
        ("loss_weights", None, "dict"),
    ],
)
def test_value_that_cannot_be_is_refused(name, value, expected):
    with raises_with(OptionError, f"{name} {expected} {value!r}") as caught:
        TrainOptions(**{name: value})
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("weight", [-1, math.nan, "2", None, True])
def test_loss_weight_that_cannot_be_is_named_with_its_target(weight):
    with raises_with(OptionError, f"loss_weights['sold'] 0 {weight!r}"):
        TrainOptions(loss_weights={"price": 1.0, "sold": weight})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 1),
        ("seed", 2**32 - 1),
        ("patience", 0),
        ("patience", None),
        ("num_threads", 0),
        ("learning_rate", 1),
        ("weight_decay", 0),
        ("clip", 0),
        ("warmup", 0),
        ("warmup", 1),
        ("final_rate", 0),
        ("final_rate", 1),
        ("hold_out", 0.9),
        ("checkpoint_seconds", 0),
        ("checkpoint_seconds", math.inf),
        ("checkpoint_steps", 1),
        ("class_weights", {"sold": {"yes": 2.0}}),
        ("loss_weights", {"price": 0}),
        ("cache", "memory"),
    ],
)
def test_value_at_the_edge_is_taken(name, value):
    assert getattr(TrainOptions(**{name: value}), name) == value


def test_options_as_json_make_the_same_options():
    options = TrainOptions(
        epochs=3,
        class_weights={"sold": {"yes": 2.0}},
        loss_weights={"sold": 0.5},
        cache="memory",
        patience=None,
    )
    form = json.loads(json.dumps(options.to_json()))
    assert TrainOptions.from_json(JsonValue(form, Document("run"))) == options
    assert TrainOptions(cache=Path("kept") / "here").to_json()["cache"] == "kept/here"


@pytest.mark.parametrize("label", [0, True, b"yes", "yes"])
def test_options_survive_a_json_file(label):
    form = TrainOptions(class_weights={"sold": {label: 2.0}}, loss_weights={"sold": 1}).to_json()
    assert json.loads(json.dumps(form)) == form
    assert form["class_weights"] == {"sold": {str(label): 2.0}}


def test_options_given_as_other_mappings_are_plain_in_json():
    options = TrainOptions(
        class_weights=MappingProxyType({"a": MappingProxyType({0: 1.0})}),
        loss_weights=MappingProxyType({"a": 2}),
    )
    form = options.to_json()
    assert (form["class_weights"], form["loss_weights"]) == ({"a": {"0": 1.0}}, {"a": 2})


def test_option_that_does_not_exist_is_refused_with_the_nearest_one():
    with raises_with(OptionError, "'epoch' 'epoch' 'epochs'"):
        TrainOptions(epoch=3)
    with raises_with(OptionError, got="'zzz'", advice=containing("help(TrainOptions)")):
        TrainOptions(zzz=2)


def test_options_are_frozen_and_keyword_only():
    with pytest.raises(AttributeError, match="frozen"):
        TrainOptions().epochs = 3
    with pytest.raises(TypeError):
        TrainOptions(3)


def test_table_of_a_run_keeps_its_order():
    first = ["epochs", "batch_size", "learning_rate", "schedule", "averaging", "weight_decay", "optimizer"]
    last = ["cache", "checkpoint_seconds", "checkpoint_steps", "final_rate"]
    names = list(TrainOptions().to_json())
    assert (names[:7], names[-4:], len(names)) == (first, last, len(TrainOptions.list_settings()))
    assert list(TrainOptions(seed=3, epochs=2).to_json(only_given=True)) == ["epochs", "seed"]


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({"callbacks": print}, "callbacks list"),
        ({"watcher": print, "verbose": 2}, "verbose none 2 watcher"),
        ({"model_options": {"preset": "small"}}, "model_options ps.options.ModelOptions"),
        ({"verbose": True}, "verbose 0 1 2 True"),
    ],
)
def test_keyword_that_cannot_be_is_refused(given, facts):
    with raises_with(OptionError, facts):
        TrainCall(**given)
