"""An ONNX graph that grows node by node.

In: names of ONNX operators, values and constants. Out: a `ModelProto` whose inputs are the inputs of a model
alone: weights and all other constants are in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Shape: TypeAlias = tuple[int | None, ...]

# Of 2023: runtimes of the last years read it, and it has all operators that are needed.
OPSET: Final = 18
_FORMAT: Final = 8  # version of the file format that belongs to the opset
ROWS: Final = "rows"
"""Name of the first dimension of all inputs and outputs."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a graph, with the name of its type in NumPy; dimensions that vary are None."""

    name: str
    dtype: str
    shape: Shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


class OnnxGraph:
    """An ONNX graph with some inputs, to which nodes are added.

    Attributes:
        inputs: Inputs by name.
        scope: Prefix of the names of new nodes, for readers of the graph.
    """

    def __init__(self, inputs: Mapping[str, tuple[str, Shape]], outputs: Sequence[str]) -> None:
        self.inputs = {name: Value(name, dtype, shape) for name, (dtype, shape) in inputs.items()}
        self.scope = ""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._known: dict[Hashable, tuple[Value, Any]] = {}
        self._names = {*inputs, *outputs}

    def add(
        self,
        kind: str,
        *inputs: Value | None,
        dtype: str | None = None,
        shape: Shape | None = None,
        **attributes: Any,
    ) -> Value:
        """Add a node with one output.

        `inputs`: inputs of the node; None for optional ones that are left out. `dtype`: type of the output;
        by default the type of the first input. `shape`: shape of the output; by default the shape of the
        first input.
        """
        return self.add_many(kind, inputs, (True,), dtype=dtype, shape=shape, **attributes)[0]

    def add_many(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        wanted: Sequence[bool],
        *,
        dtype: str | None = None,
        shape: Shape | None = None,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node with several outputs of one type; return those that are `wanted`."""
        first = next(each for each in inputs if each is not None)
        made = [
            Value(self._name(kind), dtype or first.dtype, first.shape if shape is None else shape)
            if each
            else None
            for each in wanted
        ]
        names = ["" if each is None else each.name for each in inputs]
        outputs = ["" if each is None else each.name for each in made]
        node_name = next(each for each in outputs if each)
        self._nodes.append(helper.make_node(kind, names, outputs, name=node_name, **attributes))
        return [each for each in made if each is not None]

    def constant(
        self, array: Any, dtype: str | None = None, name: str = "constant", owner: object = None
    ) -> Value:
        """Add a constant.

        `dtype`: type of the constant; by default the type of the numbers. `owner`: object that the numbers
        belong to, such as a weight; its numbers are stored once.
        """
        values: NDArray[Any] = np.asarray(array)
        values = np.ascontiguousarray(values.astype(dtype or values.dtype)).reshape(values.shape)
        key: Hashable = (id(owner), str(values.dtype))
        if owner is None:
            key = (values.dtype.str, values.shape, values.tobytes()) if values.size <= _SMALL else None
        if key is not None and key in self._known:
            return self._known[key][0]
        value = Value(self._name(name), str(values.dtype), values.shape)
        self._constants.append(numpy_helper.from_array(values, value.name))
        if key is not None:
            self._known[key] = value, owner  # the owner is kept, so that no other object gets its id
        return value

    def integers(self, *numbers: int) -> Value:
        """Add a constant vector of int64, as axes and shapes are passed to operators."""
        return self.constant(np.array(numbers, np.int64))

    def cast(self, value: Value, dtype: str) -> Value:
        """Return a value of another type."""
        if value.dtype == dtype:
            return value
        return self.add("Cast", value, dtype=dtype, to=_find_type(dtype))

    def reshape(self, value: Value, *dims: int) -> Value:
        """Return a value of another shape: 0 for a dimension that is kept, -1 for one that is found."""
        shape = tuple(None if each < 1 else each for each in dims)
        return self.add("Reshape", value, self.integers(*dims), shape=shape)

    def finish(self, outputs: Mapping[str, Value], name: str, version: str) -> onnx.ModelProto:
        """Return the model."""
        nodes = list(self._nodes)
        described = []
        for output, value in outputs.items():
            nodes.append(helper.make_node("Identity", [value.name], [output], name=output))
            described.append(_describe(output, value.dtype, value.shape))
        graph = helper.make_graph(
            nodes,
            name,
            [_describe(each.name, each.dtype, each.shape) for each in self.inputs.values()],
            described,
            self._constants,
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=_FORMAT,
            producer_name="penstock",
            producer_version=version,
        )

    def _name(self, text: str) -> str:
        stem = f"{self.scope}/{text}" if self.scope else text
        name, number = stem, 1
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name


_SMALL: Final = 64  # numbers; constants of at most this size are compared, and stored once


def _find_type(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _describe(name: str, dtype: str, shape: Shape) -> onnx.ValueInfoProto:
    """Return the description of an input or output; dimensions that vary have names."""
    dims = [
        each if each is not None else ROWS if axis == 0 else f"{name}_{axis}"
        for axis, each in enumerate(shape)
    ]
    return helper.make_tensor_value_info(name, _find_type(dtype), dims)
