"""`check_model`: what does not fit is named before the first step; inputs go by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from matched_models import fit, write_table
from penstock.errors import OptionError
from penstock.model.task import find_tasks
from penstock.transform import Scale, Tokenize
from raising import containing, mentions, raises_with

keras = pytest.importorskip("keras")
from penstock.model.compatibility import check_model  # noqa: E402
from penstock.model.signature import find_inputs  # noqa: E402

layers = keras.layers


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("match") / "table")


@pytest.fixture(scope="module")
def sides(table):
    """Two inputs of one shape, and a binary target."""
    return fit(table, ("left", "right"), ("adopted",))


def number(name: str | None = None, shape: tuple = (), dtype: str = "float32") -> Any:
    return keras.Input(shape, name=name, dtype=dtype)


def join(*inputs: Any) -> Any:
    return layers.Concatenate()([layers.Reshape((-1,))(each) for each in inputs])


def make_model(left: str | None = "left", right: str | None = "right", **options: Any) -> Any:
    inputs = [number(left), number(right)]
    return keras.Model(inputs, layers.Dense(1, "sigmoid")(join(*inputs)), **options)


class Sides(keras.Model):
    """Takes some inputs by their names."""

    def __init__(self, names: tuple[str, ...], units: int = 1) -> None:
        super().__init__(name="sides")
        self.names = names
        self.dense = layers.Dense(units, "sigmoid")

    def call(self, inputs: Any) -> Any:
        taken = [keras.ops.expand_dims(inputs[name], -1) for name in self.names]
        return self.dense(keras.ops.concatenate(taken, -1))


def refuse(model: Any, pipeline: Any, tasks: Any = None) -> OptionError:
    with pytest.raises(OptionError) as caught:
        check_model(model, pipeline, tasks or find_tasks(pipeline))
    return caught.value


def accept(model: Any, pipeline: Any) -> None:
    check_model(model, pipeline, find_tasks(pipeline))
    taken = find_inputs(model)
    assert taken is None or set(taken) == set(pipeline.inputs)
    assert model.built


def test_model_of_a_list_of_named_inputs_is_taken(sides):
    accept(make_model(), sides)


def test_model_of_a_dict_is_taken_by_its_keys(sides):
    left, right = number("left"), number("right")
    accept(keras.Model({"right": right, "left": left}, layers.Dense(1)(join(left, right))), sides)


def test_model_of_one_input_is_taken(table):
    left = number("left")
    accept(keras.Model(left, layers.Dense(1)(join(left))), fit(table, ("left",), ("price",)))


def test_sequential_model_is_taken_if_it_begins_with_a_named_input(table):
    pipeline = fit(table, ("left",), ("price",))
    accept(keras.Sequential([number("left", (1,)), layers.Dense(1)]), pipeline)


class ByArray(keras.Model):
    """A model of one input, which it takes as an array."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs)


class ByName(ByArray):
    """A model of one input, which it takes by name."""

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs["photo"][:, 0, 0])


def make_unnamed(name: str | None = None) -> Any:
    photo = number(name, (4, 4, 1))
    return keras.Model(photo, layers.Dense(1)(layers.Flatten()(photo)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.Sequential([layers.Flatten(), layers.Dense(1)]),
        lambda: keras.Sequential([number(None, (4, 4, 1)), layers.Flatten(), layers.Dense(1)]),
        make_unnamed,
        lambda: make_unnamed("picture"),
        lambda: keras.Model([given := number(None, (4, 4, 1))], layers.Dense(1)(layers.Flatten()(given))),
        ByName,
    ],
)
def test_single_input_needs_no_name(table, make):
    pipeline = fit(table, ("photo",), ("adopted",))
    model = make()
    check_model(model, pipeline, find_tasks(pipeline))
    taken = find_inputs(model, pipeline.inputs)
    assert model.built
    assert list(taken or ["photo"]) == ["photo"]


def test_subclassed_model_of_an_array_is_taken(table):
    pipeline = fit(table, ("left", "right"), ("adopted",)).group("row", ["left", "right"])
    check_model(model := ByArray(), pipeline, find_tasks(pipeline))
    assert model.dense.kernel.shape == (2, 1)


def test_single_input_of_another_name_in_a_dict_is_refused(table):
    picture = number("picture", (4, 4, 1))
    model = keras.Model({"picture": picture}, layers.Dense(1)(layers.Flatten()(picture)))
    assert refuse(model, fit(table, ("photo",), ("adopted",))).field == "picture"


def test_sequential_model_without_input_is_refused_for_several_inputs(sides):
    error = refuse(keras.Sequential([layers.Dense(1)], name="plain"), sides)
    assert mentions(error, "'plain' Sequential keras.Input(shape, name='…')")


def test_sequential_model_whose_layers_do_not_accept_the_input_is_refused(table):
    model = keras.Sequential([layers.Conv1D(2, 3)], name="plain")
    error = refuse(model, fit(table, ("photo",), ("adopted",)))
    assert error.field == "photo"
    assert mentions(error, "'plain' 'photo' (n, 4, 4, 1) keras.Input((4, 4, 1), name='photo'")


def test_missing_input_is_named_with_the_nearest(sides):
    error = refuse(make_model(left="lefft", name="own"), sides)
    assert mentions(error, "'lefft' 'own' 'left' 'right' 'left' keras.Input(()")
    assert error.field == "lefft"


def test_extra_input_is_refused_with_how_to_leave_it_out(table):
    pipeline = fit(table, ("left", "right", "breed"), ("adopted",))
    assert mentions(
        str(refuse(make_model(name="own"), pipeline)),
        "'breed' 'own' 'left' 'right' Pipeline.fit(…, breed=None) keras.Input(() dtype='int32'",
    )


def test_extra_input_that_comes_with_a_field_names_the_field(table):
    pipeline = fit(table, (), ("adopted",), left=Scale(indicator=True), right=Scale())
    assert mentions(str(error := refuse(make_model(), pipeline)), "'left_missing' input")
    assert mentions(error, "'left' Pipeline.fit(…, left=None)")


def test_inputs_without_names_are_refused_as_they_could_be_swapped(sides):
    text = str(refuse(make_model(None, None, name="own"), sides))
    assert mentions(text, "'own'")
    assert text.endswith("\n    keras.Input((), name='left')\n    keras.Input((), name='right')")


def test_wrong_shape_names_both(table):
    pipeline = fit(table, ("photo",), ("adopted",))
    photo = number("photo", (8, 8, 1))
    model = keras.Model(photo, layers.Dense(1)(layers.Flatten()(photo)), name="own")
    assert mentions(str(refuse(model, pipeline)), "'photo' 'own' (n, 8, 8, 1) (n, 4, 4, 1) keras.Input((4")


def test_length_that_varies_is_refused_where_the_model_wants_one(table):
    note = number("note", (6,), "int32")
    model = keras.Model(note, layers.Dense(1)(layers.Flatten()(layers.Embedding(9, 2)(note))))
    error = refuse(model, fit(table, ("note",), ("adopted",)))
    assert mentions(error, "shape (n, 6)")
    assert mentions(error, "length length=6")
    accept(model, fit(table, (), ("adopted",), note=Tokenize(length=6)))


@pytest.mark.parametrize(("name", "dtype"), [("left", "int32"), ("breed", "bool"), ("breed", "string")])
def test_wrong_dtype_is_refused(table, name, dtype):
    taken = number(name, dtype=dtype)
    given = "float32" if name == "left" else "int32"
    pipeline = fit(table, (name,), ("adopted",))
    flat = layers.Lambda(lambda x: keras.ops.zeros((1, 1)), output_shape=(1,))(taken)
    error = refuse(keras.Model(taken, layers.Dense(1)(flat), name="own"), pipeline)
    assert mentions(error, f"{name!r} 'own' {dtype} {given}")


def test_whole_numbers_are_taken_by_a_float_input(table):
    breed = number("breed")
    accept(keras.Model(breed, layers.Dense(1)(join(breed))), fit(table, ("breed",), ("adopted",)))


def test_floats_for_an_embedding_are_refused_though_its_input_takes_them(table):
    left = number("left")
    model = keras.Model(left, layers.Dense(1)(layers.Embedding(9, 2, name="rows")(left)), name="own")
    assert mentions(str(refuse(model, fit(table, ("left",), ("adopted",)))), "'rows' 'left' 'own' float32")


def test_embedding_with_fewer_rows_than_codes_is_refused(table):
    breed = number("breed", dtype="int32")
    pipeline = fit(table, ("breed",), ("adopted",))
    model = keras.Model(breed, layers.Dense(1)(layers.Embedding(4, 2, name="rows")(breed)), name="own")
    assert mentions(str(refuse(model, pipeline)), "'rows' 'breed' 'own' input_dim 5 4")
    accept(keras.Model(breed, layers.Dense(1)(layers.Embedding(5, 2)(breed))), pipeline)


def test_nested_and_foreign_models_are_refused(sides):
    left, right = number("left"), number("right")
    nested = keras.Model({"both": [left, right]}, layers.Dense(1)(join(left, right)), name="own")
    assert mentions(str(refuse(nested, sides)), "'own' keras.Inputs")
    assert mentions(str(refuse(make_model, sides)), "keras.Model")


def test_ragged_input_is_refused(table):
    error = refuse(make_model(), fit(table, (), ("adopted",), note={"kind": "tokenize", "ragged": True}))
    assert mentions(error, "input 'note' array int32")


def test_subclassed_model_is_called_by_name_and_built(sides):
    model = Sides(("right", "left"))
    accept(model, sides)
    assert model.dense.built
    accept(model, sides)


def test_subclassed_model_that_misses_an_input_names_it(sides):
    assert mentions(
        str(refuse(Sides(("left", "rihgt")), sides)), "'rihgt' 'sides' 'left' 'right' 'right' keras.Input(()"
    )


def test_subclassed_model_that_leaves_an_input_unread_is_refused(sides):
    error = refuse(Sides(("right",)), sides)
    assert mentions(error, "'left' 'sides' 'right'")


def test_subclassed_model_that_fails_names_its_inputs(table):
    error = refuse(Sides(("left", "photo")), fit(table, ("left", "photo"), ("adopted",)))
    assert mentions(error, "'sides'")
    assert mentions(error, "float32 'photo' float32 (n, 4, 4, 1)")
    assert "Error: " in str(error)
    assert "Arguments received" not in str(error)


class Whole(Sides):
    """Passes all inputs on at once, and to a separate layer."""

    def call(self, inputs: Any) -> Any:
        return self.dense(keras.ops.stack([each for _, each in inputs.items()], -1))


def test_subclassed_model_that_takes_all_inputs_at_once_is_taken(sides):
    accept(Whole(()), sides)


def several(outputs: Any) -> Any:
    left = number("left")
    return keras.Model(left, outputs(layers.Reshape((1,))(left)), name="own")


@pytest.fixture(scope="module")
def many(table):
    return fit(table, ("left",), ("adopted", "kind", "tags", "price"))


def heads(before: Any, **units: int) -> dict[str, Any]:
    return {name: layers.Dense(width, name=name)(before) for name, width in units.items()}


def test_outputs_by_target_are_taken_as_a_dict_and_as_named_layers(many):
    units = {"price": 1, "adopted": 1, "tags": 3, "kind": 3}
    accept(several(lambda before: heads(before, **units)), many)
    accept(several(lambda before: list(heads(before, **units).values())), many)


def test_outputs_without_the_names_of_targets_are_refused(many):
    def unnamed(before: Any) -> list[Any]:
        return [layers.Dense(width)(before) for width in (1, 3, 3, 1)]

    text = str(refuse(several(unnamed), many))
    assert mentions(text, "'own' target 'kind'")
    assert mentions(text, "4")
    assert mentions(refuse(several(layers.Dense(1)), many), "one output")


def test_output_that_is_missing_or_too_many_is_named(many):
    error = refuse(several(lambda before: heads(before, adopted=1, kind=3, tags=3, prize=1)), many)
    assert mentions(error, "'price' 'own' 'adopted'")
    assert mentions(error, "'price' 'prize'")
    units = {"adopted": 1, "kind": 3, "tags": 3, "price": 1, "more": 2}
    error = refuse(several(lambda before: heads(before, **units)), many)
    assert mentions(error, "'more' 'own' target")


@pytest.mark.parametrize(
    ("wrong", "wanted"),
    [
        ({"adopted": 2}, "'adopted' shape (n, 1)"),
        ({"kind": 2}, "'kind' (n, 3) (n, 2)"),
        ({"tags": 4}, "'tags' (n, 3) (n, 4)"),
        ({"price": 3}, "'price' (n, 1) (n, 3)"),
    ],
)
def test_output_of_another_width_is_refused(many, wrong, wanted):
    units = {"adopted": 1, "kind": 3, "tags": 3, "price": 1, **wrong}
    assert mentions(str(refuse(several(lambda before: heads(before, **units)), many)), f"target {wanted}")


def test_output_without_a_last_dimension_is_taken_for_one_number(table):
    left = number("left")
    accept(keras.Model(left, left * 2.0), fit(table, ("left",), ("price",)))


def test_list_of_outputs_is_refused_where_records_have_weights(tmp_path):
    columns = {"left": np.arange(8.0), "gain": np.ones(8), "a": np.arange(8.0), "b": np.arange(8.0)}
    weighed = ps.convert(columns, tmp_path / "t", target=["a", "b"], weight="gain", split="train=1.0")
    pipeline = ps.Pipeline.fit(weighed)
    accept(several(lambda before: heads(before, a=1, b=1)), pipeline)
    error = refuse(several(lambda before: list(heads(before, a=1, b=1).values())), pipeline)
    assert mentions(error, "dict weights list")


@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
def test_two_inputs_under_each_others_names_are_refused(table):
    left, right = keras.Input((), name="left"), keras.Input((), name="right")
    both = keras.ops.stack([left, right], axis=-1)
    model = keras.Model({"left": right, "right": left}, keras.layers.Dense(1, activation="sigmoid")(both))
    pipeline = fit(table, ("left", "right"), ("price",))
    with raises_with(OptionError, "keras.Input", field="left", got=containing("'right'")):
        check_model(model, pipeline, find_tasks(pipeline))
