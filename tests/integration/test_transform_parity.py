"""Transforms against the Keras layers that do the same."""

import warnings
from typing import Any

import numpy as np
import pytest

from fit_sources import ColumnSource, lists, numbers, strings
from penstock.fields import Category, Number, Sequence, Tensor
from penstock.schema.schema import Schema
from penstock.transform import Encode, Scale

RANDOM = np.random.default_rng(4)
# Distinct counts: among equally frequent values Keras has another order.
SEEN = [word for count, word in enumerate(["a", "ü", "eel", "Dog"], 2) for _ in range(count)]
RANDOM.shuffle(SEEN)
NEW = ["a", "eel", "nothing", "Dog", "dog", "ü", "a"]
MISSING = "\x00missing"


@pytest.fixture(scope="module")
def keras() -> Any:
    """Keras on TensorFlow. They warn while they are imported, and here warnings are errors."""
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        environment.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        warnings.simplefilter("ignore")
        pytest.importorskip("tensorflow")
        return pytest.importorskip("keras")


def fit(transform, field, column):
    return transform.fit("x", field, ColumnSource(Schema({"x": field}), {"x": column}))


def apply(transform, column):
    return transform.apply("x", column, None)["x"]


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_standard_scale_is_normalization(keras, shape, dtype):
    values = RANDOM.normal(50, 20, (500, *shape)).astype(dtype)
    new = RANDOM.normal(50, 40, (40, *shape)).astype(dtype)
    field = Number(dtype) if shape == () else Tensor(shape, dtype)
    scale = fit(Scale(), field, numbers(values, dtype))
    axis = None if shape == () else tuple(range(1, len(shape) + 1))
    layer = keras.layers.Normalization(axis=axis)
    layer.adapt(values.astype(np.float32))
    expected = np.asarray(layer(new.astype(np.float32)))
    assert apply(scale, numbers(new, dtype)) == pytest.approx(expected, rel=2e-5, abs=2e-5)


def test_scale_as_a_whole_is_normalization_without_an_axis(keras):
    values = RANDOM.normal(-3, 2, (500, 4)).astype(np.float32)
    scale = fit(Scale(per="whole"), Tensor((4,)), numbers(values))
    layer = keras.layers.Normalization(axis=None)
    layer.adapt(values)
    assert apply(scale, numbers(values)) == pytest.approx(np.asarray(layer(values)), rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("output", ["index", "one_hot"])
def test_required_strings_equal_string_lookup(keras, output):
    encode = fit(Encode(output), Category(), strings(SEEN))
    mode = "int" if output == "index" else output
    layer = keras.layers.StringLookup(output_mode=mode)
    layer.adapt(np.array(SEEN))
    assert layer.get_vocabulary() == ["[UNK]", *encode.fitted.values]
    assert np.array_equal(apply(encode, strings(NEW)), np.asarray(layer(np.array(NEW))))


@pytest.mark.parametrize("output", ["index", "one_hot"])
def test_optional_strings_equal_string_lookup_with_a_mask_token(keras, output):
    values = [*NEW[:3], None, *NEW[3:], None]
    encode = fit(Encode(output), Category(optional=True), strings([*SEEN, None]))
    mode = "int" if output == "index" else output
    layer = keras.layers.StringLookup(mask_token=MISSING, output_mode=mode)
    layer.adapt(np.array(SEEN))
    given = np.array([MISSING if value is None else value for value in values])
    expected = np.asarray(layer(given))
    assert np.array_equal(apply(encode, strings(values)), expected)


def test_vocabulary_that_is_cut_equals_string_lookup_with_max_tokens(keras):
    encode = fit(Encode(max_values=3), Category(), strings(SEEN))
    layer = keras.layers.StringLookup(max_tokens=4)
    layer.adapt(np.array(SEEN))
    assert layer.get_vocabulary()[1:] == list(encode.fitted.values)
    assert np.array_equal(apply(encode, strings(NEW)), np.asarray(layer(np.array(NEW))))


@pytest.mark.parametrize("is_optional", [False, True])
def test_ints_equal_integer_lookup(keras, is_optional):
    seen = [7] * 5 + [-3] * 4 + [2**40] * 2 + [0]
    new = [0, 7, 7, 5, -3, 2**40, 12]
    encode = fit(Encode(), Category("int64", optional=is_optional), numbers(seen, "int64"))
    layer = keras.layers.IntegerLookup(mask_token=-99 if is_optional else None)
    layer.adapt(np.array(seen))
    column = numbers([*new, None] if is_optional else new, "int64")
    given = np.array([*new, -99] if is_optional else new)
    assert np.array_equal(apply(encode, column), np.asarray(layer(given)))


def test_padded_lists_of_strings_equal_string_lookup_with_an_empty_mask(keras):
    rows = [["a", "eel"], [], ["nothing", "Dog", "a"]]
    encode = fit(Encode(vocabulary=("a", "eel", "Dog")), Sequence("string"), lists(rows, "string"))
    layer = keras.layers.StringLookup(vocabulary=["a", "eel", "Dog"], mask_token="")
    padded = [[*row, *[""] * (3 - len(row))] for row in rows]
    assert np.array_equal(apply(encode, lists(rows, "string")), np.asarray(layer(np.array(padded))))


@pytest.mark.parametrize("mode", ["multi_hot", "count"])
def test_sets_equal_category_encoding(keras, mode):
    rows = RANDOM.integers(0, 6, (30, 4))
    encode = fit(Encode(mode, vocabulary=range(6), unknown="error"), Sequence("int64"), lists(rows.tolist()))
    layer = keras.layers.CategoryEncoding(num_tokens=6, output_mode=mode)
    assert np.array_equal(apply(encode, lists(rows.tolist())), np.asarray(layer(rows)))


def test_sets_of_strings_equal_string_lookup(keras):
    rows = RANDOM.choice(["a", "eel", "Dog", "nothing"], (30, 3))
    encode = fit(
        Encode("multi_hot", vocabulary=("a", "eel", "Dog")), Sequence("string"), lists([["a"]], "string")
    )
    layer = keras.layers.StringLookup(vocabulary=["a", "eel", "Dog"], output_mode="multi_hot")
    assert np.array_equal(apply(encode, lists(rows.tolist(), "string")), np.asarray(layer(np.array(rows))))
