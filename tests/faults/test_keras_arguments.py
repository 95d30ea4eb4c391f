"""Arguments of `fit`, `evaluate` and `predict` that have no effect on a loader's batches are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from pets_data import make_loader, write_pets

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
keras = pytest.importorskip("keras")

NUM_RECORDS = 12


@pytest.fixture(scope="module")
def pets(tmp_path_factory) -> ps.Dataset:
    return write_pets(tmp_path_factory.mktemp("pets") / "pets", NUM_RECORDS)


@pytest.fixture(scope="module")
def two_targets(tmp_path_factory) -> ps.Dataset:
    numbers = np.arange(NUM_RECORDS)
    columns = {"age": numbers / 8, "adopted": numbers % 2, "fee": numbers * 2.0}
    folder = tmp_path_factory.mktemp("two") / "pets"
    return ps.convert(columns, folder, target=["adopted", "fee"], split="train=1.0")


def make_model(names: tuple[str, ...] = ("adopted",), *, is_named: bool = False) -> Any:
    age = keras.Input((), name="age")
    units = {
        name: keras.layers.Dense(1, "sigmoid", name=name)(keras.ops.expand_dims(age, 1)) for name in names
    }
    model = keras.Model({"age": age}, units if is_named or len(names) > 1 else units[names[0]])
    model.compile("sgd", dict.fromkeys(names, "mse") if is_named or len(names) > 1 else "mse")
    return model


def feed_age(pets: ps.Dataset, **choices: Any) -> Any:
    others = dict.fromkeys((name for name in pets.schema if name not in ("age", "adopted", "fee")), None)
    return make_loader(pets, ps.Pipeline.fit(pets, **others), **choices).to_keras()


@pytest.mark.parametrize("is_named", [False, True])
def test_x08_class_weight_of_one_target_is_refused(pets, is_named) -> None:
    with pytest.raises(ps.errors.OptionError) as caught:
        make_model(is_named=is_named).fit(feed_age(pets), class_weight={0: 1.0, 1: 50.0}, verbose=0)
    assert caught.value.field == "class_weight"
    assert "class_weights" in caught.value.advice


def test_x08_class_weight_of_several_targets_is_refused(two_targets) -> None:
    with pytest.raises(ps.errors.OptionError) as caught:
        make_model(("adopted", "fee")).fit(feed_age(two_targets), class_weight={0: 1.0, 1: 9.0}, verbose=0)
    assert caught.value.field == "class_weight"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("y", np.zeros(NUM_RECORDS)),
        ("sample_weight", np.ones(NUM_RECORDS)),
        ("batch_size", 64),
        ("shuffle", False),
        ("shuffle", "batch"),
    ],
)
def test_x08_arguments_of_fit_without_effect_are_refused(pets, name, given) -> None:
    with pytest.raises(ps.errors.OptionError) as caught:
        make_model().fit(feed_age(pets), **{name: given}, verbose=0)
    assert caught.value.field == name


@pytest.mark.parametrize("name", ["sample_weight", "batch_size"])
def test_x08_arguments_of_evaluate_without_effect_are_refused(pets, name) -> None:
    given = {"sample_weight": np.ones(NUM_RECORDS), "batch_size": 64}[name]
    with pytest.raises(ps.errors.OptionError) as caught:
        make_model().evaluate(feed_age(pets), **{name: given}, verbose=0)
    assert caught.value.field == name


def test_x08_batch_size_of_predict_is_refused(pets) -> None:
    with pytest.raises(ps.errors.OptionError) as caught:
        make_model().predict(feed_age(pets), batch_size=64, verbose=0)
    assert caught.value.field == "batch_size"


def test_x08_validation_batch_size_is_refused(pets) -> None:
    with pytest.raises(ps.errors.OptionError) as caught:
        make_model().fit(feed_age(pets), validation_data=feed_age(pets), validation_batch_size=64, verbose=0)
    assert caught.value.field == "validation_batch_size"


def test_x08_validation_split_is_refused_by_keras(pets) -> None:
    with pytest.raises(ValueError, match="validation_split"):
        make_model().fit(feed_age(pets), validation_split=0.5, verbose=0)


def test_x08_class_weight_on_to_tf_is_refused_by_keras(pets) -> None:
    others = dict.fromkeys((name for name in pets.schema if name not in ("age", "adopted")), None)
    feed = make_loader(pets, ps.Pipeline.fit(pets, **others)).to_tf(structure="dict")
    with pytest.raises(ValueError, match="class_weight"):
        make_model(is_named=True).fit(feed, class_weight={0: 1.0, 1: 50.0}, shuffle=False, verbose=0)


def test_arguments_with_effect_are_taken(pets) -> None:
    model, held = make_model(), feed_age(pets, shuffle=False)
    feed = feed_age(pets, shuffle=False)
    history = model.fit(feed, validation_data=held, epochs=2, shuffle=False, validation_freq=1, verbose=0)
    assert len(history.history["val_loss"]) == 2
    assert model.predict(held, steps=1, verbose=0).shape == (4, 1)


def test_arrays_with_a_batch_size_are_validated_by_a_feed(pets) -> None:
    x, y = {"age": np.arange(8, dtype=np.float32)}, np.zeros((8, 1))
    history = make_model().fit(x, y, batch_size=4, validation_data=feed_age(pets), verbose=0)
    assert "val_loss" in history.history


ON_JAX = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import keras
import penstock as ps
from pets_data import make_loader, write_pets
pets = write_pets(Path(sys.argv[1]), 12)
age = keras.Input((), name="age")
model = keras.Model({"age": age}, keras.layers.Dense(1)(keras.ops.expand_dims(age, 1)))
model.compile("sgd", "mse")
pipeline = ps.Pipeline.fit(pets, number=None, kind=None)
for name, given in (("class_weight", {0: 1.0, 1: 9.0}), ("batch_size", 3), ("sample_weight", [1.0] * 12)):
    try:
        model.fit(make_loader(pets, pipeline).to_keras(), verbose=0, **{name: given})
    except ps.errors.OptionError as error:
        print(keras.backend.backend(), error.field)
model.fit(make_loader(pets, pipeline).to_keras(), verbose=0)
print("trained")
"""


def test_x08_arguments_without_effect_are_refused_on_jax(tmp_path) -> None:
    pytest.importorskip("jax")
    tests = os.fspath(Path(__file__).parents[1])
    command = [sys.executable, "-c", ON_JAX, os.fspath(tmp_path / "pets"), tests]
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [
        *("jax", "class_weight", "jax", "batch_size", "jax", "sample_weight", "trained"),
    ], done.stderr
