"""`fit` with `to_keras()` refuses a model whose last layer does not fit the number of classes."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError
from raising import containing, raises_with

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
keras = pytest.importorskip("keras")
from penstock.model.class_outputs import check_class_outputs  # noqa: E402
from penstock.model.compatibility import check_model  # noqa: E402
from penstock.model.task import find_tasks  # noqa: E402

SPARSE, BINARY = "sparse_categorical_crossentropy", "binary_crossentropy"
TARGETS = ("kind", "sold", "tags")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes") / "set"
    rows = {
        "x": np.arange(12) * 0.5,
        "kind": ["a", "b", "c"] * 4,
        "sold": ["no", "yes"] * 6,
        "tags": [["p"], ["q", "r"], ["p", "r"]] * 4,
    }
    fields = {"tags": ps.fields.Sequence("string")}
    ps.convert(rows, folder, target="kind", fields=fields, split="train=1.0")
    return folder


def open_with(folder, target, **overrides):
    data = ps.open(folder, target=target)
    others = dict.fromkeys(name for name in TARGETS if name != target)
    return data, ps.Pipeline.fit(data, **others, **overrides)


def make_model(units, loss):
    x = keras.Input((), name="x")
    model = keras.Model(x, keras.layers.Dense(units, "sigmoid")(keras.ops.expand_dims(x, -1)))
    model.compile("sgd", loss)
    return model


REFUSED = [
    ("kind", 1, SPARSE, "Dense(3, …)"),
    ("kind", 2, SPARSE, "Dense(3, …)"),
    ("kind", 2, keras.losses.SparseCategoricalCrossentropy(from_logits=True), "Dense(3, …)"),
    ("kind", 1, BINARY, "Dense(3, …)"),
    ("kind", 3, BINARY, SPARSE),
    ("kind", 3, "categorical_crossentropy", SPARSE),
    ("sold", 1, SPARSE, "Dense(2, …)"),
    ("sold", 2, BINARY, "Dense(1, …)"),
    ("sold", 2, "categorical_crossentropy", BINARY),
    ("tags", 2, BINARY, "Dense(3, …)"),
]
TAKEN = [
    ("kind", 3, SPARSE),
    ("sold", 1, BINARY),
    ("sold", 2, SPARSE),
    ("tags", 3, BINARY),
    ("kind", 1, "mse"),
    ("kind", 2, lambda truth, output: keras.ops.mean(output) + 0 * keras.ops.mean(truth)),
]


@pytest.mark.parametrize(("target", "units", "loss", "advice"), REFUSED)
def test_model_that_cannot_learn_the_classes_is_refused(folder, target, units, loss, advice):
    _, pipeline = open_with(folder, target)
    with pytest.raises(OptionError) as caught:
        check_class_outputs(make_model(units, loss), pipeline)
    assert caught.value.field == target
    assert advice in caught.value.advice


def test_error_equals_the_error_of_training(folder):
    _, pipeline = open_with(folder, "kind")
    model = make_model(2, SPARSE)
    messages = []
    checks = (lambda: check_class_outputs(model, pipeline), lambda: check_model(model, pipeline, tasks))
    tasks = find_tasks(pipeline)
    for check in checks:
        with pytest.raises(OptionError) as caught:
            check()
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == containing("(n, 3)", "(n, 2)", "Dense(3, …)")


@pytest.mark.parametrize(("target", "units", "loss"), TAKEN)
def test_model_that_can_learn_the_classes_is_taken(folder, target, units, loss, caplog):
    _, pipeline = open_with(folder, target)
    check_class_outputs(make_model(units, loss), pipeline)
    assert not caplog.messages


def test_outputs_beyond_the_classes_get_a_warning(folder, caplog):
    _, pipeline = open_with(folder, "kind")
    check_class_outputs(make_model(5, SPARSE), pipeline)
    assert caplog.messages == [containing("(n, 3)", "(n, 5)")]


def test_classes_as_rows_are_left_to_keras(folder):
    one_hot = ps.transform.Encode(output="one_hot", unknown="error", missing="error")
    _, pipeline = open_with(folder, "kind", kind=one_hot)
    assert check_class_outputs(make_model(3, "categorical_crossentropy"), pipeline) is None


class Subclassed(keras.Model):
    """A model whose layers are known when it is called, with the outputs for one or two targets."""

    def __init__(self, units, form="one"):
        super().__init__()
        self.kind, self.sold = keras.layers.Dense(units, "softmax"), keras.layers.Dense(1, "sigmoid")
        self.form = form

    def call(self, inputs):
        x = inputs["x"] if isinstance(inputs, dict) else inputs
        x = keras.ops.expand_dims(x, -1)
        if self.form == "one":
            return self.kind(x)
        return (
            {"kind": self.kind(x), "sold": self.sold(x)}
            if self.form == "dict"
            else (self.kind(x), self.sold(x))
        )


def make_two(units, form):
    x = keras.Input((), name="x")
    column = keras.ops.expand_dims(x, -1)
    outputs = [keras.layers.Dense(units, "softmax")(column), keras.layers.Dense(1, "sigmoid")(column)]
    return keras.Model(x, {"kind": outputs[0], "sold": outputs[1]} if form == "dict" else outputs)


@pytest.mark.parametrize("make", [make_two, Subclassed])
@pytest.mark.parametrize(
    ("structure", "form"), [("auto", "dict"), ("auto", "list"), ("tuple", "list"), ("auto", "one")]
)
def test_models_of_all_kinds_are_refused_by_fit_as_by_training(folder, make, structure, form):
    if form == "one":
        make = Subclassed
    target = "kind" if form == "one" else ["kind", "sold"]
    data = ps.open(folder, target=target)
    pipeline = ps.Pipeline.fit(data, **{name: None for name in TARGETS if name not in target})
    losses = {"one": SPARSE, "dict": {"kind": SPARSE, "sold": BINARY}, "list": [SPARSE, BINARY]}[form]
    feed = data["train"].loader(pipeline, batch_size=4).to_keras(structure=structure)
    expected = {"field": "kind", "advice": containing("Dense(3, …)")}
    if (structure, form) == ("auto", "list"):
        expected = {"got": containing("outputs without these names"), "advice": containing("by name")}
    for units in (2,) if "field" in expected else (2, 3):
        model = make(units, form)
        model.compile("sgd", losses)
        with raises_with(OptionError, **expected):
            model.fit(feed, verbose=0)
        if structure == "auto":
            with raises_with(OptionError, **expected):
                check_model(make(units, form), pipeline, find_tasks(pipeline))
    if "field" in expected:
        model = make(3, form)
        model.compile("sgd", losses)
        assert np.isfinite(model.fit(feed, verbose=0).history["loss"]).all()


def test_outputs_without_a_target_and_losses_of_a_users_own_step_are_taken(folder):
    data, pipeline = open_with(folder, "kind")
    x = keras.Input((), name="x")
    column = keras.ops.expand_dims(x, -1)
    model = keras.Model(x, {"kind": keras.layers.Dense(3, "softmax")(column), "other": column})
    model.compile("sgd", {"kind": SPARSE})
    check_class_outputs(model, pipeline)

    class Mixed(keras.Model):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return super().compute_loss(x, keras.ops.one_hot(y, 3), y_pred, sample_weight, training)

    model = Mixed(x, keras.layers.Dense(3, "softmax")(column))
    model.compile("sgd", "categorical_crossentropy")
    feed = data["train"].loader(pipeline, batch_size=4).to_keras()
    assert np.isfinite(model.fit(feed, verbose=0).history["loss"]).all()


@pytest.mark.parametrize("method", ["fit", "evaluate"])
@pytest.mark.parametrize("shape", ["model", "sequential"])
def test_fit_and_evaluate_refuse_it_before_the_first_step(folder, method, shape):
    data, pipeline = open_with(folder, "kind")
    model = make_model(2, SPARSE)
    if shape == "sequential":
        model = keras.Sequential([keras.layers.Reshape((1,)), keras.layers.Dense(2, "softmax")])
        model.compile("sgd", SPARSE)
    feed = data["train"].loader(pipeline, batch_size=4).to_keras()
    with pytest.raises(OptionError, match=r"Dense\(3, …\)"):
        getattr(model, method)(feed, verbose=0)


def test_predict_takes_a_model_with_other_classes(folder):
    data, pipeline = open_with(folder, "kind")
    feed = data["train"].loader(pipeline, batch_size=12).to_keras()
    assert make_model(2, SPARSE).predict(feed, verbose=0).shape == (12, 2)
