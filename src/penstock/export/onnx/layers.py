"""Convolutions, pooling, attention and recurrence as ONNX operators, and layers that Keras cannot take apart.

In: an operation or a layer of Keras, and its arguments. Out: nodes with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.export.onnx.graph import Value
from penstock.export.onnx.operations import Converter, Step, UnsupportedError, flip, permute, read_array

_LARGE: Final = 1e9  # as masked attention scores have it, below 0


def _convolve(step: Step, inputs: Any, kernel: Any) -> Value:
    weights = read_array(kernel)
    rank = weights.ndim - 2
    first = _is_first(step)
    num_channels = _count_channels(inputs, first)
    groups = num_channels // weights.shape[-2]
    return _slide(step, inputs, weights.transpose(rank + 1, rank, *range(rank)), groups)


def _convolve_by_depth(step: Step, inputs: Any, kernel: Any) -> Value:
    weights = read_array(kernel)
    rank = weights.ndim - 2
    num_channels, multiplier = weights.shape[-2:]
    sides = weights.shape[:rank]
    filters = weights.transpose(rank, rank + 1, *range(rank)).reshape(num_channels * multiplier, 1, *sides)
    return _slide(step, inputs, filters, num_channels)


def _convolve_separably(step: Step, inputs: Any, depthwise_kernel: Any, pointwise_kernel: Any) -> Value:
    middle = _convolve_by_depth(step, inputs, depthwise_kernel)
    weights = read_array(pointwise_kernel)
    rank = weights.ndim - 2
    filters = weights.transpose(rank + 1, rank, *range(rank))
    first = step.graph.add("Conv", _to_first(step, middle), step.read(filters, step.dtype))
    return _from_first(step, first)


def _slide(step: Step, inputs: Any, filters: NDArray[Any], groups: int) -> Value:
    """Add a convolution with filters of shape (out, in, *sides)."""
    op, sides = step.operation, filters.shape[2:]
    strides, dilations = (_repeat(each, len(sides)) for each in (op.strides, op.dilation_rate))
    spans = [rate * (side - 1) for side, rate in zip(sides, dilations, strict=True)]
    padding: dict[str, Any] = {}
    if op.padding == "causal":
        padding = {"pads": [*spans, *(0 for _ in spans)]}
    elif op.padding == "same" and set(strides) == {1}:
        # Runtimes do not find the padding by themselves where there are dilations.
        padding = {"pads": [*(each // 2 for each in spans), *(each - each // 2 for each in spans)]}
    elif op.padding == "same":
        padding = {"auto_pad": "SAME_UPPER"}
    made = step.graph.add(
        "Conv",
        _to_first(step, step.read(inputs, step.dtype)),
        step.read(np.ascontiguousarray(filters), step.dtype),
        strides=strides,
        dilations=dilations,
        group=groups,
        **padding,
    )
    return _from_first(step, made)


def _pool(kind: str) -> Converter:
    def convert(step: Step, inputs: Any) -> Value:
        op, value = step.operation, step.read(inputs, step.dtype)
        sides = _repeat(op.pool_size, value.rank - 2)
        strides = sides if op.strides is None else _repeat(op.strides, value.rank - 2)
        padding: dict[str, Any] = {"auto_pad": "SAME_UPPER"} if op.padding == "same" else {}
        first = _to_first(step, value)
        return _from_first(step, step.graph.add(kind, first, kernel_shape=sides, strides=strides, **padding))

    return convert


def _repeat(given: Any, count: int) -> list[int]:
    return [int(given)] * count if isinstance(given, int) else [int(each) for each in given]


def _is_first(step: Step) -> bool:
    chosen = step.operation.data_format or keras.config.image_data_format()
    return bool(chosen == "channels_first")


def _count_channels(inputs: Any, first: bool) -> int:
    channels = inputs.shape[1 if first else -1]
    if channels is None:
        raise UnsupportedError("a number of channels that varies")
    return int(channels)


def _to_first(step: Step, value: Value) -> Value:
    """Return a value with channels before the sides, as ONNX has them."""
    return value if _is_first(step) else permute(step.graph, value, (0, -1, *range(1, value.rank - 1)))


def _from_first(step: Step, value: Value) -> Value:
    return value if _is_first(step) else permute(step.graph, value, (0, *range(2, value.rank), 1))


def _attend(
    step: Step, query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None
) -> Value:
    op, graph = step.operation, step.graph
    if bias is not None or op.is_causal or op.attn_logits_soft_cap is not None:
        raise UnsupportedError("attention with a bias, a causal mask or a cap")
    asked, found, held = (step.read(each, step.dtype) for each in (query, key, value))
    if asked.shape[2] != found.shape[2]:
        raise UnsupportedError("attention with grouped queries")
    factor = 1 / np.sqrt(asked.shape[-1] or 1) if scale is None else scale
    scores = graph.add("Einsum", asked, found, equation="btnh,bsnh->bnts")
    scores = graph.add("Mul", scores, step.read(factor, step.dtype))
    if mask is not None:
        scores = graph.add(
            "Where", step.read(mask, "bool"), scores, step.read(-_LARGE, step.dtype), dtype=step.dtype
        )
    shares = graph.add("Softmax", scores, axis=-1)
    return graph.add("Einsum", shares, held, equation="bnts,bsnh->btnh")


SPATIAL_OPERATIONS: Final[Mapping[str, Converter]] = {
    "AveragePool": _pool("AveragePool"),
    "Conv": _convolve,
    "DepthwiseConv": _convolve_by_depth,
    "DotProductAttention": _attend,
    "MaxPool": _pool("MaxPool"),
    "SeparableConv": _convolve_separably,
}
"""Operations over sides and steps, by the names of their classes."""


def _add_softmax(step: Step, inputs: Any, mask: Any = None) -> Value:
    axis = step.operation.axis
    axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
    if not isinstance(axis, int):
        raise UnsupportedError(f"axis={axis}")
    value = step.read(inputs, step.dtype)
    if mask is None:
        return step.graph.add("Softmax", value, axis=axis)
    seen = step.read(mask)
    if seen.dtype != "bool":
        seen = step.graph.add("Greater", seen, step.read(0.5, seen.dtype), dtype="bool")
    masked = step.graph.add("Where", seen, value, step.read(-_LARGE, step.dtype), dtype=step.dtype)
    shares = step.graph.add("Softmax", masked, axis=axis)
    return step.graph.add("Where", seen, shares, step.read(0.0, step.dtype), dtype=step.dtype)


def _rescale(step: Step, inputs: Any) -> Value:
    layer = step.operation
    if np.ndim(layer.scale) and keras.config.image_data_format() == "channels_first":
        raise UnsupportedError("scales of channels that are first")
    scaled = step.graph.add("Mul", step.read(inputs, step.dtype), step.read(layer.scale, step.dtype))
    return step.graph.add("Add", scaled, step.read(layer.offset, step.dtype))


def _normalize(step: Step, inputs: Any) -> Value:
    """The adapted mean and variance are constants, and no inputs of the graph."""
    layer = step.operation
    mean = read_array(layer.mean)
    deviation = np.maximum(np.sqrt(read_array(layer.variance)), np.float32(keras.backend.epsilon()))
    value = step.read(inputs, step.dtype)
    if layer.invert:
        product = step.graph.add("Mul", value, step.read(deviation, step.dtype))
        return step.graph.add("Add", product, step.read(mean, step.dtype))
    centered = step.graph.add("Sub", value, step.read(mean, step.dtype))
    return step.graph.add("Div", centered, step.read(deviation, step.dtype))


def _convolve_groups(step: Step, inputs: Any) -> Value:
    """A convolution in groups, which Keras refuses to take apart."""
    layer = step.operation
    if layer.activation is not keras.activations.linear:
        raise UnsupportedError("an activation of a convolution in groups; use a layer of its own")
    value = _convolve(step, inputs, layer.kernel)
    if not layer.use_bias:
        return value
    shape = (1, -1, *(1 for _ in layer.kernel_size)) if _is_first(step) else (-1,)
    return step.graph.add("Add", value, step.read(read_array(layer.bias).reshape(shape), step.dtype))


_RECURRENT_NAMES: Final = {"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu"}
# The sigmoid of it is 1, so that the update gate keeps the state as it is.
_CLOSED: Final = 1e4


def _recur_gru(step: Step, sequence: Any, initial_state: Any = None, mask: Any = None) -> Value:
    """A step that a mask leaves out has an update gate of 1, by one more input with a large weight."""
    layer, graph = step.operation, step.graph
    x = _read_steps(step, sequence, initial_state)
    units = layer.units
    kernel, recurrent = (read_array(each) for each in (layer.cell.kernel, layer.cell.recurrent_kernel))
    bias = np.zeros((2, 3 * units), np.float32)
    if layer.use_bias:
        given = read_array(layer.cell.bias)
        bias = given if layer.reset_after else np.stack([given, np.zeros_like(given)])
    if mask is not None:
        left_out = graph.add("Not", step.read(mask, "bool"))
        if layer.go_backwards:
            left_out = flip(graph, left_out, [1])
        closed = graph.add("Unsqueeze", graph.cast(left_out, step.dtype), graph.integers(2))
        x = graph.add("Concat", x, closed, axis=2)
        row = np.zeros((1, 3 * units), np.float32)
        row[:, :units] = _CLOSED
        kernel = np.concatenate([kernel, row])
    return _add_recurrence(
        step,
        "GRU",
        x,
        [kernel.T[None], recurrent.T[None], bias.reshape(1, -1)],
        activations=[_name_activation(each) for each in (layer.recurrent_activation, layer.activation)],
        linear_before_reset=int(layer.reset_after),
    )


def _recur_lstm(step: Step, sequence: Any, initial_state: Any = None, mask: Any = None) -> Value:
    layer = step.operation
    if mask is not None:
        raise UnsupportedError("LSTM with a mask")
    x = _read_steps(step, sequence, initial_state)
    order = (0, 3, 1, 2)  # Keras has input, forget, cell, output; ONNX input, output, forget, cell

    def arrange(array: NDArray[Any]) -> NDArray[Any]:
        gates = np.split(array, 4, axis=-1)
        return np.concatenate([gates[each] for each in order], axis=-1)

    kernel, recurrent = (
        arrange(read_array(each)).T[None] for each in (layer.cell.kernel, layer.cell.recurrent_kernel)
    )
    given = np.zeros(4 * layer.units, np.float32)
    if layer.use_bias:
        given = arrange(read_array(layer.cell.bias))
    bias = np.concatenate([given, np.zeros_like(given)])[None]
    names = [_name_activation(each) for each in (layer.recurrent_activation, layer.activation)]
    return _add_recurrence(step, "LSTM", x, [kernel, recurrent, bias], activations=[*names, names[1]])


def _read_steps(step: Step, sequence: Any, initial_state: Any) -> Value:
    layer = step.operation
    if initial_state is not None or layer.return_state or layer.stateful:
        raise UnsupportedError("states of recurrent layers as inputs or outputs")
    value = step.read(sequence, step.dtype)
    return flip(step.graph, value, [1]) if layer.go_backwards else value


def _add_recurrence(step: Step, kind: str, x: Value, weights: list[NDArray[Any]], **attributes: Any) -> Value:
    """Add a recurrent operator, which has the steps first."""
    layer, graph = step.operation, step.graph
    steps = permute(graph, x, (1, 0, 2))
    constants = [step.read(np.ascontiguousarray(each), step.dtype) for each in weights]
    wanted = (True,) if layer.return_sequences else (False, True)
    made = graph.add_many(
        kind,
        [steps, *constants],
        wanted,
        hidden_size=layer.units,
        **attributes,
    )[0]
    if not layer.return_sequences:
        return graph.add("Squeeze", made, graph.integers(0))  # of directions
    directionless = graph.add("Squeeze", made, graph.integers(1), shape=(None, None, layer.units))
    return permute(graph, directionless, (1, 0, 2))


def _name_activation(activation: Callable[..., Any]) -> str:
    name = getattr(activation, "__name__", "")
    if activation is not getattr(keras.activations, name, None) or name not in _RECURRENT_NAMES:
        raise UnsupportedError(f"the activation {name or activation!r} of a recurrent layer")
    return _RECURRENT_NAMES[name]


def find_converter(layer: Any) -> Converter | None:
    """Return the function that converts a layer as a whole; None to convert its operations one by one."""
    if isinstance(layer, _CONVOLUTIONS) and layer.groups > 1:
        return _convolve_groups
    return _LAYERS.get(type(layer))


_CONVOLUTIONS: Final = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)
# Layers that do not consist of operations, as they call their backend.
_LAYERS: Final[Mapping[type, Converter]] = {
    keras.layers.GRU: _recur_gru,
    keras.layers.LSTM: _recur_lstm,
    keras.layers.Normalization: _normalize,
    keras.layers.Rescaling: _rescale,
    keras.layers.Softmax: _add_softmax,
}
