"""Options of training: defaults, the batch size that is chosen, values that cannot be."""

import dataclasses
import json
import math
from pathlib import Path
from types import MappingProxyType

import pytest

from penstock.errors import OptionError
from penstock.training.options import TrainChoices, TrainOptions, make_options
from raising import containing, raises_with


def test_keywords_are_the_fields_of_the_options():
    assert list(TrainChoices.__annotations__) == [each.name for each in dataclasses.fields(TrainOptions)]


def test_defaults_are_those_of_the_docstring():
    options = TrainOptions()
    assert (options.epochs, options.batch_size, options.seed, options.shuffle) == (None, None, 0, True)
    assert (options.learning_rate, options.schedule, options.averaging) == (2e-3, None, None)
    assert (options.optimizer, options.class_weights, options.loss_weights) == ("adamw", "none", {})
    assert (options.monitor, options.is_lower_better(), options.patience) == ("val_data_loss", True, "auto")
    assert (options.hold_out, options.cache, options.checkpoint_steps) == (0.0, None, None)


@pytest.mark.parametrize(("steps", "epochs"), [(1, 60), (40, 50), (62, 32), (100, 20), (5000, 20)])
def test_number_of_epochs_follows_the_steps_per_epoch(steps, epochs):
    assert TrainOptions().resolved(steps).num_epochs == epochs
    assert TrainOptions().resolved(steps, is_validated=False).num_epochs == 15
    assert TrainOptions(epochs=7).resolved(steps).num_epochs == 7


def list_resolved(options):
    names = ("schedule", "averaging", "weight_decay", "warmup", "patience")
    return tuple(getattr(options, name) for name in names)


def test_defaults_that_depend_on_images_are_filled_in():
    assert list_resolved(TrainOptions().resolved(50)) == ("constant", 0.99, 0.01, 0.05, 8)
    images = TrainOptions().resolved(85, images_per_epoch=2720)
    assert list_resolved(images) == ("one_cycle", 0.0, 0.05, 0.25, None)
    assert images.most_waited is None
    given = TrainOptions(schedule="constant", patience=3, weight_decay=0.0)
    assert list_resolved(given.resolved(85, images_per_epoch=2720)) == ("constant", 0.0, 0.0, 0.05, 3)
    assert TrainOptions(schedule="one_cycle", patience=None).resolved(50).averaging == 0.0
    assert TrainOptions(schedule="cosine").resolved(50, images_per_epoch=9).averaging == 0.0
    assert images.resolved(1) == images


@pytest.mark.parametrize(("images", "epochs"), [(1, 80), (724, 80), (1500, 60), (2720, 33), (100_000, 10)])
def test_number_of_epochs_follows_the_number_of_images(images, epochs):
    for is_validated, most in ((True, 80), (False, 40)):
        options = TrainOptions().resolved(50, is_validated=is_validated, images_per_epoch=images)
        assert options.num_epochs == min(epochs, most)


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
    assert TrainOptions().choose_batch_size(num_records, has_images=True) == max(32, size)
    assert TrainOptions(batch_size=7).choose_batch_size(num_records, has_images=True) == 7


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
def test_name_of_the_monitor_decides_whether_less_is_better(monitor, is_lower_better):
    assert TrainOptions(monitor=monitor).is_lower_better() is is_lower_better


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
        ("loss_weights", 2.0, "{target: weight}"),
        ("loss_weights", None, "{target: weight}"),
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
        make_options(epoch=3)
    with raises_with(OptionError, got="'zzz'", advice=containing("epochs", "batch_size", "learning_rate")):
        make_options(zzz=2)


def test_options_are_frozen_and_keyword_only():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainOptions().epochs = 3
    with pytest.raises(TypeError):
        TrainOptions(3)
