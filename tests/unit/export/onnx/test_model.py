"""Keras models as ONNX: every layer gives the same numbers, and those that cannot be converted are named."""

import numpy as np
import pytest

from penstock.errors import OptionError

keras = pytest.importorskip("keras")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from keras import layers, ops  # noqa: E402

from penstock.export.onnx.model import convert_model  # noqa: E402

DRAWS = np.random.default_rng(3)


class Blend(layers.Layer):
    """A user's layer of several operations, with a weight."""

    def build(self, shape):
        self.share = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, inputs, training=None):
        if training:
            raise AssertionError("not in a prediction")
        mean = ops.mean(inputs, axis=-1, keepdims=True)
        return ops.where(inputs > 0, ops.square(inputs) * self.share, mean) + ops.sqrt(ops.abs(inputs))


def randomize(model):
    """Set weights that are not 0 or 1, as after training."""
    for weight in model.weights:
        if "seed" not in weight.path and "count" not in weight.path:
            weight.assign(
                DRAWS.uniform(0.1, 0.9, weight.shape) * np.where(DRAWS.random(weight.shape) < 0.4, -1, 1)
                if "variance" not in weight.path
                else DRAWS.uniform(0.2, 2, weight.shape)
            )


def make_session(model, targets=("y",)):
    return onnxruntime.InferenceSession(
        convert_model(model, targets).SerializeToString(), providers=["CPUExecutionProvider"]
    )


def compare(model, inputs):
    """Compare with Keras for the rows together and one by one."""
    session = make_session(model)
    assert [each.name for each in session.get_inputs()] == list(inputs)
    expected = np.asarray(model(inputs if len(inputs) > 1 else next(iter(inputs.values()))))
    (found,) = session.run(["y"], inputs)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.ptp(expected) > 1e-3  # a constant would agree with anything
    (first,) = session.run(["y"], {name: each[:1] for name, each in inputs.items()})
    np.testing.assert_allclose(first, expected[:1], rtol=1e-5, atol=1e-5)


def check_layer(layer, shape, *more):
    x = keras.Input(shape, name="x")
    y = x
    for each in (layer, *more):
        y = each(y)
    model = keras.Model(x, y)
    randomize(model)
    sizes = [6 if each is None else each for each in shape]
    compare(model, {"x": DRAWS.normal(size=(3, *sizes)).astype(np.float32)})


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (layers.Conv1D(4, 3, padding="same"), (None, 2)),
        (layers.Conv1D(4, 4, padding="same", dilation_rate=2), (9, 2)),
        (layers.Conv1D(4, 3, padding="causal", activation="relu"), (7, 2)),
        (layers.Conv2D(4, 3, strides=2, padding="same"), (7, 8, 2)),
        (layers.Conv2D(4, (2, 4), padding="same"), (7, 8, 2)),
        (layers.Conv2D(4, 3, groups=2, use_bias=False), (7, 8, 2)),
        (layers.Conv3D(2, 3, strides=2, padding="same"), (4, 5, 6, 2)),
        (layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same"), (5, 6, 3)),
        (layers.SeparableConv2D(4, 3, padding="same", strides=2), (7, 6, 3)),
        (layers.MaxPooling2D(3, strides=2, padding="same"), (7, 8, 2)),
        (layers.MaxPooling1D(2), (7, 3)),
        (layers.AveragePooling2D(2, padding="same"), (7, 5, 2)),
        (layers.AveragePooling3D(2, padding="same"), (3, 5, 4, 2)),
        (layers.GlobalAveragePooling2D(), (3, 4, 5)),
        (layers.GlobalMaxPooling1D(), (None, 3)),
        (layers.ZeroPadding2D(((1, 2), (0, 3))), (3, 4, 2)),
        (layers.Permute((2, 3, 1)), (2, 3, 4)),
        (layers.Reshape((-1, 6)), (None, 2, 3)),
        (layers.Reshape((6, 2)), (3, 4)),
        (layers.Flatten(), (3, 4)),
        (layers.BatchNormalization(), (5, 4)),
        (layers.BatchNormalization(axis=1, center=False, scale=False), (5, 4)),
        (layers.LayerNormalization(), (5, 4)),
        (layers.LayerNormalization(axis=(1, 2)), (5, 4)),
        (layers.Rescaling([0.5, 2.0], [1.0, -1.0]), (3, 2)),
        (layers.Dense(3, activation="gelu"), (4, 5)),
        (layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d", activation="tanh"), (4, 5)),
        (layers.ReLU(max_value=0.6), (5,)),
        (layers.LeakyReLU(0.1), (5,)),
        (layers.Softmax(), (5,)),
        (layers.Dropout(0.5), (5,)),
        (layers.GRU(3), (None, 2)),
        (layers.GRU(3, reset_after=False, return_sequences=True), (5, 2)),
        (layers.LSTM(3, return_sequences=True), (None, 2)),
        (layers.GRU(3, go_backwards=True), (None, 2)),
        (layers.TimeDistributed(layers.Dense(3)), (4, 2)),
        (Blend(), (4,)),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, keras.Layer) else str(each),
)
def test_layer_gives_the_numbers_of_keras(layer, shape):
    check_layer(layer, shape)


@pytest.mark.parametrize(
    "name",
    ["elu", "gelu", "hard_sigmoid", "relu6", "selu", "silu", "softplus", "softsign", "tanh"],
)
def test_activation_gives_the_numbers_of_keras(name):
    check_layer(layers.Activation(name), (17,))


def test_operations_give_the_numbers_of_keras():
    x = keras.Input((4, 3), name="x")
    n = keras.Input((4,), name="n", dtype="int32")
    small = keras.Input((4,), name="small", dtype="uint8")
    y = ops.flip(x, axis=1)[:, 1:, ::2][:, :, 0] + ops.cast(ops.mod(n, 5), "float32")[:, :-1]
    y = ops.concatenate([y, ops.expm1(x[..., -1]), ops.log1p(ops.abs(x[:, 0]))], axis=-1)
    y = y + ops.cast(ops.any(ops.not_equal(small, 0), axis=1, keepdims=True), "float32") * 0.5
    y = y * ops.cast(ops.cumsum(n, axis=1)[:, -1:] > 3, "float32") + ops.clip(y, -0.5, 0.5)
    y = y + ops.max(ops.transpose(x, (0, 2, 1)), axis=2)[:, None, 0] / (small[:, :1] + 1)
    y = ops.squeeze(ops.stack([y, ops.maximum(y, 0.1)], axis=1)[:, None], axis=1)
    y = y - ops.cast(ops.logical_and(n > 2, small < 3), "float32")[:, None, :1]
    model = keras.Model({"x": x, "n": n, "small": small}, y)
    inputs = {
        "x": DRAWS.normal(size=(5, 4, 3)).astype(np.float32),
        "n": DRAWS.integers(-9, 9, (5, 4)).astype(np.int32),
        "small": np.array([[0] * 4, [1, 0, 0, 0], [255] * 4, [2] * 4, [0] * 4], np.uint8),
    }
    compare(model, inputs)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_attention_with_a_mask_gives_the_numbers_of_keras(dropout):
    x = keras.Input((None, 4), name="x")
    seen = keras.Input((None,), name="seen", dtype="bool")
    attention = layers.MultiHeadAttention(2, 3, dropout=dropout)
    model = keras.Model({"x": x, "seen": seen}, attention(x, x, attention_mask=ops.expand_dims(seen, 1)))
    randomize(model)
    mask = np.array([[True] * 5, [True, False, True, False, False]])
    compare(model, {"x": DRAWS.normal(size=(2, 5, 4)).astype(np.float32), "seen": mask})


@pytest.mark.parametrize("return_sequences", [False, True])
def test_gru_with_any_mask_gives_the_numbers_of_keras(return_sequences):
    x = keras.Input((None, 2), name="x")
    seen = keras.Input((None,), name="seen", dtype="bool")
    gru = layers.GRU(3, return_sequences=return_sequences)
    model = keras.Model({"x": x, "seen": seen}, gru(x, mask=seen))
    randomize(model)
    mask = DRAWS.random((4, 40)) < 0.3
    mask[0] = [True] * 3 + [False] * 37
    mask[1] = False
    compare(model, {"x": DRAWS.normal(size=(4, 40, 2)).astype(np.float32), "seen": mask})


def test_mask_of_an_embedding_reaches_the_layers_after_it():
    ids = keras.Input((None,), name="ids", dtype="int32")
    model = keras.Model(ids, layers.GRU(3)(layers.Dropout(0.1)(layers.Embedding(9, 2, mask_zero=True)(ids))))
    randomize(model)
    compare(model, {"ids": np.array([[3, 4, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0]], np.int32)})


def test_adapted_normalization_is_constant_and_no_input():
    layer = layers.Normalization()
    layer.adapt(DRAWS.normal(5, 3, (50, 2)).astype(np.float32))
    model = keras.Sequential([keras.Input((2,), name="x"), layer, layers.Dense(3)])
    compare(model, {"x": DRAWS.normal(5, 3, (4, 2)).astype(np.float32)})


def test_models_inside_of_models_and_shared_layers_are_converted():
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu")], name="inner")
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b", dtype="int64")
    outer = keras.Model([a, b], layers.Subtract()([inner(a), inner(b)]), name="outer")
    given = {"a": keras.Input((4,), name="a"), "b": keras.Input((4,), name="b", dtype="int64")}
    model = keras.Model(given, outer([given["a"], given["b"]]) * 2)
    randomize(model)
    inputs = {"a": DRAWS.normal(size=(3, 4)).astype(np.float32), "b": DRAWS.integers(0, 5, (3, 4))}
    compare(model, inputs)
    kernels = [each for each in convert_model(model, ["y"]).graph.initializer if "kernel" in each.name]
    assert len(kernels) == 1


def test_several_outputs_have_the_names_of_the_targets_and_rows_any_number():
    x = keras.Input((None, 2), name="x")
    pooled = layers.GlobalAveragePooling1D()(x)
    model = keras.Model({"x": x}, {"b": layers.Dense(1)(pooled), "a": layers.Dense(2)(pooled)})
    made = convert_model(model, ["a", "b"])
    assert [each.name for each in made.graph.output] == ["a", "b"]
    dims = [
        [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in made.graph.output
    ]
    assert dims == [["rows", 2], ["rows", 1]]
    dims = [dim.dim_param or dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["rows", "x_1", 2]
    assert {each.domain for each in made.opset_import} == {""}


def refuse(model, field, got):
    with pytest.raises(OptionError) as caught:
        convert_model(model, ["y"])
    assert caught.value.field == field
    assert got in str(caught.value.got)
    assert "bundle" in caught.value.advice or field == "word"


def test_layer_that_cannot_be_converted_is_named():
    class Sorted(layers.Layer):
        def call(self, inputs):
            return ops.sort(inputs)

    class Native(layers.Layer):
        def call(self, inputs):
            return keras.ops.convert_to_numpy(inputs)

        def compute_output_spec(self, inputs):
            return keras.KerasTensor(inputs.shape)

    x = keras.Input((4,), name="x")
    refuse(keras.Model(x, Sorted(name="mine")(layers.Dense(3)(x))), "mine", "Sort")
    refuse(keras.Model(x, Native(name="mine")(x)), "mine", "keras.ops")
    half = layers.Dense(3, dtype="mixed_float16", name="half")
    refuse(keras.Model(x, half(x)), "half", "float16")
    steps = keras.Input((5, 2), name="x")
    masked = layers.LSTM(3, name="lstm")(layers.Masking()(steps))
    refuse(keras.Model(steps, masked), "lstm", "mask")


def test_model_that_takes_strings_is_refused():
    word = keras.Input((), dtype="string", name="word")
    lookup = layers.StringLookup(vocabulary=["a", "b"])
    refuse(keras.Model(word, layers.Embedding(3, 2)(lookup(word))), "word", "strings")


def test_subclassed_model_is_refused():
    class Own(keras.Model):
        def call(self, inputs):
            return inputs

    refuse(Own(), None, "Own")
