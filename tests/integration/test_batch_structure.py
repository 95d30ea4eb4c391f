"""The structure of batches: which models `to_keras()` and `to_tf()` fit without names."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

import penstock as ps
from raising import containing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

NUM_RECORDS = 20
layers = keras.layers


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    numbers = np.arange(NUM_RECORDS)
    return {
        "row": [np.array([i, i % 3, 1], np.float32) for i in numbers],
        "age": numbers / 8,
        "label": (numbers % 2).astype(np.int64),
        "price": numbers * 10.0,
        "gain": 1.0 + numbers % 2,
    }


def choose(columns: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: columns[name] for name in names}


@pytest.fixture(scope="module")
def one(tmp_path_factory, columns) -> Any:
    """A loader with one input, one target and weights."""
    data = ps.convert(
        choose(columns, "row", "label", "gain"),
        tmp_path_factory.mktemp("one") / "data",
        target="label",
        weight="gain",
        split="train=1.0",
    )
    pipeline = ps.Pipeline.fit(data, label={"kind": "keep"})
    return lambda **options: data["train"].loader(pipeline, batch_size=8, **options)


@pytest.fixture(scope="module")
def two(tmp_path_factory, columns) -> Any:
    """A loader with two inputs and two targets."""
    data = ps.convert(
        choose(columns, "row", "age", "label", "price"),
        tmp_path_factory.mktemp("two") / "data",
        target=["price", "label"],
        split="train=1.0",
    )
    pipeline = ps.Pipeline.fit(data, label={"kind": "keep"})
    return lambda **options: data["train"].loader(pipeline, batch_size=8, **options)


class ByArray(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1, "sigmoid", kernel_initializer="ones")

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs / 20)


class ByName(ByArray):
    def call(self, inputs: Any) -> Any:
        return super().call(inputs["row"])


def make_functional(name: str | None, *, is_dict: bool = False, output: str | None = None) -> Any:
    row = keras.Input((3,), name=name)
    dense = layers.Dense(1, "sigmoid", kernel_initializer="ones")(row / 20)
    return keras.Model({name: row} if is_dict else row, {output: dense} if output else dense)


def make_sequential(*first: Any) -> Any:
    dense = layers.Dense(1, "sigmoid", kernel_initializer="ones")
    return keras.Sequential([*first, layers.Rescaling(1 / 20), dense])


MODELS = {
    "sequential": make_sequential,
    "sequential with input": lambda: make_sequential(keras.Input((3,))),
    "functional": lambda: make_functional(None),
    "functional with another name": lambda: make_functional("numbers"),
    "functional by dict": lambda: make_functional("row", is_dict=True),
    "functional by dicts": lambda: make_functional("row", is_dict=True, output="label"),
    "functional with named output": lambda: make_functional(None, output="label"),
    "subclassed by array": ByArray,
    "subclassed by name": ByName,
}


class Expected(NamedTuple):
    """What a functional model learns from arrays, two epochs without a shuffle, and what it predicts then."""

    losses: list[float]
    predicted: Any


@pytest.fixture(scope="module")
def expected(one) -> Expected:
    model = MODELS["functional"]()
    model.compile("sgd", "binary_crossentropy", weighted_metrics=["accuracy"])
    inputs = np.stack([x for batch in one().read(0) for x in batch[0]["row"]])
    targets, weights = (np.concatenate([batch[i]["label"] for batch in one().read(0)]) for i in (1, 2))
    history = model.fit(inputs, targets, 8, sample_weight=weights, epochs=2, shuffle=False, verbose=0)
    return Expected(history.history["loss"], model.predict(inputs, verbose=0))


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_of_one_input_and_target_learns_the_same_from_to_keras(one, expected, kind) -> None:
    model = MODELS[kind]()
    loss = {"label": "binary_crossentropy"} if kind == "functional by dicts" else "binary_crossentropy"
    model.compile("sgd", loss, weighted_metrics=["accuracy"])
    feed = one().to_keras()
    found = model.fit(feed, epochs=2, validation_data=one().to_keras(), callbacks=[feed.callback], verbose=0)
    np.testing.assert_allclose(found.history["loss"], expected.losses, rtol=1e-5)
    assert feed.loader.state_dict()["epoch"] == 1
    scores = model.evaluate(one().to_keras(), verbose=0)
    np.testing.assert_allclose(scores[0], found.history["val_loss"][-1], rtol=1e-5)
    predicted = model.predict(one().to_keras(), verbose=0)
    predicted = predicted["label"] if isinstance(predicted, dict) else predicted
    np.testing.assert_allclose(predicted, expected.predicted, rtol=1e-4)


@pytest.mark.parametrize(
    "kind", ["sequential", "functional", "functional by dict", "functional by dicts", "subclassed by array"]
)
def test_model_of_one_input_and_target_fits_from_to_tf(one, expected, kind) -> None:
    model = MODELS[kind]()
    feed = one().to_tf(structure="dict" if kind == "functional by dicts" else "auto")
    if kind == "functional by dict":
        feed = feed.map(lambda row, *others: ({"row": row}, *others))
    model.compile("sgd", "binary_crossentropy")
    losses = model.fit(feed, epochs=2, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, expected.losses, rtol=1e-5)


def test_fit_resumed_in_the_middle_of_an_epoch_ends_with_the_same_weights(one) -> None:
    whole = make_sequential()
    whole.compile("sgd", "binary_crossentropy")
    whole.fit(one(shuffle=True, seed=3).to_keras(), epochs=2, verbose=0)
    model = make_sequential()
    model.compile("sgd", "binary_crossentropy")
    first = one(shuffle=True, seed=3).to_keras()
    model.fit(first, steps_per_epoch=2, callbacks=[first.callback], verbose=0)
    state = first.loader.state_dict()
    assert (state["epoch"], state["step"]) == (0, 2)
    second = one(shuffle=True, seed=3)
    second.load_state_dict(state)
    feed = second.to_keras()
    model.fit(feed, epochs=2, callbacks=[feed.callback], verbose=0)
    for found, expected in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("structure", ["auto", "dict", "tuple"])
def test_elements_of_one_input_and_target_have_the_structure(one, structure) -> None:
    dataset = one().to_tf(structure=structure)
    (inputs, targets, weights), expected = next(iter(dataset)), next(iter(one()))
    spec = dataset.element_spec
    if structure == "dict":
        inputs, targets, weights = inputs["row"], targets["label"], weights["label"]
        spec = spec[0]["row"], spec[1]["label"], spec[2]["label"]
    assert inputs.numpy().tolist() == expected[0]["row"].tolist()
    assert targets.numpy().tolist() == expected[1]["label"].tolist()
    assert weights.numpy().tolist() == expected[2]["label"].tolist()
    assert [each.shape.as_list() for each in spec] == [[None, 3], [None], [None]]
    in_runtime = next(iter(dataset.take(1)))
    assert tf.nest.assert_same_structure(in_runtime, next(iter(dataset))) is None


def test_tuples_of_several_inputs_and_targets_are_in_the_order_of_the_pipeline(two) -> None:
    loader = two()
    names = tuple(loader.pipeline.inputs), tuple(loader.pipeline.targets)
    parts, expected = next(iter(loader.to_tf(structure="tuple"))), next(iter(loader.read(0)))
    for part, found, wanted in zip(names, parts, expected, strict=True):
        assert [each.numpy().tolist() for each in found] == [wanted[name].tolist() for name in part]
    assert [type(part) for part in next(iter(two().to_tf()))] == [dict, dict]


def test_positional_model_fits_tuples_and_is_refused_dicts_with_the_names(two) -> None:
    row, age = keras.Input((3,)), keras.Input(())
    order = {"row": row, "age": age}
    joined = layers.Concatenate()([row, age[:, None]])
    inputs = [order[name] for name in two().pipeline.inputs]
    model = keras.Model(inputs, [layers.Dense(1)(joined), layers.Dense(1)(joined)])
    model.compile("sgd", ["mse", "mse"])
    model.fit(two().to_keras(structure="tuple"), verbose=0)
    before = [each.copy() for each in model.get_weights()]
    with pytest.raises(ps.errors.OptionError) as caught:
        model.fit(two().to_keras(), verbose=0)
    text = str(caught.value)
    assert text == containing("keras.Input((3,), name='row')", "keras.Input((), name='age')")
    assert text == containing("generated by Keras", "structure='tuple'")
    assert all(map(np.array_equal, before, model.get_weights()))


def test_tuple_for_a_model_of_a_dict_is_refused_as_inputs_could_be_swapped(two) -> None:
    row, age = keras.Input((3,), name="row"), keras.Input((), name="age")
    joined = layers.Dense(1)(layers.Concatenate()([row, age[:, None]]))
    model = keras.Model({"row": row, "age": age}, {"label": joined, "price": joined * 2})
    model.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError, match="created from a dict"):
        model.fit(two().to_keras(structure="tuple"), verbose=0)
    assert np.isfinite(model.fit(two().to_keras(), verbose=0).history["loss"]).all()


def test_dict_model_of_some_inputs_is_refused_as_keras_would_match_by_position(two) -> None:
    row = keras.Input((3,), name="row")  # sorted by name, 'age' is before it
    model = keras.Model({"row": row}, {"label": layers.Dense(1)(row), "price": layers.Dense(1)(row)})
    model.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError) as caught:
        model.fit(two().to_keras(), verbose=0)
    assert caught.value.field == "age"
    assert str(caught.value) == containing("Pipeline.fit(…, age=None)", "keras.Input((), name='age')")


def test_target_that_was_not_declared_is_named_in_the_refusal(tmp_path, columns) -> None:
    data = ps.convert(choose(columns, "row", "label"), tmp_path / "data", split="train=1.0")
    row = keras.Input((3,), name="row")
    model = keras.Model({"row": row}, layers.Dense(1)(row))
    model.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError, match="target='label'"):
        model.fit(data["train"].loader(ps.Pipeline.fit(data), batch_size=8).to_keras(), verbose=0)


def test_list_model_of_some_inputs_gets_them_by_name(two) -> None:
    age = keras.Input((), name="age")
    model = keras.Model([age], age * 1.0)
    batches = [inputs["age"] for inputs, _ in two().read(0)]
    np.testing.assert_allclose(model.predict(two().to_keras(), verbose=0), np.concatenate(batches))


def test_advised_input_of_a_name_with_a_slash_is_accepted_by_keras(tmp_path, columns) -> None:
    table = {"image/size": columns["age"], "row": columns["row"], "label": columns["label"]}
    data = ps.convert(table, tmp_path / "data", target="label", split="train=1.0")
    loader = data["train"].loader(ps.Pipeline.fit(data), batch_size=8)
    row = keras.Input((3,), name="row")
    part = keras.Model({"row": row}, layers.Dense(1)(row))
    part.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError) as caught:
        part.fit(loader.to_keras(), verbose=0)
    code = "keras.Input(tensor=keras.KerasTensor((None,), name='image/size'), name='image_size')"
    assert str(caught.value) == containing("**{'image/size': None}", code)
    size = keras.Input(tensor=keras.KerasTensor((None,), name="image/size"), name="image_size")
    joined = layers.Concatenate()([row, layers.Reshape((1,))(size)])
    model = keras.Model({"row": row, "image/size": size}, layers.Dense(1)(joined))
    model.compile("sgd", "mse")
    assert np.isfinite(model.fit(loader.to_keras(), verbose=0).history["loss"]).all()


def test_sequential_model_of_several_inputs_is_refused_with_their_names(two) -> None:
    model = make_sequential(keras.Input((3,)))
    model.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError, match=r"keras\.Input\(\(\), name='age'\)"):
        model.fit(two().to_keras(), verbose=0)


def test_sequential_model_without_an_input_is_refused_several_with_their_names(two) -> None:
    model = make_sequential()
    model.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError, match=r"keras\.Input\(\(\), name='age'\)"):
        model.fit(two().to_keras(), verbose=0)


@pytest.mark.parametrize("part", ["inputs", "outputs"])
def test_tuple_in_another_order_than_the_names_of_a_model_is_refused(two, part) -> None:
    shapes = {"row": (3,), "age": ()}
    inputs = {name: keras.Input(shapes[name], name=name) for name in two().pipeline.inputs}
    joined = layers.Concatenate()([inputs["row"], inputs["age"][:, None]])
    outputs = {name: layers.Dense(1, name=name)(joined) for name in two().pipeline.targets}
    parts = {"inputs": list(inputs.values()), "outputs": list(outputs.values())}
    model = keras.Model(**parts)
    model.compile("sgd", ["mse", "mse"])
    assert np.isfinite(model.fit(two().to_keras(structure="tuple"), verbose=0).history["loss"]).all()
    swapped = keras.Model(**{**parts, part: parts[part][::-1]})
    swapped.compile("sgd", ["mse", "mse"])
    before = [each.copy() for each in swapped.get_weights()]
    with pytest.raises(ps.errors.OptionError) as caught:
        swapped.fit(two().to_keras(structure="tuple"), verbose=0)
    assert caught.value.field == "structure"
    assert caught.value.expected == containing(f"the order of the {part}")
    assert all(map(np.array_equal, before, swapped.get_weights()))


def test_class_weight_is_refused_for_arrays_too(one) -> None:
    model = make_sequential()
    model.compile("sgd", "mse")
    with pytest.raises(ps.errors.OptionError, match="class_weight"):
        model.fit(one().to_keras(), class_weight={0: 2.0}, verbose=0)


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_loader_and_data_in_place_of_a_feed_are_refused_with_the_call(one, tmp_path, columns, method) -> None:
    model = make_sequential(keras.Input((3,)))
    model.compile("sgd", "mse")
    data = ps.convert(choose(columns, "row", "label"), tmp_path / "data", target="label")
    for given, advice in (
        (one(), "loader.to_keras()"),
        (data["train"], "split.loader(pipeline, batch_size=32).to_keras()"),
        (data, "data['train'].loader(…).to_keras()"),
    ):
        with pytest.raises(ps.errors.OptionError) as caught:
            getattr(model, method)(given, verbose=0)
        assert caught.value.advice == containing(advice)


def test_feed_has_a_length_and_shows_its_batches(one, two) -> None:
    feed = one().to_keras()
    assert len(feed) == 3
    assert repr(feed) == containing(
        "3 batches of 8", "(row: float32 (n, 3), label: int64 (n,), weight of label: float32"
    )
    assert repr(two().to_keras()) == containing("({", "age: float32 (n,)", "}, {")
    with pytest.raises(TypeError, match="repeat=None"):
        len(one(repeat=None).to_keras())


def test_unknown_structure_is_refused(one) -> None:
    for method in ("to_keras", "to_tf"):
        with pytest.raises(ps.errors.OptionError) as caught:
            getattr(one(), method)(structure="list")
        assert caught.value.field == "structure"
        assert caught.value.got == "'list'"


@pytest.mark.parametrize("kind", ["sequential", "functional", "subclassed by array", "subclassed by name"])
def test_run_of_a_model_without_names_is_trained_scored_and_opened_again(tmp_path, columns, kind) -> None:
    data = ps.convert(
        choose(columns, "row", "label"), tmp_path / "data", target="label", split="train=0.6,test=0.4"
    )
    run = ps.train(data, out=tmp_path / "run", model=MODELS[kind](), epochs=1)
    rows = [{"row": [1.0, 2.0, 3.0]}, {"row": [9.0, 0.0, 1.0]}]
    opened = ps.open_run(tmp_path / "run", model=MODELS[kind]())
    assert ps.predict(opened, rows).to_pylist() == ps.predict(run, rows).to_pylist()
    assert ps.evaluate(opened, data["test"]).to_json() == ps.evaluate(run, data["test"]).to_json()
