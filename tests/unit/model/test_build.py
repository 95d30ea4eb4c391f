"""The model that is built: its inputs and outputs, what counts and what does not, and refused inputs."""

import keras
import numpy as np
import pytest

from built_models import AGE, BREED, NOTE, NUM_ROWS, YES, build_both, make_map, make_pipeline, run
from fit_sources import lists, numbers
from penstock.errors import OptionError, SchemaError, TrainingDataError, UnknownNameError
from penstock.fields import Category, Number, Sequence, Tensor, Text
from penstock.model.build import build_model
from penstock.model.encoder.table import choose_width
from penstock.schema.schema import Schema
from penstock.settings.model import ModelOptions
from penstock.transform import Encode, Keep, Output, Pad, Scale, Tokenize
from penstock.transform.map import Mapped
from raising import containing, raises_with

SMALL = ModelOptions(preset="small")
STYLES = ("pool", "gru", "conv", "transformer")
HOURS = (Sequence("int64"), Pad(), lists([[0, 9, 0, 5], [], [0], [3, 2], [1], [7, 7]]))
SPEEDS = (Sequence("float32"), Scale(), lists([[1.0, 9.0], [], [3.0], [3.0, 2.0], [1.0], [7.0]], "float32"))


def build(parts, options=SMALL, **rest):
    pipeline, inputs = make_pipeline(parts, **rest)
    return build_model(pipeline.schema, pipeline, options), inputs


def test_inputs_are_inputs_of_the_pipeline_by_name():
    parts = {
        "age": (Number(optional=True), Scale(indicator=True), numbers([1, None, 3, 4, 5, 6])),
        "note": (Text(), Tokenize(length=7, mask=True), NOTE[2]),
        "box/size": (Tensor((2,)), Keep(), numbers([[1, 2]] * NUM_ROWS)),
        "y": YES,
    }
    model, _ = build(parts)
    assert {name: (each.dtype, each.shape) for name, each in model.input.items()} == {
        "age": ("float32", (None,)),
        "age_missing": ("float32", (None,)),
        "note": ("int32", (None, 7)),
        "note_mask": ("bool", (None, 7)),
        "box/size": ("float32", (None, 2)),
    }
    assert [each.name for each in model.input.values()] == list(model.input)
    assert model.name == "penstock"


def test_layers_have_different_names_even_where_fields_are_called_alike():
    parts = {
        "note": NOTE,
        "note_embedding": AGE,
        "note/embedding": AGE,
        "NOTE": NOTE,
        "numbers_dense": BREED,
        "combined": BREED,
        "y": YES,
    }
    model, inputs = build(parts)
    names = [layer.name for layer in model.layers]
    assert len(set(names)) == len(names)
    assert run(model, inputs).shape == (NUM_ROWS, 1)


@pytest.mark.parametrize(
    ("target", "shape", "total"),
    [
        (YES, (NUM_ROWS, 1), None),
        ((Category(role="target"), Encode(), BREED[2]), (NUM_ROWS, 3), 1.0),
        (
            (
                Sequence("string", role="target"),
                Encode("multi_hot"),
                lists([["a", "b"], [], ["c"], ["a"], ["d"], []], "string"),
            ),
            (NUM_ROWS, 4),
            None,
        ),
    ],
)
def test_heads_of_classes_give_probabilities(target, shape, total):
    model, inputs = build({"age": AGE, "y": target})
    output = run(model, inputs)
    assert output.shape == shape
    assert ((output > 0) & (output < 1)).all()
    if total is not None:
        np.testing.assert_allclose(output.sum(axis=1), total, rtol=1e-5)


def test_head_of_a_regression_begins_at_the_mean_in_the_units_of_the_batch():
    prices = numbers([100_000, 110_000, 120_000, 130_000, 140_000, 150_000])
    model, inputs = build({"age": AGE, "price": (Number(role="target"), Keep("float32"), prices)})
    output = run(model, inputs)
    assert output.shape == (NUM_ROWS, 1)
    assert (abs(output - 125_000) < 5 * 17_078).all()
    scale = model.get_layer("price_members")
    assert (scale.offset, round(scale.scale)) == (125_000, 17_078)


def test_head_of_a_vector_gives_a_number_for_each():
    target = (Tensor((3,), role="target"), Keep(), numbers([[1, 2, 3]] * NUM_ROWS))
    model, inputs = build({"age": AGE, "where": target})
    assert run(model, inputs).shape == (NUM_ROWS, 3)


def test_several_targets_give_a_dict():
    kind = (Category(role="target"), Encode(), BREED[2])
    model, inputs = build({"age": AGE, "a/b": YES, "kind": kind})
    assert {name: each.shape for name, each in run(model, inputs).items()} == {
        "a/b": (NUM_ROWS, 1),
        "kind": (NUM_ROWS, 3),
    }


@pytest.mark.parametrize("style", ["ngrams", *STYLES])
def test_padding_has_no_influence_and_empty_rows_give_numbers(style):
    parts = {"note": NOTE, "hours": HOURS, "speeds": SPEEDS, "y": YES}
    sequence = "pool" if style == "ngrams" else style
    model, inputs = build(parts, ModelOptions(preset="small", text=style, sequence=sequence))
    model.set_weights([each + 0.01 for each in model.get_weights()])  # n-grams begin at 0
    padded = {name: np.pad(array, ((0, 0), (0, 4))) for name, array in inputs.items()}
    short, long = run(model, inputs), run(model, padded)
    assert np.isfinite(short).all()
    np.testing.assert_allclose(short, long, rtol=1e-5)
    # In training too, with a batch of nothing but empty rows.
    empty = {name: np.zeros_like(array) for name, array in inputs.items()}
    assert np.isfinite(np.asarray(model(empty, training=True))).all()
    assert np.isfinite(run(model, inputs)).all()


@pytest.mark.parametrize("style", ["gru", "conv", "transformer"])
def test_order_of_steps_counts(style):
    model, inputs = build({"note": NOTE, "y": YES}, ModelOptions(preset="small", text=style))
    turned = {"note": inputs["note"].copy()}
    turned["note"][3] = turned["note"][3, ::-1]
    first, second = run(model, inputs), run(model, turned)
    assert first[3] != second[3]
    np.testing.assert_array_equal(np.delete(first, 3), np.delete(second, 3))


def test_mask_that_is_an_input_selects_the_steps_that_count():
    tokens = (Text(), Tokenize(length=4, mask=True), NOTE[2])
    model, inputs = build({"note": tokens, "y": YES})
    nothing = {**inputs, "note_mask": np.zeros_like(inputs["note_mask"])}
    output = run(model, nothing)
    assert (output == output[0]).all()
    assert len(np.unique(run(model, inputs))) > 2


def test_integers_without_a_vocabulary_are_distinguished_as_ids():
    model, inputs = build({"hours": HOURS, "y": YES})
    table = model.get_layer("hours_embedding")
    assert (table.input_dim, table.output_dim) == (4096, 16)
    assert run(model, {"hours": inputs["hours"] + 10**12}).shape == (NUM_ROWS, 1)
    assert run(model, {"hours": -inputs["hours"]}).shape == (NUM_ROWS, 1)


def test_tables_have_a_row_for_every_code():
    parts = {"breed": BREED, "rare": (Category(optional=True), Encode(), BREED[2]), "note": NOTE, "y": YES}
    model, _ = build(parts)
    sizes = {
        layer.name: (layer.input_dim, layer.output_dim)
        for layer in model.layers
        if isinstance(layer, keras.layers.Embedding)
    }
    assert sizes == {
        "breed_embedding": (4, 4),
        "rare_embedding": (5, 4),
        "note_embedding": (10, 16),
        "y_note_ngrams": (10 + 1024, 1),
    }
    assert [choose_width(size, 32) for size in (1, 2, 100, 400, 10**6)] == [2, 3, 16, 32, 32]


def test_number_that_is_not_scaled_is_used_beside_a_text():
    pipeline, inputs = make_pipeline(
        {"age": (Number(), Keep("float32"), AGE[2]), "note": (Text(), Tokenize(length=4), NOTE[2]), "y": YES}
    )
    older = {**inputs, "age": inputs["age"] + 1}
    for model in build_both(pipeline):
        assert not np.allclose(run(model, inputs), run(model, older))


def test_one_input_is_not_concatenated():
    model, _ = build({"age": AGE, "y": YES})
    assert "combined" not in [layer.name for layer in model.layers]


def test_l2_and_dropout_are_as_asked():
    model, _ = build({"age": AGE, "note": NOTE, "y": YES}, ModelOptions(text="gru", l2=0.5, dropout=0.25))
    kernels = [each for each in model.layers if hasattr(each, "kernel_regularizer") or hasattr(each, "cell")]
    kernels = [each for each in kernels if each.name != "combined_members"]  # scales, which have no penalty
    assert len(kernels) == 7  # the output of the note alone is one
    assert all(float(each.kernel_regularizer.l2) == 0.5 for each in kernels)
    assert [each.rate for each in model.layers if isinstance(each, keras.layers.Dropout)] == [0.25, 0.25]
    plain, _ = build({"age": AGE, "y": YES}, ModelOptions(dropout=0))
    assert not any(isinstance(each, keras.layers.Dropout) for each in plain.layers)
    assert plain.losses == []


def test_presets_differ_in_size():
    parts = {"age": AGE, "breed": BREED, "note": NOTE, "y": YES}
    small, base = (build(parts, ModelOptions(preset=each))[0].count_params() for each in ("small", "base"))
    assert small < 5_000 < base


def test_no_target_is_refused():
    pipeline, _ = make_pipeline({"age": AGE})
    with raises_with(OptionError, advice=containing("target=NAME")):
        build_model(pipeline.schema, pipeline)


def test_no_input_is_refused():
    pipeline, _ = make_pipeline({"y": YES})
    with raises_with(TrainingDataError, "inputs of the pipeline"):
        build_model(pipeline.schema, pipeline)


def test_ragged_input_is_refused_with_advice():
    pipeline, _ = make_pipeline({"hours": (HOURS[0], Pad(ragged=True), HOURS[2]), "y": YES})
    with raises_with(OptionError, "input 'hours' array int64 ragged=True"):
        build_model(pipeline.schema, pipeline)


def test_steps_of_any_size_are_refused_with_advice():
    steps = Output("steps", "float32", (None, None))
    maps = [Mapped("steps", lambda _: {"steps": np.zeros((NUM_ROWS, 2, 2), np.float32)}, ("age",), (steps,))]
    pipeline, _ = make_pipeline({"age": AGE, "y": YES}, maps)
    with raises_with(OptionError, "input 'steps' steps float32 Pad(step_length=8)"):
        build_model(pipeline.schema, pipeline)


def test_another_schema_is_refused():
    pipeline, _ = make_pipeline({"age": AGE, "y": YES})
    with raises_with(UnknownNameError, field="age", got="'age'"):
        build_model(Schema({"ages": AGE[0], "y": YES[0]}), pipeline)
    with pytest.raises(SchemaError):
        build_model(Schema({"age": Text(), "y": YES[0]}), pipeline)


def test_map_outputs_go_by_type_and_shape():
    maps = [
        make_map("age", "ratio", np.ones(NUM_ROWS, np.float64)),
        make_map("age", "vector", np.ones((NUM_ROWS, 3), np.int32)),
        make_map("age", "grid", np.ones((NUM_ROWS, 5, 4), np.float16)),
        Mapped(
            "any",
            lambda _: {"any": np.ones((NUM_ROWS, 2), np.int64)},
            ("age",),
            (Output("any", "int64", (None,)),),
            keep=True,
        ),
    ]
    model, inputs = build({"age": AGE, "y": YES}, maps=maps)
    kinds = {layer.name: type(layer).__name__ for layer in model.layers}
    assert kinds["vector_normalization"] == "BatchNormalization"
    assert kinds["grid_1_first_convolution"] == "Conv2D"
    assert kinds["any_convolution_1"] == "Conv1D"
    assert kinds["numbers_normalization"] == "BatchNormalization"
    assert run(model, inputs).shape == (NUM_ROWS, 1)


def test_bins_are_a_piecewise_linear_function_of_the_number():
    ages = (Number(), Scale("none"), numbers([1, 2, 4, 2, 4, 1]))
    flags = (Number(optional=True), Scale("none", indicator=True), numbers([0, 5, 5, 0, 0, 5]))
    model, _ = build({"age": ages, "flag": flags, "y": YES}, ModelOptions(members=1))
    bins = keras.Model(model.input, model.get_layer("numbers_bins").input)
    inputs = {"age": [0.0, 1.0, 1.5, 3.0, 4.0, 9.0], "flag": [0.0, 5.0, -1.0, 2.5, 5.0, 7.0]}
    arrays = {name: np.array(values, np.float32) for name, values in inputs.items()}
    found = run(bins, {**arrays, "flag_missing": np.zeros(6, np.float32)})
    assert found[:, 0].tolist() == [[0, 0], [0, 0], [0.5, 0], [1, 0.5], [1, 1], [1, 1]]
    # A number with fewer edges has bins that stay 0, also for numbers beyond the last edge.
    np.testing.assert_allclose(found[:, 1], [[0, 0], [1, 0], [0, 0], [0.5, 0], [1, 0], [1, 0]], atol=1e-29)


def test_numbers_without_bins_have_ramps_or_go_as_they_are():
    constant = (Number(), Scale(), numbers([5] * NUM_ROWS))
    without = (Number(), Scale(bins=0), AGE[2])
    kept = (Number(), Keep("float32"), AGE[2])
    model, inputs = build({"age": AGE, "constant": constant, "without": without, "kept": kept, "y": YES})
    names = [layer.name for layer in model.layers]
    assert {"numbers_bins", "numbers_ramps", "numbers_normalization"} <= set(names)
    assert model.get_layer("numbers_bins").kernel.shape[0] == 1  # of age alone
    assert run(model, inputs).shape == (NUM_ROWS, 1)


def test_many_numbers_have_short_vectors():
    model, _ = build({**{f"x{i}": AGE for i in range(200)}, "y": YES}, ModelOptions(preset="small"))
    assert model.get_layer("numbers_bins").kernel.shape[-1] == 5
