"""Operations of Keras as ONNX operators.

In: an operation of `keras.ops` in a graph, and its arguments. Out: nodes with the same result, whatever the
backend of Keras is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.export.onnx.graph import OnnxGraph, Shape, Value


class UnsupportedError(Exception):
    """An operation that has no ONNX form here; the text names it, or the option of it."""


@dataclass(frozen=True)
class Step:
    """One operation of a graph, whose attributes are its options; with type and shape of its first output."""

    graph: OnnxGraph
    operation: Any
    dtype: str
    shape: Shape

    def read(self, given: Any, dtype: str | None = None) -> Value:
        """Return an argument as a value of a type: a tensor of the graph, a weight, an array, a number."""
        if isinstance(given, Value):
            return self.graph.cast(given, dtype or given.dtype)
        if isinstance(given, keras.Variable):
            return self.graph.constant(read_array(given), dtype, name=given.path, owner=given)
        return self.graph.constant(read_array(given), dtype)

    @property
    def number(self) -> str:
        """Type to compute the output in: runtimes lack operators for small whole numbers."""
        return find_computed(self.dtype)


def find_computed(dtype: str) -> str:
    """Return the type to compute with instead of a small type."""
    return "int32" if dtype in ("int8", "int16", "uint8", "uint16") else dtype


def read_array(given: Any) -> NDArray[Any]:
    """Return a constant as an array."""
    if isinstance(given, Value):
        raise UnsupportedError("weights that are not constant")
    if isinstance(given, keras.Variable):
        array = np.asarray(given)  # TensorFlow's variables warn of convert_to_numpy
    else:
        is_number = isinstance(given, bool | int | float)
        array = np.asarray(given if is_number else keras.ops.convert_to_numpy(given))
    if array.dtype.kind not in "biuf":
        raise UnsupportedError(f"a constant of type {array.dtype}")
    return array


Converter: TypeAlias = Callable[..., Value]


def _unary(kind: str, **attributes: Any) -> Converter:
    def convert(step: Step, x: Any) -> Value:
        return step.graph.add(kind, step.read(x, step.number), **attributes)

    return convert


def _binary(kind: str) -> Converter:
    def convert(step: Step, x1: Any, x2: Any) -> Value:
        if step.dtype == "bool":
            raise UnsupportedError("arithmetic of booleans")
        return step.graph.add(kind, step.read(x1, step.number), step.read(x2, step.number))

    return convert


def _comparison(kind: str, *, is_inverted: bool = False) -> Converter:
    def convert(step: Step, x1: Any, x2: Any) -> Value:
        dtype = keras.backend.result_type(*(getattr(each, "dtype", type(each)) for each in (x1, x2)))
        common = "int32" if dtype == "bool" else find_computed(dtype)
        made = step.graph.add(kind, step.read(x1, common), step.read(x2, common), dtype="bool")
        return step.graph.add("Not", made) if is_inverted else made

    return convert


def _logical(kind: str) -> Converter:
    def convert(step: Step, *given: Any) -> Value:
        return step.graph.add(kind, *(step.read(each, "bool") for each in given))

    return convert


def _reduction(kind: str) -> Converter:
    def convert(step: Step, x: Any) -> Value:
        if getattr(step.operation, "initial", None) is not None:
            raise UnsupportedError("initial=…")
        return reduce_value(
            step.graph, kind, step.read(x, step.number), step.operation.axis, step.operation.keepdims
        )

    return convert


def reduce_value(graph: OnnxGraph, kind: str, x: Value, axis: Any, keepdims: bool) -> Value:
    """Return a reduction of a value over some axes, or all of them."""
    axes = range(x.rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    found = [int(each) % x.rank for each in axes]
    shape = tuple(
        1 if number in found else dim for number, dim in enumerate(x.shape) if keepdims or number not in found
    )
    if not found:
        return x
    return graph.add(kind, x, graph.integers(*found), keepdims=int(keepdims), shape=shape)


def _truth(kind: str) -> Converter:
    def convert(step: Step, x: Any) -> Value:
        numbers = step.graph.cast(step.read(x, "bool"), "int32")
        found = reduce_value(step.graph, kind, numbers, step.operation.axis, step.operation.keepdims)
        return step.graph.cast(found, "bool")

    return convert


def _cast(step: Step, x: Any) -> Value:
    return step.read(x, step.dtype)


def _modulo(step: Step, x1: Any, x2: Any) -> Value:
    """The result has the sign of the divisor."""
    one, other = step.read(x1, step.number), step.read(x2, step.number)
    if "float" not in step.number:
        return step.graph.add("Mod", one, other)
    whole = step.graph.add("Floor", step.graph.add("Div", one, other, shape=step.shape))
    return step.graph.add("Sub", one, step.graph.add("Mul", whole, other))


def _floor_divide(step: Step, x1: Any, x2: Any) -> Value:
    if "float" not in step.number:
        raise UnsupportedError("division of whole numbers")
    return step.graph.add("Floor", _binary("Div")(step, x1, x2))


def _square(step: Step, x: Any) -> Value:
    value = step.read(x, step.number)
    return step.graph.add("Mul", value, value)


def _inverse_root(step: Step, x: Any) -> Value:
    return step.graph.add("Reciprocal", step.graph.add("Sqrt", step.read(x, step.dtype)))


def _exponential_less_one(step: Step, x: Any) -> Value:
    """Exact near 0 as well: 2 · sinh(x / 2) · exp(x / 2)."""
    graph, half = step.graph, step.read(0.5, step.dtype)
    x = graph.add("Mul", step.read(x, step.dtype), half)
    product = graph.add("Mul", graph.add("Sinh", x), graph.add("Exp", x))
    return graph.add("Div", product, half)


def _logarithm_plus_one(step: Step, x: Any) -> Value:
    """Exact near 0 as well: 2 · atanh(x / (2 + x)) up to 1."""
    graph, x = step.graph, step.read(x, step.dtype)
    one, two = step.read(1.0, step.dtype), step.read(2.0, step.dtype)
    small = graph.add("Min", x, one)
    near = graph.add("Mul", graph.add("Atanh", graph.add("Div", small, graph.add("Add", small, two))), two)
    return graph.add(
        "Where",
        graph.add("Less", x, one, dtype="bool"),
        near,
        graph.add("Log", graph.add("Add", x, one)),
        dtype=step.dtype,
    )


def _relu(step: Step, x: Any) -> Value:
    op, value = step.operation, step.read(x, step.number)
    if op.threshold or (op.negative_slope and op.max_value is not None):
        raise UnsupportedError("ReLU with a threshold, or with a slope and a maximum")
    if op.negative_slope:
        return step.graph.add("LeakyRelu", value, alpha=float(op.negative_slope))
    return step.graph.add("Relu", value) if op.max_value is None else _clip_to(step, value, 0.0, op.max_value)


def _clip_to(step: Step, x: Value, low: Any, high: Any) -> Value:
    return step.graph.add("Clip", x, step.read(low, x.dtype), step.read(high, x.dtype))


def _leaky_relu(step: Step, x: Any) -> Value:
    slope = float(step.operation.negative_slope)
    return step.graph.add("LeakyRelu", step.read(x, step.dtype), alpha=slope)


def _elu(step: Step, x: Any) -> Value:
    return step.graph.add("Elu", step.read(x, step.dtype), alpha=float(step.operation.alpha))


def _silu(step: Step, x: Any) -> Value:
    value = step.read(x, step.dtype)
    return step.graph.add("Mul", value, step.graph.add("Sigmoid", value))


def _gelu(step: Step, x: Any) -> Value:
    graph, value = step.graph, step.read(x, step.dtype)
    if step.operation.approximate:
        cube = graph.add("Mul", graph.add("Mul", value, value), value)
        cube = graph.add("Mul", cube, step.read(0.044715, step.dtype))
        inner = graph.add("Mul", graph.add("Add", value, cube), step.read(math.sqrt(2 / math.pi), step.dtype))
        share = graph.add("Tanh", inner)
    else:
        share = graph.add("Erf", graph.add("Mul", value, step.read(math.sqrt(0.5), step.dtype)))
    half = graph.add("Mul", value, step.read(0.5, step.dtype))
    return graph.add("Mul", half, graph.add("Add", share, step.read(1.0, step.dtype)))


def _softmax(kind: str) -> Converter:
    def convert(step: Step, x: Any) -> Value:
        axis = step.operation.axis
        axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
        if not isinstance(axis, int):
            raise UnsupportedError(f"axis={axis}")
        return step.graph.add(kind, step.read(x, step.dtype), axis=axis)

    return convert


def _clip(step: Step, x: Any) -> Value:
    return _clip_to(step, step.read(x, step.number), step.operation.x_min, step.operation.x_max)


def _where(step: Step, condition: Any, x1: Any = None, x2: Any = None) -> Value:
    if x1 is None or x2 is None:
        raise UnsupportedError("where(…) with a condition alone")
    given = [step.read(each, step.number) for each in (x1, x2)]
    return step.graph.add("Where", step.read(condition, "bool"), *given, dtype=step.number)


def _concatenate(step: Step, xs: Sequence[Any]) -> Value:
    values = [step.read(each, step.dtype) for each in xs]
    return step.graph.add("Concat", *values, axis=step.operation.axis)


def _stack(step: Step, x: Sequence[Any]) -> Value:
    axis = step.operation.axis % len(step.shape)
    values = [step.read(each, step.dtype) for each in x]
    values = [step.graph.add("Unsqueeze", each, step.graph.integers(axis)) for each in values]
    return step.graph.add("Concat", *values, axis=axis)


def _expand_dims(step: Step, x: Any) -> Value:
    axis = step.operation.axis
    axes = [each % len(step.shape) for each in ((axis,) if isinstance(axis, int) else axis)]
    return step.graph.add("Unsqueeze", step.read(x), step.graph.integers(*axes))


def _squeeze(step: Step, x: Any) -> Value:
    value, axis = step.read(x), step.operation.axis
    if axis is None:
        axis = [number for number, dim in enumerate(value.shape) if dim == 1]
    axes = [each % value.rank for each in ((axis,) if isinstance(axis, int) else axis)]
    return step.graph.add("Squeeze", value, step.graph.integers(*axes)) if axes else value


def _reshape(step: Step, x: Any) -> Value:
    """Rows vary, and one more dimension may."""
    value = step.read(x)
    dims = [-1 if each is None else each for each in step.shape]
    if dims.count(-1) > 1 and dims[0] == -1 and value.rank and value.shape[0] is None:
        dims[0] = 0
    if dims.count(-1) > 1:
        raise UnsupportedError("reshape(…) to several dimensions that vary")
    return step.graph.reshape(value, *dims)


def _transpose(step: Step, x: Any) -> Value:
    value = step.read(x)
    axes = step.operation.axes
    return permute(step.graph, value, axes or range(value.rank)[::-1])


def permute(graph: OnnxGraph, value: Value, axes: Sequence[int]) -> Value:
    """Return a value with its axes in another order."""
    order = [each % value.rank for each in axes]
    return graph.add("Transpose", value, perm=order, shape=tuple(value.shape[each] for each in order))


def _swap_axes(step: Step, x: Any) -> Value:
    value = step.read(x)
    order = list(range(value.rank))
    one, other = (each % value.rank for each in (step.operation.axis1, step.operation.axis2))
    order[one], order[other] = other, one
    return permute(step.graph, value, order)


def _flip(step: Step, x: Any) -> Value:
    axis = step.operation.axis
    value = step.read(x)
    axes = range(value.rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return flip(step.graph, value, [each % value.rank for each in axes])


def flip(graph: OnnxGraph, value: Value, axes: Sequence[int]) -> Value:
    """Return a value with the order of some axes reversed."""
    count = len(axes)
    ends = [np.iinfo(np.int64).min] * count
    bounds = ([-1] * count, ends, axes, [-1] * count)
    return graph.add("Slice", value, *(graph.integers(*each) for each in bounds))


def _cumulate(step: Step, x: Any) -> Value:
    if step.operation.axis is None:
        raise UnsupportedError("cumsum(…) without an axis")
    value = step.read(x, step.number)
    axis = step.graph.constant(np.int64(step.operation.axis % value.rank))
    return step.graph.add("CumSum", value, axis)


def _get_item(step: Step, x: Any, key: Any) -> Value:
    graph, value = step.graph, step.read(x)
    keys = list(key) if isinstance(key, tuple) else [key]
    num_used = sum(each is not None and each is not Ellipsis for each in keys)
    rest: list[Any] = [slice(None)] * (value.rank - num_used)
    if any(each is Ellipsis for each in keys):
        place = next(number for number, each in enumerate(keys) if each is Ellipsis)
        keys[place : place + 1] = rest
    else:
        keys += rest
    cuts: list[tuple[int, int, int, int]] = []
    dropped, added, axis, made = [], [], 0, 0
    for each in keys:
        if each is None:
            added.append(made)
            made += 1
            continue
        if isinstance(each, slice):
            if each != slice(None):
                cuts.append((*_find_bounds(each), axis, 1 if each.step is None else int(each.step)))
            made += 1
        elif isinstance(each, int | np.integer):
            end = int(each) + 1 if each != -1 else np.iinfo(np.int64).max
            cuts.append((int(each), end, axis, 1))
            dropped.append(axis)
        else:
            raise UnsupportedError(f"x[{type(each).__name__}]")
        axis += 1
    if cuts:
        value = graph.add("Slice", value, *(graph.integers(*each) for each in zip(*cuts, strict=True)))
    if dropped:
        value = graph.add("Squeeze", value, graph.integers(*dropped))
    return graph.add("Unsqueeze", value, graph.integers(*added)) if added else value


def _find_bounds(part: slice) -> tuple[int, int]:
    is_forward = part.step is None or part.step > 0
    limits = np.iinfo(np.int64)
    start = part.start if part.start is not None else 0 if is_forward else limits.max
    stop = part.stop if part.stop is not None else limits.max if is_forward else limits.min
    return int(start), int(stop)


def _take(step: Step, x: Any, indices: Any) -> Value:
    if step.operation.axis is None:
        raise UnsupportedError("take(…) without an axis")
    found = step.read(indices)
    if found.dtype not in ("int32", "int64"):
        found = step.graph.cast(found, "int32")
    value = step.read(x, step.dtype)
    return step.graph.add("Gather", value, found, axis=step.operation.axis % value.rank)


def _pad(step: Step, x: Any, constant_values: Any = None) -> Value:
    if step.operation.mode != "constant":
        raise UnsupportedError(f"pad(mode={step.operation.mode!r})")
    value = step.read(x, step.number)
    pairs = np.broadcast_to(np.asarray(step.operation.pad_width), (value.rank, 2))
    filler = step.read(0 if constant_values is None else constant_values, step.number)
    sides = step.graph.integers(*(int(each) for each in pairs.T.reshape(-1)))
    return step.graph.add("Pad", value, sides, filler)


def _einsum(step: Step, *operands: Any) -> Value:
    values = [step.read(each, step.number) for each in operands]
    return step.graph.add("Einsum", *values, equation=step.operation.subscripts)


def _normalize_batch(
    step: Step, x: Any, mean: Any, variance: Any, offset: Any = None, scale: Any = None
) -> Value:
    """As Keras computes it: x · factor + rest, with constants for both."""
    value, axis = step.read(x, step.dtype), step.operation.axis
    factor = 1 / np.sqrt(read_array(variance) + np.float32(step.operation.epsilon))
    if scale is not None:
        factor = factor * read_array(scale)
    rest = -read_array(mean) * factor
    if offset is not None:
        rest = rest + read_array(offset)
    shape = [1] * value.rank
    shape[axis] = -1
    both = [step.read(each.reshape(shape), step.dtype) for each in (factor, rest)]
    return step.graph.add("Add", step.graph.add("Mul", value, both[0]), both[1])


def _normalize_layer(step: Step, x: Any, gamma: Any = None, beta: Any = None) -> Value:
    op, value = step.operation, step.read(x, step.dtype)
    axes = sorted(each % value.rank for each in ((op.axis,) if isinstance(op.axis, int) else op.axis))
    if op.rms_scaling or axes != list(range(axes[0], value.rank)):
        raise UnsupportedError("layer normalization of axes that are not the last, or with rms_scaling")
    if gamma is None:
        gamma = np.ones([value.shape[each] or 1 for each in axes], np.float32)
    weights = [step.read(each, step.dtype) for each in (gamma, beta) if each is not None]
    epsilon = keras.backend.epsilon() if op.epsilon is None else op.epsilon
    return step.graph.add("LayerNormalization", value, *weights, axis=axes[0], epsilon=float(epsilon))


OPERATIONS: Final[Mapping[str, Converter]] = {
    **{name: _unary(name) for name in ("Cos", "Erf", "Exp", "Floor", "Identity", "Log", "Sigmoid", "Sign")},
    **{name: _unary(name) for name in ("Ceil", "Reciprocal", "Relu", "Selu", "Sin", "Softplus", "Softsign")},
    **{name: _unary(name) for name in ("Sqrt", "Tanh", "Sinh", "Cosh", "Atanh")},
    **{name: _binary(kind) for name, kind in (("Add", "Add"), ("Subtract", "Sub"), ("Multiply", "Mul"))},
    **{name: _binary(kind) for name, kind in (("TrueDivide", "Div"), ("Divide", "Div"), ("Power", "Pow"))},
    **{name: _binary(kind) for name, kind in (("Maximum", "Max"), ("Minimum", "Min"))},
    **{name: _reduction(f"Reduce{name}") for name in ("Sum", "Mean", "Max", "Min", "Prod")},
    "Absolute": _unary("Abs"),
    "Abs": _unary("Abs"),
    "All": _truth("ReduceMin"),
    "Any": _truth("ReduceMax"),
    "BatchNorm": _normalize_batch,
    "Cast": _cast,
    "Clip": _clip,
    "Concatenate": _concatenate,
    "Cumsum": _cumulate,
    "Einsum": _einsum,
    "Elu": _elu,
    "Equal": _comparison("Equal"),
    "ExpandDims": _expand_dims,
    "Expm1": _exponential_less_one,
    "Flip": _flip,
    "FloorDivide": _floor_divide,
    "Gelu": _gelu,
    "GetItem": _get_item,
    "Greater": _comparison("Greater"),
    "GreaterEqual": _comparison("Less", is_inverted=True),
    "HardSigmoid": _unary("HardSigmoid", alpha=1 / 6, beta=0.5),
    "HardSilu": _unary("HardSwish"),
    "LayerNorm": _normalize_layer,
    "LeakyRelu": _leaky_relu,
    "Less": _comparison("Less"),
    "LessEqual": _comparison("Greater", is_inverted=True),
    "Log1p": _logarithm_plus_one,
    "LogSoftmax": _softmax("LogSoftmax"),
    "LogicalAnd": _logical("And"),
    "LogicalNot": _logical("Not"),
    "LogicalOr": _logical("Or"),
    "LogicalXor": _logical("Xor"),
    "Matmul": _binary("MatMul"),
    "Mod": _modulo,
    "Negative": _unary("Neg"),
    "NotEqual": _comparison("Equal", is_inverted=True),
    "Pad": _pad,
    "ReLU": _relu,
    "Relu6": lambda step, x: _clip_to(step, step.read(x, step.dtype), 0.0, 6.0),
    "Reshape": _reshape,
    "Rsqrt": _inverse_root,
    "Silu": _silu,
    "Softmax": _softmax("Softmax"),
    "Square": _square,
    "Squeeze": _squeeze,
    "Stack": _stack,
    "Swapaxes": _swap_axes,
    "Take": _take,
    "Transpose": _transpose,
    "Where": _where,
}
"""Operations of Keras by the names of their classes."""
