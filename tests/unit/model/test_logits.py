"""`find_logits`: who says that outputs are logits: the loss, the last activation, or the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from matched_models import fit, write_table
from penstock.errors import OptionError
from penstock.model.task import Task, find_tasks
from raising import containing, raises_with

keras = pytest.importorskip("keras")
from penstock.model.logits import find_logits, find_losses, name_loss  # noqa: E402

layers, losses = keras.layers, keras.losses
BINARY = {"y": Task("y", "binary", ("no", "yes"))}
CLASSES = {"y": Task("y", "multiclass", ("a", "b", "c"))}


def make_model(head: Any) -> Any:
    x = keras.Input((2,), name="x")
    return keras.Model({"x": x}, head(x), name="own")


def dense(units: int = 1, activation: str | None = None) -> Any:
    return layers.Dense(units, activation)


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        (dense(), True),
        (dense(1, "sigmoid"), False),
        (lambda x: keras.ops.sigmoid(dense()(x)), False),
        (lambda x: layers.Activation("sigmoid")(dense()(x)), False),
        (lambda x: layers.Reshape((1,))(layers.Dropout(0.5)(dense(1, "sigmoid")(x))), False),
        (lambda x: layers.Activation("linear")(dense()(x)), True),
        (keras.Sequential([keras.Input((2,)), dense(1, "sigmoid")]), False),
        (keras.Sequential([keras.Input((2,)), dense()]), True),
        (lambda x: layers.Average()([dense(1, "sigmoid")(x), dense(1, "sigmoid")(x)]), False),  # by numbers
        (lambda x: layers.Add()([dense()(x), dense()(x)]), True),
        (lambda x: layers.Add()([layers.Dense(1, kernel_initializer="zeros")(x)] * 2), True),
    ],
)
def test_last_activation_decides_or_else_the_numbers(head, wanted):
    assert find_logits(make_model(head), BINARY) == {"y": wanted}


def test_classes_are_probabilities_if_they_sum_to_one():
    def average(x: Any, activation: str) -> Any:
        return layers.Average()([dense(3, activation)(x), dense(3, activation)(x)])

    assert find_logits(make_model(lambda x: average(x, "softmax")), CLASSES) == {"y": False}
    assert find_logits(make_model(lambda x: average(x, "sigmoid")), CLASSES) == {"y": True}
    assert find_logits(make_model(dense(3, "softmax")), CLASSES) == {"y": False}


def test_numbers_are_never_logits():
    assert find_logits(make_model(dense()), {"y": Task("y", "regression")}) == {"y": False}


def test_loss_of_a_compiled_model_decides():
    model = make_model(lambda x: layers.Add()([dense()(x), dense()(x)]))
    model.compile(loss=losses.BinaryCrossentropy(from_logits=True))
    assert find_logits(model, BINARY) == {"y": True}
    for loss in ({"y": "binary_crossentropy"}, losses.binary_crossentropy):
        model.compile(loss=loss)
        assert find_logits(model, BINARY) == {"y": False}
    model.compile(loss="hinge")
    assert find_logits(model, BINARY) == {"y": True}


def test_loss_that_contradicts_the_last_activation_is_refused():
    model = make_model(dense())
    model.compile(loss="binary_crossentropy")
    with raises_with(OptionError, "'own' target 'y' loss from_logits=True"):
        find_logits(model, BINARY)
    model = make_model(dense(3, "softmax"))
    model.compile(loss=losses.SparseCategoricalCrossentropy(from_logits=True))
    with raises_with(OptionError, field="y", expected=containing("loss", "from_logits=True")):
        find_logits(model, CLASSES)


class Plain(keras.Model):
    def __init__(self, activation: str | None) -> None:
        super().__init__(name="plain")
        self.dense = layers.Dense(1, activation)

    def call(self, inputs: Any) -> Any:
        return self.dense(keras.ops.expand_dims(inputs["left"], -1))


def test_numbers_of_a_subclassed_model_decide_if_the_pipeline_describes_its_inputs(tmp_path):
    pipeline = fit(write_table(tmp_path / "table"), ("left",), ("adopted",))
    tasks = find_tasks(pipeline)
    assert find_logits(Plain(None), tasks, pipeline) == {"adopted": True}
    assert find_logits(Plain("sigmoid"), tasks, pipeline) == {"adopted": False}
    with raises_with(
        OptionError, advice=containing("model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=…))")
    ):
        find_logits(Plain(None), tasks)


def test_losses_are_found_by_target_in_every_form():
    x = keras.Input((2,), name="x")
    tasks = {"a": Task("a", "regression"), "b": Task("b", "regression")}
    heads = {name: layers.Dense(1, name=name)(x) for name in ("b", "a")}
    model = keras.Model(x, list(heads.values()))
    assert find_losses(model, tasks) == {}
    for given in (["mae", "mse"], {"b": "mae", "a": "mse"}):
        model.compile(loss=given)
        assert find_losses(model, tasks) == {"a": "mse", "b": "mae"}
    model.compile(loss="mse")
    assert find_losses(model, tasks) == {"a": "mse", "b": "mse"}


def test_losses_are_named_as_keras_writes_them():
    assert name_loss(losses.SparseCategoricalCrossentropy()) == "sparse_categorical_crossentropy"
    assert name_loss(losses.binary_crossentropy) == "binary_crossentropy"
    assert name_loss("mse") == "mse"
    assert name_loss(None) == ""
