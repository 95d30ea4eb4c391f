"""The model of an ensemble: the mean of probabilities, and of numbers in the units of the target."""

import numpy as np
import pytest

import penstock as ps
from penstock.model.task import find_tasks

keras = pytest.importorskip("keras")
from penstock.model.keras_predictor import KerasPredictor  # noqa: E402
from penstock.training.members import average_models  # noqa: E402

X = np.array([-1.0, 0.0, 2.0], np.float32)


def fit(tmp_path, target, **transforms):
    rows = {"age": np.linspace(-2, 2, 30).astype(np.float32), "y": target}
    data = ps.convert(rows, tmp_path / "data", target="y", split="train=1")
    return ps.Pipeline.fit(data, **transforms)


def make_model(weight, units=1, activation=None):
    """Return a model of one input that multiplies it by 1, 2, … times a weight."""
    age = keras.Input((), name="age")
    column = keras.ops.expand_dims(age, -1)
    layer = keras.layers.Dense(units, activation=activation, use_bias=False, name="head")
    model = keras.Model({"age": age}, layer(column), name="same")
    layer.kernel.assign(weight * np.arange(1, units + 1, dtype=np.float32)[None])
    return model


def predict_both(models, pipeline, logits):
    tasks = find_tasks(pipeline)
    average = average_models(models, pipeline, tasks, [{"y": each} for each in logits])
    inputs = {"age": X}
    each = [
        KerasPredictor(model, pipeline, tasks, {"y": is_logits})(inputs)["y"]
        for model, is_logits in zip(models, logits, strict=True)
    ]
    return KerasPredictor(average, pipeline, tasks, {"y": False})(inputs)["y"], each


def test_probabilities_and_logits_are_averaged_as_probabilities(tmp_path):
    pipeline = fit(tmp_path, ["yes", "no", "yes"] * 10)
    models = [make_model(1.0), make_model(-3.0, activation="sigmoid")]
    found, each = predict_both(models, pipeline, [True, False])
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-6)
    np.testing.assert_allclose(each[0], 1 / (1 + np.exp(-X)), rtol=1e-6)


def test_classes_are_averaged_over_the_softmax_of_each(tmp_path):
    pipeline = fit(tmp_path, ["a", "b", "c"] * 10)
    found, each = predict_both([make_model(1.0, 3), make_model(-2.0, 3)], pipeline, [True, True])
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("method", ["log1p", "standard", None])
def test_numbers_are_averaged_in_the_units_of_the_target(tmp_path, method):
    transforms = {} if method is None else {"y": ps.transform.Scale(method)}
    pipeline = fit(tmp_path, np.exp(np.linspace(-3, 6, 30)), **transforms)
    found, each = predict_both([make_model(1.0), make_model(-3.0)], pipeline, [False, False])
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-5)


def test_model_with_a_single_unnamed_input_takes_part(tmp_path):
    pipeline = fit(tmp_path, ["yes", "no", "yes"] * 10)
    plain = keras.Sequential([keras.Input((1,), name="age"), keras.layers.Dense(1, activation="sigmoid")])
    found, each = predict_both([plain, make_model(1.0)], pipeline, [False, True])
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-6)
