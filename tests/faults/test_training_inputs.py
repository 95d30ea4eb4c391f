"""Inputs and labels that do not fit a model: named before training, never swapped, never dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from matched_models import NUM_RECORDS, fit, write_table
from penstock.errors import FieldError, OptionError
from penstock.model.task import find_tasks
from raising import containing, raises_with

keras = pytest.importorskip("keras")
from penstock.model.class_outputs import check_labels  # noqa: E402
from penstock.model.compatibility import check_model  # noqa: E402
from penstock.model.keras_predictor import KerasPredictor  # noqa: E402

layers = keras.layers


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("training") / "table")


class Taking(keras.Model):
    """A subclassed model that weighs each input by its own factor."""

    def __init__(self, factors: dict[str, float]) -> None:
        super().__init__(name="taking")
        self.factors = factors

    def call(self, inputs: Any) -> Any:
        return keras.ops.expand_dims(sum(inputs[name] * each for name, each in self.factors.items()), -1)


def make_functional(factors: dict[str, float], form: str) -> Any:
    """Return a functional model that does the same, made of a dict or of a list in that order."""
    inputs = {name: keras.Input((), name=name) for name in factors}
    total = sum(inputs[name] * factor for name, factor in factors.items())
    given = inputs if form == "dict" else list(inputs.values())
    return keras.Model(given, layers.Reshape((1,))(total), name="taking")


def make_taking(factors: dict[str, float], form: str) -> Any:
    return Taking(factors) if form == "subclass" else make_functional(factors, form)


FORMS = pytest.mark.parametrize("form", ["dict", "list", "subclass"])


@FORMS
def test_t05_missing_input_is_named_with_the_nearest_field(table, form):
    pipeline = fit(table, ("left", "right"), ("price",))
    model = make_taking({"left": 1.0, "rigt": 2.0}, form)
    what, got = containing("'rigt'", "'taking'"), containing("'left'", "'right'")
    with raises_with(OptionError, what=what, got=got, advice=containing("keras.Input((), name='right')")):
        check_model(model, pipeline, find_tasks(pipeline))


@FORMS
def test_t06_extra_input_is_an_error_and_not_a_warning(table, form):
    pipeline = fit(table, ("left", "right"), ("price",))
    facts = {"what": containing("'left'"), "expected": containing("'taking'"), "got": containing("'right'")}
    advice = containing("Pipeline.fit(…, left=None)", "keras.Input((), name='left')")
    with raises_with(OptionError, **facts, advice=advice):
        check_model(make_taking({"right": 2.0}, form), pipeline, find_tasks(pipeline))


def test_t07_wrong_width_is_named_with_both_shapes(table):
    pipeline = fit(table, ("photo",), ("price",))
    photo = keras.Input((4, 5, 1), name="photo")
    model = keras.Model({"photo": photo}, layers.Dense(1)(layers.Flatten()(photo)), name="own")
    what = containing("'photo'", "'own'")
    with raises_with(OptionError, what=what, expected=containing("(n, 4, 5, 1)"), got=containing("(n, ")):
        check_model(model, pipeline, find_tasks(pipeline))


def test_t07_strings_and_floats_for_whole_numbers_are_named(table):
    pipeline = fit(table, ("left",), ("price",))
    left = keras.Input((), name="left", dtype="int32")
    model = keras.Model({"left": left}, layers.Embedding(3, 1)(left), name="own")
    what = containing("'left'", "'own'")
    with raises_with(OptionError, what=what, expected=containing("int32"), got=containing("float32")):
        check_model(model, pipeline, find_tasks(pipeline))
    predict = KerasPredictor(make_functional({"left": 1.0}, "dict"), pipeline, find_tasks(pipeline), {})
    facts = {"expected": containing("float32", "(n,)"), "got": containing("strings")}
    with raises_with(OptionError, what=containing("'left'"), **facts):
        predict({"left": np.array(["a", "b"])})


def test_t07_inputs_of_different_lengths_are_named(table):
    pipeline = fit(table, ("left", "right"), ("price",))
    model = make_functional({"left": 1.0, "right": 1.0}, "dict")
    predict = KerasPredictor(model, pipeline, find_tasks(pipeline), {})
    facts = {"expected": containing(4, "'left'"), "got": containing(3)}
    with raises_with(OptionError, what=containing("'right'"), **facts):
        predict({"left": np.zeros(4, np.float32), "right": np.zeros(3, np.float32)})


@FORMS
@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_t08_inputs_of_equal_shape_go_by_name_whatever_their_order(table, form, order):
    pipeline = fit(table, ("left", "right"), ("price",))
    factors = {"left": 1.0, "right": 10.0}
    model = make_taking({name: factors[name] for name in order}, form)
    tasks = find_tasks(pipeline)
    check_model(model, pipeline, tasks)
    loader = table["train"].loader(pipeline, batch_size=9)
    predict = KerasPredictor(model, pipeline, tasks, {})
    wanted, found = [], []
    for inputs, _ in loader.read(0):
        wanted.append(inputs["left"] + 10 * inputs["right"])
        found.append(predict(inputs)["price"])
        turned = {name: inputs[name] for name in reversed(inputs)}
        np.testing.assert_array_equal(predict(turned)["price"], found[-1])
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(wanted), rtol=1e-6)
    by_keras = model.predict(loader.to_keras(), verbose=0)[:, 0]
    assert len(by_keras) == NUM_RECORDS
    np.testing.assert_allclose(by_keras, np.concatenate(wanted), rtol=1e-6)


def test_t08_inputs_that_only_have_a_position_are_refused(table):
    pipeline = fit(table, ("left", "right"), ("price",))
    inputs = [keras.Input(()), keras.Input(())]
    model = keras.Model(inputs, layers.Reshape((1,))(inputs[0] + 10 * inputs[1]))
    with raises_with(OptionError, expected=containing("name"), got=containing("'keras_tensor")):
        check_model(model, pipeline, find_tasks(pipeline))


def make_classifier(units: int, loss: str) -> Any:
    left = keras.Input((1,), name="left")
    model = keras.Model({"left": left}, layers.Dense(units, "softmax")(left), name="own")
    model.compile(loss=loss)
    return model


def test_t10_label_outside_the_classes_of_a_sparse_loss_is_named(table):
    pipeline = fit(table, ("left",), ("stars",))
    model, tasks = make_classifier(2, "sparse_categorical_crossentropy"), find_tasks(pipeline)
    check_model(model, pipeline, tasks)
    first = int(np.argmax(table["train"].columns(fields=["stars"])["stars"].values == 2))
    facts = {"record": first, "expected": containing(0, 1), "got": containing(2)}
    with raises_with(FieldError, what=containing("'stars'", "'train'"), **facts):
        check_labels(model, tasks, pipeline, table["train"])


def test_t10_float_labels_of_a_sparse_loss_are_named(tmp_path):
    columns = {"left": np.arange(6.0), "grade": np.array([0.0, 1.0, 2.0, 1.5, 0.0, 1.0])}
    data = ps.convert(columns, tmp_path / "t", target="grade", split="train=1.0")
    pipeline = ps.Pipeline.fit(data)
    model, tasks = make_classifier(3, "sparse_categorical_crossentropy"), find_tasks(pipeline)
    check_model(model, pipeline, tasks)
    facts = {"expected": containing(0, 2), "got": containing(1.5)}
    with raises_with(FieldError, what=containing("'grade'", "'train'"), **facts):
        check_labels(model, tasks, pipeline, data["train"])


def test_t10_coded_label_that_the_train_split_lacks_is_named_by_the_pipeline(table, tmp_path):
    pipeline = fit(table, ("left",), ("kind",))
    columns = {"left": np.arange(4.0), "kind": ["a", "b", "d", "c"]}
    fields = {"kind": ps.fields.Category()}
    other = ps.convert(columns, tmp_path / "t", target="kind", fields=fields, split="train=1.0")
    with raises_with(FieldError, field="kind", got=containing("'d'")):
        list(other["train"].loader(pipeline, batch_size=4))


def test_t10_classes_and_outputs_must_be_as_many(table):
    pipeline = fit(table, ("left",), ("kind",))
    model = make_classifier(2, "sparse_categorical_crossentropy")
    with raises_with(OptionError, what=containing("'kind'"), expected=containing("(n, 3)")):
        check_model(model, pipeline, find_tasks(pipeline))
