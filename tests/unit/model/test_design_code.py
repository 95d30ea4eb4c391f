"""The written code builds the model that is built: every encoder, every head, the same names and weights."""

import io

import keras
import numpy as np
import pytest
from PIL import Image as Picture

from built_models import (
    AGE,
    BREED,
    NOTE,
    NUM_ROWS,
    YES,
    build_both,
    list_layers,
    make_map,
    make_pipeline,
    run,
)
from fit_sources import lists, nested, numbers, strings
from penstock.fields import Category, Image, Number, Sequence, Tensor, Text
from penstock.foundation.json_form import Document, JsonValue
from penstock.model.design import write_model
from penstock.model.presets import read_model_options
from penstock.settings.model import ModelOptions
from penstock.transform import Encode, Keep, Pad, Scale, Tokenize
from penstock.transform import Image as Decode

RNG = np.random.default_rng(3)


def draw_pictures(size):
    found = []
    for _ in range(NUM_ROWS):
        buffer = io.BytesIO()
        Picture.fromarray(RNG.integers(0, 256, (*size, 3), np.uint8)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return strings(found)


def draw_tensor(shape, dtype="float32"):
    values = list((RNG.random((NUM_ROWS, *shape)) * 9).astype(dtype))
    return (Tensor(shape, dtype), Keep(), numbers(values, dtype))


WORDS = lists([["a", "b"], [], ["c"], ["a"], ["b", "b", "a"], []], "string")
HOURS = lists([[0, 9, 0, 5000], [], [0], [-3, 2], [1], [7, 7]])
FLOATS = lists([[0.0, 9.5], [], [0.0], [-3.0, 2.0], [1.0], [7.0, 7.0]], "float32")
PAIRS = lists([[[0, 1], [2, 3]], [], [[0, 0]], [[4, 5]], [[1, 1]], []], "float32", (2,))
DEEP = nested([[["a"], ["b", "a"]], [], [[]], [["c"]], [["a", "c"], []], []], "string")

INPUTS = {
    "one number": {"age": AGE},
    "numbers and categories": {
        "age": AGE,
        "height": (Number(optional=True), Scale(indicator=True), numbers([1, None, 3, 4, 5, 6])),
        "breed": BREED,
        "size": (Category("int64"), Encode("hash", num_bins=7), numbers([5, 6, 7, 8, 9, 5], "int64")),
    },
    "numbers that no one scaled": {
        "age": AGE,
        "legs": (Number("int64"), Keep(), numbers([4, 4, 2, 0, 4, 4], "int64")),
    },
    "one-hot": {"breed": (Category(), Encode("one_hot"), BREED[2])},
    "sets": {"tags": (Sequence("string"), Encode("multi_hot"), WORDS)},
    "words counted": {"note": (Text(), Tokenize(output="count"), NOTE[2])},
    "image": {"photo": (Image("png"), Decode(size=16), draw_pictures((16, 16)))},
    "scaled image": {
        "photo": (
            Image("png"),
            Decode(size=(9, 130), dtype="float32", scale=1 / 255),
            draw_pictures((9, 130)),
        )
    },
    "vector": {"box": draw_tensor((5,))},
    "grid": {"grid": draw_tensor((12, 10))},
    "bytes, channels first": {"pixels": draw_tensor((3, 8, 8), "uint8")},
    "volume": {"scan": draw_tensor((6, 6, 6, 1), "int64")},
    "five dimensions": {"much": draw_tensor((4, 4, 4, 2, 3))},
    "strange names": {
        "a/b": AGE,
        "größe (m)": AGE,
        "x": BREED,
        "class": BREED,
        "inputs": NOTE,
        "2 × 3/4": draw_tensor((6, 6)),
    },
}
TARGETS = {
    "binary": {"y": YES},
    "multiclass": {"y": (Category(role="target"), Encode(), BREED[2])},
    "multilabel": {"y": (Sequence("string", role="target"), Encode("multi_hot"), WORDS)},
    "regression": {"y": (Number(role="target"), Keep("float32"), numbers([10, 20, 30, 40, 50, 90]))},
    "vector": {"y": (Tensor((2,), role="target"), Keep(), numbers([[1, 2]] * NUM_ROWS))},
    "several": {
        "y": YES,
        "a/b": (Category(role="target"), Encode(), BREED[2]),
        "price (€)": (Number(role="target"), Keep("float32"), numbers([10, 20, 30, 40, 50, 90])),
    },
}
SEQUENCES = {
    "tokens": (Text(), Tokenize(length=5), NOTE[2]),
    "any tokens, masked": (Text(), Tokenize(mask=True), NOTE[2]),
    "values": (Sequence("string"), Encode(), WORDS),
    "steps of values": (Sequence("string", shape=None, stored="feature_list"), Encode(), DEEP),
    "whole numbers": (Sequence("int64"), Pad(), HOURS),
    "masked numbers": (Sequence("float32"), Pad(length=3, mask=True), FLOATS),
    "scaled numbers": (Sequence("float32"), Scale(), FLOATS),
    "pairs": (Sequence("float32", shape=(2,), stored="feature_list"), Pad(), PAIRS),
}


def check_alike(pipeline, inputs, options=None):
    built, written = build_both(pipeline, options)
    assert list_layers(built) == list_layers(written)
    first, second = run(built, inputs), run(written, inputs)
    keras.tree.map_structure(np.testing.assert_array_equal, first, second)
    for array in keras.tree.flatten(first):
        assert np.isfinite(array).all()
    return built, first


@pytest.mark.parametrize("name", INPUTS)
def test_code_of_each_input_builds_the_same_model(name):
    pipeline, inputs = make_pipeline({**INPUTS[name], "y": YES})
    built, output = check_alike(pipeline, inputs, ModelOptions(preset="small"))
    assert output.shape == (NUM_ROWS, 1)
    assert set(built.input) == set(pipeline.inputs)


@pytest.mark.parametrize("style", ["ngrams", "pool", "gru", "conv", "transformer"])
def test_code_of_each_sequence_builds_the_same_model(style):
    # The transformer's many layers take their time: only its specific options.
    chosen = SEQUENCES if style != "transformer" else dict(list(SEQUENCES.items())[:2])
    pipeline, inputs = make_pipeline({**chosen, "y": YES})
    sequence = "pool" if style == "ngrams" else style
    check_alike(pipeline, inputs, ModelOptions(preset="small", text=style, sequence=sequence, l2=1e-4))


@pytest.mark.parametrize("name", TARGETS)
def test_code_of_each_target_builds_the_same_model(name):
    pipeline, inputs = make_pipeline({"age": AGE, **TARGETS[name]})
    check_alike(pipeline, inputs, ModelOptions(l2=1e-4, dropout=0))


@pytest.mark.parametrize("members", [1, 4])
@pytest.mark.parametrize("name", TARGETS)
def test_code_of_each_target_of_a_text_builds_the_same_model(name, members):
    pipeline, inputs = make_pipeline({"note": NOTE, "more": NOTE, **TARGETS[name]})
    built, _ = check_alike(pipeline, inputs, ModelOptions(preset="small", members=members))
    tables = [each.name for each in built.layers if each.name.endswith("_ngrams")]
    assert len(tables) == 2 * len(pipeline.targets)


def test_code_of_maps_and_groups_builds_the_same_model():
    parts = {"age": AGE, "height": AGE, "breed": BREED, "kind": BREED, "size": AGE, "y": YES}
    maps = [
        make_map("size", "ratio", np.arange(NUM_ROWS, dtype=np.float64)),
        make_map("size", "flags", np.ones((NUM_ROWS, 3), bool)),
        make_map("size", "counts", np.ones((NUM_ROWS, 3), np.uint8)),
        make_map("size", "counts_mask", np.ones((NUM_ROWS, 3), bool)),
    ]
    groups = [("numbers", ("age", "height")), ("codes", ("breed", "kind"))]
    pipeline, inputs = make_pipeline(parts, maps, groups)
    built, _ = check_alike(pipeline, inputs, ModelOptions(preset="small"))
    names = [layer.name for layer in built.layers]
    assert {"codes_0_embedding", "codes_1_embedding", "counts_embedding", "flags_dense"} <= set(names)
    assert "numbers_normalization" in names  # of `ratio`, which nothing has scaled
    assert not {"numbers_2_normalization", "flags_normalization"} & set(names)


def test_code_of_an_earlier_version_stays_the_same():
    # Weights of runs of earlier versions are loaded into this model.
    parts = {"age": AGE, "breed": BREED, "note": NOTE, "y": YES}
    pipeline, _ = make_pipeline(parts)
    options = read_model_options(JsonValue({"preset": "small", "dropout": 0.2}, Document("run")))
    code = write_model(pipeline.schema, pipeline, options)
    assert (
        code
        == '''"""A model of several inputs by name, in Keras alone: yours to edit.

Penstock wrote it. Train it with: penstock train DATASET --model model.py:build
"""

import keras
from keras import initializers, layers, ops, regularizers


def build() -> keras.Model:
    """Return the model, not compiled."""
    inputs = {
        "age": keras.Input((), dtype="float32", name="age"),
        "breed": keras.Input((), dtype="int32", name="breed"),
        "note": keras.Input((None,), dtype="int32", name="note"),
    }

    # Numbers: age.
    x = ops.expand_dims(inputs["age"], -1)
    # Each number unchanged, and through a few ramps of its own, which find thresholds.
    ramps = layers.Reshape((1, 1), name="numbers_columns")(x)
    ramps = layers.EinsumDense(
        "bni,nid->bnd",
        output_shape=(1, 8),
        bias_axes="nd",
        activation="relu",
        kernel_initializer=initializers.RandomNormal(stddev=1.0),
        bias_initializer=initializers.RandomNormal(stddev=1.0),
        name="numbers_ramps",
    )(ramps)
    ramps = layers.Flatten(name="numbers_flat")(ramps)
    numbers = layers.Concatenate(name="numbers_both")([x, ramps])

    # Categories: a table of learned vectors each, with a row for every code.
    cost = regularizers.L2(0.01)
    breed = layers.Embedding(4, 4, embeddings_regularizer=cost, name="breed_embedding")(inputs["breed"])

    # note: any number of tokens of a vocabulary of 10; 0 is padding.
    mask = ops.not_equal(inputs["note"], 0)
    x = layers.Embedding(
        10,
        16,
        embeddings_regularizer=regularizers.L2(0.01),
        name="note_embedding",
    )(inputs["note"])
    # Drop whole words, so that the model does not rely on a single name that occurs twice.
    x = layers.Dropout(0.5, noise_shape=(None, None, 1), name="note_dropout")(x)
    weights = ops.expand_dims(ops.cast(mask, x.dtype), -1)
    # Mean of the steps; without any step it is 0, not 0 / 0.
    note = ops.sum(x * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1)

    # Together.
    x = layers.Concatenate(name="combined")([numbers, breed, note])
    x = layers.Dense(64, activation="relu", name="combined_dense_1")(x)
    x = layers.Dropout(0.2, name="combined_dropout_1")(x)

    # Predicted.
    outputs = layers.Dense(1, activation="sigmoid", dtype="float32", name="y")(x)
    return keras.Model(inputs, outputs, name="penstock")
'''
    )


def test_code_of_bins_and_members_reads_as_a_person_would_write_it():
    ages = (Number(), Scale("none"), numbers([1, 2, 4, 2, 4, 1]))
    pipeline, _ = make_pipeline({"age": ages, "flag": AGE, "y": YES})
    code = write_model(pipeline.schema, pipeline, ModelOptions(preset="small"))
    assert code.partition("# Numbers")[2] == CODE_OF_BINS


CODE_OF_BINS = """: age, flag.
    # Each number by bins of its own. A bin is 0 for numbers below it and 1 for those above it, and
    # rises in between: a linear layer of all bins is a piecewise linear function of the number.
    x = ops.expand_dims(ops.stack([inputs["age"], inputs["flag"]], axis=-1), -1)
    edges = ops.array(
        [
            [1.0, 2.0, 4.0, 1e+30, 2e+30, 3e+30],
            [-1.4638501, -0.8783101, -0.29277003, 0.29277003, 0.8783101, 1.4638501],
        ],
        dtype="float32",
    )
    widths = edges[:, 1:] - edges[:, :-1]
    bins = ops.clip((x - edges[:, :-1]) / widths, 0.0, 1.0)
    # The functions are straight lines at first: bins begin with weights of 0.
    lines = layers.EinsumDense(
        "bni,nid->bnd",
        output_shape=(2, 16),
        bias_axes="nd",
        kernel_initializer=initializers.RandomNormal(stddev=0.3),
        name="numbers_lines",
    )(x)
    bins = layers.EinsumDense(
        "bnt,ntd->bnd",
        output_shape=(2, 16),
        kernel_initializer="zeros",
        name="numbers_bins",
    )(bins)
    numbers = layers.Add(name="numbers_all")([lines, bins])
    numbers = layers.Flatten(name="numbers_flat")(numbers)

    # Together.
    # An ensemble of 4 members: they share the dense layers, and each has its own scale of every
    # input and its own output layer.
    x = layers.EinsumDense(
        "bd,kd->bkd",
        output_shape=(4, numbers.shape[-1]),
        kernel_initializer=initializers.RandomNormal(stddev=1.0),
        name="combined_members",
    )(numbers)
    x = layers.Dense(64, activation="relu", name="combined_dense_1")(x)
    x = layers.Dropout(0.1, name="combined_dropout_1")(x)

    # Predicted.
    y_members = layers.EinsumDense(
        "bkd,kdu->bku",
        output_shape=(4, 1),
        bias_axes="ku",
        kernel_initializer=initializers.RandomUniform(-0.125, 0.125),
        activation="sigmoid",
        dtype="float32",
        name="y_members",
    )(x)
    outputs = layers.GlobalAveragePooling1D(dtype="float32", name="y")(y_members)
    return keras.Model(inputs, outputs, name="penstock")
"""


def test_code_of_many_long_names_stays_within_its_lines():
    long = "a field with a name that is longer than names should be, number"
    parts = {f"{long} {i}": (AGE if i % 2 else NOTE) for i in range(8)}
    pipeline, _ = make_pipeline({**parts, "y": YES})
    options = ModelOptions(preset="small", text="transformer", l2=0.01)
    code = write_model(pipeline.schema, pipeline, options)
    assert max(map(len, code.splitlines())) <= 110
    compile(code, "model.py", "exec")


def test_names_of_fields_cannot_leave_their_strings_and_comments():
    name = 'x"] = 1\n    import os  # "'
    pipeline, inputs = make_pipeline({name: AGE, 'y\n"""': YES})
    code = write_model(pipeline.schema, pipeline)
    assert "import os" not in [line.strip() for line in code.splitlines()]
    check_alike(pipeline, inputs)
