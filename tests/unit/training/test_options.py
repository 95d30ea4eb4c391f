"""Options of training: defaults, the batch size that is chosen, values that cannot be."""

import dataclasses
import json
import math
from pathlib import Path
from types import MappingProxyType

import pytest

from penstock.errors import OptionError
from penstock.training.options import TrainChoices, TrainOptions, make_options


def test_keywords_are_the_fields_of_the_options():
    assert list(TrainChoices.__annotations__) == [each.name for each in dataclasses.fields(TrainOptions)]


def test_defaults_are_those_that_the_docstring_tells():
    options = TrainOptions()
    assert (options.epochs, options.batch_size, options.seed, options.shuffle) == (25, None, 0, True)
    assert (options.optimizer, options.class_weights, options.loss_weights) == ("adamw", "auto", {})
    assert (options.monitor, options.is_lower_better(), options.patience) == ("val_data_loss", True, 8)
    assert (options.hold_out, options.cache, options.checkpoint_steps) == (0.0, None, None)


@pytest.mark.parametrize(
    ("num_records", "size"),
    [
        (0, 16),
        (1, 16),
        (799, 16),
        (800, 16),
        (1599, 16),
        (1600, 32),
        (6399, 64),
        (6400, 128),
        (12_800, 256),
        (10**9, 256),
    ],
)
def test_batch_size_is_a_power_of_two_with_fifty_steps_an_epoch(num_records, size):
    assert TrainOptions().choose_batch_size(num_records) == size
    assert TrainOptions(batch_size=7).choose_batch_size(num_records) == 7


@pytest.mark.parametrize(
    ("monitor", "is_lower_better"),
    [
        ("loss", True),
        ("val_price_loss", True),
        ("val_mae", True),
        ("val_price_rmse", True),
        ("val_mse", True),
        ("val_mean_absolute_error", True),
        ("val_accuracy", False),
        ("val_auc", False),
        ("val_f1", False),
    ],
)
def test_monitor_tells_by_its_name_whether_less_is_better(monitor, is_lower_better):
    assert TrainOptions(monitor=monitor).is_lower_better() is is_lower_better


WHOLE_1 = "a whole number of at least 1"
WHOLE_0 = "a whole number of at least 0"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epochs", 0, WHOLE_1),
        ("epochs", 2.0, WHOLE_1),
        ("epochs", True, WHOLE_1),
        ("epochs", None, WHOLE_1),
        ("epochs", "3", WHOLE_1),
        ("seed", -1, WHOLE_0),
        ("seed", None, WHOLE_0),
        ("seed", 2**32, "at most 4294967295"),
        ("batch_size", 0, WHOLE_1),
        ("batch_size", "auto", WHOLE_1),
        ("patience", -1, WHOLE_0),
        ("patience", False, WHOLE_0),
        ("num_threads", -1, WHOLE_0),
        ("checkpoint_steps", 0, WHOLE_1),
        ("learning_rate", 0, "a number above 0"),
        ("learning_rate", -1e-3, "a number above 0"),
        ("learning_rate", math.nan, "a number above 0"),
        ("learning_rate", "fast", "a number above 0"),
        ("learning_rate", True, "a number above 0"),
        ("learning_rate", None, "a number above 0"),
        ("weight_decay", -0.1, "a number of at least 0"),
        ("clip", -1, "a number of at least 0"),
        ("clip", None, "a number of at least 0"),
        ("warmup", 1.5, "a number of at least 0, at most 1"),
        ("warmup", -0.1, "a number of at least 0, at most 1"),
        ("hold_out", 0.95, "a number of at least 0, at most 0.9"),
        ("hold_out", math.nan, "a number of at least 0, at most 0.9"),
        ("checkpoint_seconds", -1, "a number of at least 0"),
        ("optimizer", "adamm", "'adamw', 'adam', 'sgd', 'rmsprop' or 'lion'"),
        ("optimizer", None, "'adamw', 'adam', 'sgd', 'rmsprop' or 'lion'"),
        ("shuffle", 1, "True or False"),
        ("shuffle", "global", "True or False"),
        ("monitor", "", "a name of the history"),
        ("monitor", None, "a name of the history"),
        ("class_weights", "yes", "'auto', 'balanced' or 'none', or {target: {label: weight}}"),
        ("class_weights", None, "'auto', 'balanced' or 'none', or {target: {label: weight}}"),
        ("class_weights", [1.0, 2.0], "'auto', 'balanced' or 'none', or {target: {label: weight}}"),
        ("loss_weights", 2.0, "{target: weight}"),
        ("loss_weights", None, "{target: weight}"),
    ],
)
def test_value_that_cannot_be_is_refused(name, value, expected):
    with pytest.raises(OptionError) as caught:
        TrainOptions(**{name: value})
    assert str(caught.value) == f"{name}: expected {expected}, got {value!r}."
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("weight", [-1, math.nan, "2", None, True])
def test_loss_weight_that_cannot_be_is_named_with_its_target(weight):
    with pytest.raises(OptionError) as caught:
        TrainOptions(loss_weights={"price": 1.0, "sold": weight})
    assert str(caught.value) == f"loss_weights['sold']: expected a number of at least 0, got {weight!r}."


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
    assert make_options(**form) == options
    assert TrainOptions(cache=Path("kept") / "here").to_json()["cache"] == "kept/here"


@pytest.mark.parametrize("label", [0, True, b"yes", "yes"])
def test_options_as_json_are_the_same_behind_a_file(label):
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


def test_option_that_is_not_there_is_refused_with_the_nearest_one():
    with pytest.raises(OptionError) as caught:
        make_options(epoch=3)
    assert str(caught.value) == (
        "option 'epoch': expected an option of train, got 'epoch'. Did you mean 'epochs'?"
    )
    with pytest.raises(OptionError, match=r"got 'zzz'\. There are epochs, batch_size, learning_rate, "):
        make_options(zzz=2)


def test_options_are_frozen_and_keyword_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainOptions().epochs = 3
    with pytest.raises(TypeError):
        TrainOptions(3)
