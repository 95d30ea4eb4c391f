"""Outputs of a SavedModel: the numbers of `BatchPredictor`, with labels."""

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.model.batch_predictor import _convert_output
from penstock.model.task import Task

tf = pytest.importorskip("tensorflow")
from penstock.export.saved_model import plan_outputs  # noqa: E402

RNG = np.random.default_rng(2)
LOGITS = RNG.normal(0, 3, (6, 3)).astype(np.float32)
CHANCES = (np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)).astype(np.float32)


def serve(task, values, *, is_logits=False, temperature=1.0):
    (target,) = plan_outputs({task.name: task}, {task.name: is_logits}, {task.name: temperature})
    found = {name: each.numpy() for name, each in target.serve(tf.constant(values)).items()}
    described = target.to_json()
    assert described.keys() == found.keys()
    for name, each in described.items():
        kind = found[name].dtype
        assert each["dtype"] == ("string" if kind.kind == "O" else kind.name)
        assert [len(values), *each["shape"][1:]] == list(found[name].shape)
    return found


@pytest.mark.parametrize("temperature", [1.0, 2.5, 0.5])
@pytest.mark.parametrize("is_logits", [False, True])
@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_probabilities_of_several_labels(kind, is_logits, temperature):
    task = Task("kind", kind, ("a", "b", "c"), (3,) if kind == "multilabel" else ())
    values = LOGITS if is_logits else CHANCES
    found = serve(task, values, is_logits=is_logits, temperature=temperature)
    expected = _convert_output(task, values, is_logits, temperature)
    np.testing.assert_allclose(found["kind_probabilities"], expected, rtol=1e-6, atol=1e-9)
    assert found["kind_labels"].tolist() == [[b"a", b"b", b"c"]] * 6
    if kind == "multilabel":
        np.testing.assert_array_equal(found["kind"], expected >= 0.5)
        assert "kind_probability" not in found
    else:
        assert found["kind"].tolist() == [b"abc"[n : n + 1] for n in expected.argmax(1)]
        np.testing.assert_array_equal(found["kind_probability"], found["kind_probabilities"].max(1))


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("is_logits", [False, True])
def test_probability_of_the_second_of_two_labels(is_logits, temperature):
    task = Task("sold", "binary", (0, 1))
    values = LOGITS[:, :1] if is_logits else CHANCES[:, :1]
    found = serve(task, values, is_logits=is_logits, temperature=temperature)
    expected = _convert_output(task, values, is_logits, temperature)
    np.testing.assert_allclose(found["sold_probabilities"][:, 1], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found["sold_probabilities"].sum(1), 1, rtol=1e-6)
    assert found["sold"].tolist() == (expected >= 0.5).astype(int).tolist()
    assert found["sold"].dtype == np.int64


def test_certain_probabilities_stay_finite_with_a_temperature():
    task = Task("sold", "binary", ("no", "yes"))
    values = np.array([[0.0], [1.0]], np.float32)
    found = serve(task, values, temperature=2.0)
    np.testing.assert_allclose(
        found["sold_probabilities"][:, 1], _convert_output(task, values, False, 2.0), rtol=1e-6
    )
    assert np.isfinite(found["sold_probabilities"]).all()


@pytest.mark.parametrize("method", ["none", "standard", "log1p"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_numbers_are_in_the_units_of_the_target(method, shape):
    task = Task("price", "regression", shape=shape, method=method, shift=3.5, factor=0.25)
    values = LOGITS if shape else LOGITS[:, :1]
    found = serve(task, values)
    np.testing.assert_allclose(found["price"], _convert_output(task, values, False, 1.0), rtol=1e-6)


def test_outputs_of_the_same_name_are_an_error():
    tasks = {
        "sold": Task("sold", "binary", ("no", "yes")),
        "sold_labels": Task("sold_labels", "regression"),
    }
    with pytest.raises(OptionError) as caught:
        plan_outputs(tasks, {}, {})
    assert caught.value.field == "sold_labels"
