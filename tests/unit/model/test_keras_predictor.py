"""`KerasPredictor`: what comes out by hand, by name, whatever the size of batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from matched_models import fit, write_table
from penstock.errors import OptionError
from penstock.model.task import find_tasks
from penstock.transform import Keep, Scale
from raising import raises_with

keras = pytest.importorskip("keras")
from penstock.model.keras_predictor import KerasPredictor  # noqa: E402

layers = keras.layers
LEFT = np.array([-3.0, 0.0, 0.5, 2.0], np.float32)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("predictor") / "table")


def make_predictor(pipeline: Any, outputs: Any, *, logits: tuple[str, ...] = ()) -> KerasPredictor:
    """Make a predictor of a model that has the input `left` alone."""
    left = keras.Input((), name="left")
    model = keras.Model({"left": left}, outputs(layers.Reshape((1,))(left)))
    return KerasPredictor(model, pipeline, find_tasks(pipeline), dict.fromkeys(logits, True))


def scaled(factors: list[float]) -> Any:
    """Return a head that multiplies its input with each of these."""
    dense = layers.Dense(len(factors), use_bias=False)

    def apply(before: Any) -> Any:
        after = dense(before)
        dense.set_weights([np.array([factors], np.float32)])
        return after

    return apply


def test_binary_logits_become_the_probability_of_the_second_label(table):
    pipeline = fit(table, ("left",), ("adopted",))
    found = make_predictor(pipeline, scaled([20.0]), logits=("adopted",))({"left": LEFT})["adopted"]
    assert found.dtype == np.float32
    assert found.shape == (4,)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-20.0 * LEFT.astype(np.float64))), rtol=1e-6)
    assert found[0] > 0  # what 1 - tanh gives in single precision


def test_multiclass_logits_become_probabilities_that_sum_to_one(table):
    pipeline = fit(table, ("left",), ("kind",))
    found = make_predictor(pipeline, scaled([1.0, 300.0, -2.0]), logits=("kind",))({"left": LEFT})["kind"]
    logits = LEFT[:, None].astype(np.float64) * [1.0, 300.0, -2.0]
    wanted = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-40)
    assert found.dtype == np.float32


def test_probabilities_are_taken_as_they_are(table):
    pipeline = fit(table, ("left",), ("tags",))
    head = scaled([0.1, 0.2, 0.05])
    found = make_predictor(pipeline, lambda before: layers.Activation("sigmoid")(head(before)))(
        {"left": LEFT}
    )
    wanted = 1 / (1 + np.exp(-LEFT[:, None] * np.array([0.1, 0.2, 0.05])))
    np.testing.assert_allclose(found["tags"], wanted, rtol=1e-6)


@pytest.mark.parametrize("are_logits", [False, True])
@pytest.mark.parametrize(("target", "factors"), [("adopted", [2.0]), ("tags", [0.1, 2.0, -1.0])])
def test_temperature_divides_the_logits(table, target, factors, are_logits):
    pipeline = fit(table, ("left",), (target,))
    head = scaled(factors)
    usual = make_predictor(
        pipeline,
        head if are_logits else lambda before: layers.Activation("sigmoid")(head(before)),
        logits=(target,) if are_logits else (),
    )
    cooled = KerasPredictor(usual.model, pipeline, usual.tasks, usual.logits, {target: 2.5, "other": 0.0})
    wanted = 1 / (1 + np.exp(-LEFT[:, None] * np.array(factors) / 2.5))
    found = cooled({"left": LEFT})[target]
    np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-5)
    assert not np.array_equal(found, usual({"left": LEFT})[target])


@pytest.mark.parametrize("are_logits", [False, True])
def test_temperature_of_classes_keeps_their_sum(table, are_logits):
    pipeline = fit(table, ("left",), ("kind",))
    head = scaled([1.0, 3.0, -2.0])
    outputs = head if are_logits else lambda before: layers.Softmax()(head(before))
    usual = make_predictor(pipeline, outputs, logits=("kind",) if are_logits else ())
    found = KerasPredictor(usual.model, pipeline, usual.tasks, usual.logits, {"kind": 0.5})({"left": LEFT})[
        "kind"
    ]
    powers = np.exp(LEFT[:, None].astype(np.float64) * [2.0, 6.0, -4.0])
    np.testing.assert_allclose(found, powers / powers.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-12)


def test_numbers_come_in_the_units_of_the_stored_field(table):
    pipeline = fit(table, ("left",), (), price=Scale("minmax"))
    found = make_predictor(pipeline, scaled([1.0]))({"left": LEFT})["price"]
    np.testing.assert_allclose(found, 100 + 60 * LEFT, rtol=1e-6)
    assert found.dtype == np.float32


def test_several_outputs_go_by_name(table):
    pipeline = fit(table, ("left",), ("adopted", "price"))

    def outputs(before: Any) -> list[Any]:
        price, adopted = scaled([7.0])(before), scaled([2.0])(before)
        return [layers.Identity(name="price")(price), layers.Identity(name="adopted")(adopted)]

    found = make_predictor(pipeline, outputs)({"left": LEFT})
    assert list(found) == ["adopted", "price"]
    np.testing.assert_allclose(found["price"], 7 * LEFT)
    np.testing.assert_allclose(found["adopted"], 2 * LEFT)


def test_model_of_one_plain_input_is_fed_without_a_warning(table):
    left = keras.Input((1,), name="left")
    pipeline = fit(table, ("left",), ("price",))
    for model in (keras.Model(left, left * 2.0), keras.Sequential([left, layers.Identity()])):
        predict = KerasPredictor(model, pipeline, find_tasks(pipeline), {})
        factor = 1.0 if isinstance(model, keras.Sequential) else 2.0
        np.testing.assert_allclose(predict({"left": LEFT})["price"], factor * LEFT)


class Counting(layers.Layer):
    """Counts how often it is called by Python: once a trace."""

    num_calls = 0

    def call(self, inputs: Any) -> Any:
        self.num_calls += 1
        return inputs


def test_model_is_traced_once_for_batches_of_all_sizes(table):
    pipeline = fit(table, ("left",), ("price",))
    counting = Counting()
    predict = make_predictor(pipeline, counting)
    batch = np.arange(8, dtype=np.float32)
    predict({"left": batch})
    before = counting.num_calls
    for size in (3, 8, 1, 5):
        np.testing.assert_array_equal(predict({"left": batch[:size]})["price"], batch[:size])
    assert counting.num_calls == before
    predict({"left": np.arange(9, dtype=np.float32)})
    # JAX compiles a model for each size.
    assert counting.num_calls == before + (keras.backend.backend() != "tensorflow")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends do not trace")
def test_first_predictions_of_many_models_are_no_retracing_to_tensorflow(table, caplog):
    pipeline = fit(table, ("left",), ("price",))
    for number in range(8):
        make_predictor(pipeline, scaled([float(number)]))({"left": LEFT})
    assert not [each for each in caplog.messages if "retracing" in each]


def test_no_rows_give_no_predictions(table):
    pipeline = fit(table, ("left",), ("kind", "price"))
    predict = make_predictor(pipeline, lambda x: {"kind": scaled([1, 2, 3])(x), "price": scaled([1])(x)})
    found = predict({"left": np.empty(0, np.float32)})
    assert found["kind"].shape == (0, 3)
    assert found["price"].shape == (0,)


@pytest.mark.parametrize(
    ("inputs", "facts"),
    [
        ({"lefft": LEFT}, "input 'left' array 'lefft' 'lefft'"),
        ({"left": LEFT, "right": LEFT}, "input 'right' 'left'"),
        ({"left": LEFT[:, None, None]}, "input 'left' shape (n, 1, 1)"),
        ({"left": np.array(["a"])}, "input 'left' float32"),
        ({"left": 3.0}, "input 'left' shape 3.0"),
    ],
)
def test_inputs_that_do_not_fit_are_named(table, inputs, facts):
    predict = make_predictor(fit(table, ("left",), ("price",)), scaled([1.0]))
    with raises_with(OptionError, facts):
        predict(inputs)


def test_floats_for_codes_are_refused(table):
    breed = keras.Input((), name="breed", dtype="int32")
    pipeline = fit(table, ("breed",), ("price",), price=Keep("float32"))
    model = keras.Model({"breed": breed}, layers.Embedding(9, 1)(breed))
    with raises_with(OptionError, "input", field="breed", expected="int32", got="float64"):
        KerasPredictor(model, pipeline, find_tasks(pipeline), {})({"breed": np.array([0.5])})


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends do not trace")
def test_model_that_needs_the_size_of_a_batch_is_predicted(table):
    class Sized(layers.Layer):
        def call(self, values):
            return values * np.ones((values.shape[0], 1), np.float32)

        def compute_output_shape(self, shape):
            return shape

    predict = make_predictor(fit(table, ("left",), ("price",)), Sized())
    assert [len(predict({"left": LEFT[:size]})["price"]) for size in (4, 3)] == [4, 3]
