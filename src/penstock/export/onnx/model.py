"""Convert a Keras model to ONNX.

In: a model whose layers are known, functional or `Sequential`, on any backend. Out: an ONNX model with the
same inputs and one output per target. Layers are taken apart into the operations of `keras.ops` that they
call, so that layers of users are converted too as long as they use these operations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import keras
import onnx
from keras.src.models.functional import Functional

from penstock.bridge.keras_model import name_model
from penstock.errors import OptionError
from penstock.export.onnx.graph import OnnxGraph, Value
from penstock.export.onnx.layers import SPATIAL_OPERATIONS, find_converter
from penstock.export.onnx.operations import OPERATIONS, Converter, Step, UnsupportedError
from penstock.model.signature import find_inputs, find_outputs, is_graph, name_outputs

_OPERATIONS: Final[Mapping[str, Converter]] = {**OPERATIONS, **SPATIAL_OPERATIONS}
_ADVICE: Final = "Export a bundle, which runs the model with Keras: `format='bundle'`."
_PRECISIONS: Final = ("float32", "float64")
_LARGEST: Final = 1 << 30  # bytes of weights in the file itself; protobuf ends at two gigabytes


def write_model(
    model: keras.Model, targets: Sequence[str], path: Path, inputs: Collection[str] = ()
) -> dict[str, Any]:
    """Write a Keras model as an ONNX file; return a description of its inputs and outputs, as JSON.

    The weights of large models are in a second file, whose name ends with `.data`.

    `inputs`: names of the inputs of the pipeline. A single name also matches an input without a name.
    """
    made = convert_model(model, targets, inputs)
    is_large = sum(len(each.raw_data) for each in made.graph.initializer) > _LARGEST
    onnx.save_model(made, path, save_as_external_data=is_large, location=f"{path.name}.data")
    onnx.checker.check_model(path, full_check=True)
    return {
        "opset": made.opset_import[0].version,
        "inputs": {each.name: _describe(each) for each in made.graph.input},
        "outputs": {each.name: _describe(each) for each in made.graph.output},
    }


def _describe(value: onnx.ValueInfoProto) -> str:
    """Return the type and the shape of an input or output as a text."""
    tensor = value.type.tensor_type
    dims = [each.dim_param or str(each.dim_value) for each in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return f"{dtype} ({', '.join(dims)})"


def convert_model(
    model: keras.Model, targets: Sequence[str], inputs: Collection[str] = ()
) -> onnx.ModelProto:
    """Return a Keras model as an ONNX model, with outputs named after the targets."""
    taken = find_inputs(model, inputs)
    if taken is None or not is_graph(model):
        raise OptionError(
            f"{name_model(model)} as ONNX",
            expected="a functional or Sequential model, whose layers are known",
            got=f"the class {type(model).__name__}",
            advice=_ADVICE,
        )
    for name, each in taken.items():
        if each.dtype == "string":
            raise OptionError(
                f"input {name!r} of {name_model(model)}",
                field=name,
                expected="numbers: ONNX has no lookup of strings",
                got="strings",
                advice="Use ps.transform.Encode for the field, and an integer input.",
            )
    graph = OnnxGraph({name: (each.dtype, tuple(each.shape)) for name, each in taken.items()}, targets)
    values = {id(each): graph.inputs[name] for name, each in taken.items()}
    function = _find_function(model)
    found = _Conversion(graph).run(function, [values[id(each)] for each in function.inputs])
    by_tensor = dict(zip(map(id, function.outputs), found, strict=True))
    named = name_outputs(model, targets, find_outputs(model))
    outputs = {name: graph.cast(by_tensor[id(each)], "float32") for name, each in named.items()}
    return graph.finish(outputs, model.name, version("penstock"))


def _find_function(model: Any) -> Any:
    """Return the graph of operations of a model."""
    return model._functional if isinstance(model, keras.Sequential) else model


class _Conversion:
    """The conversion of one model: nodes of Keras, in their order, to nodes of ONNX."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph
        self._layers: list[Any] = []  # that the current operation is inside of

    def run(self, function: Any, inputs: Sequence[Value]) -> list[Value]:
        """Convert a graph of operations; return the values of its outputs."""
        found = {id(each): value for each, value in zip(function.inputs, inputs, strict=True)}
        for depth in sorted(function._nodes_by_depth, reverse=True):
            for node in function._nodes_by_depth[depth]:
                if node.is_input or not node.operation:
                    continue
                if any(id(each) not in found for each in node.input_tensors):
                    continue  # it belongs to another call of a shared layer
                arguments, keywords = node.arguments.fill_in(found)
                values = self._convert(node, arguments, keywords)
                found |= {id(each): value for each, value in zip(node.outputs, values, strict=True)}
        return [found[id(each)] for each in function.outputs]

    def _convert(self, node: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Value]:
        operation, outputs = node.operation, node.outputs
        if not isinstance(operation, keras.Layer):
            kind = type(operation).__name__
            is_known = type(operation).__module__.startswith("keras.src.") and kind in _OPERATIONS
            if not is_known:
                raise self._refuse(operation, f"the operation {kind}")
            return [self._apply(_OPERATIONS[kind], operation, outputs, arguments, keywords)]
        with self._inside(operation):
            self._check(operation, node.input_tensors)
            if isinstance(operation, Functional | keras.Sequential):
                function = _find_function(operation)
                return self.run(function, self._match(operation, function, arguments[0]))
            arguments, keywords = self._cast_floats(operation, arguments, keywords)
            known = {name: each for name, each in keywords.items() if name != "training"}
            converter = find_converter(operation)
            if converter is None:
                return self._take_apart(operation, outputs, arguments, known)
            return [self._apply(converter, operation, outputs, arguments, known)]

    def _apply(
        self,
        converter: Converter,
        operation: Any,
        outputs: Sequence[Any],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
    ) -> Value:
        first = outputs[0]
        step = Step(self._graph, operation, first.dtype, tuple(first.shape))
        try:
            value = converter(step, *arguments, **keywords)
        except UnsupportedError as error:
            raise self._refuse(operation, f"{type(operation).__name__}: {error}") from None
        return self._finish(value, first)

    def _finish(self, value: Value, tensor: Any) -> Value:
        """Return a value with the type and the shape that Keras has for it."""
        value = self._graph.cast(value, tensor.dtype)
        return Value(value.name, value.dtype, tuple(tensor.shape))

    def _take_apart(
        self, layer: Any, outputs: Sequence[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> list[Value]:
        """Call a layer on symbols, which gives the graph of its operations, and convert that."""
        symbols: dict[int, tuple[Any, Value]] = {}

        def make_symbol(given: Any) -> Any:
            if not isinstance(given, Value):
                return given
            made = symbols.get(id(given)) or (keras.KerasTensor(given.shape, dtype=given.dtype), given)
            return symbols.setdefault(id(given), made)[0]

        arguments, keywords = keras.tree.map_structure(make_symbol, (arguments, keywords))
        if layer._call_has_training_arg:
            keywords["training"] = False
        try:
            results = keras.tree.flatten(layer.call(*arguments, **keywords))
            values = {id(symbol): value for symbol, value in symbols.values()}
            computed = [each for each in results if id(each) not in values]
            # Inputs that no operation reads have no history, which Keras needs.
            used = [pair for pair in symbols.values() if hasattr(pair[0], "_keras_history")]
            function = keras.Function([each for each, _ in used], computed) if computed else None
        except Exception as error:  # layers fail in every way on symbols
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].partition(". ")[0]
            raise self._refuse(layer, f"a layer that does not consist of keras.ops: {reason}") from error
        if function is not None:
            found = self.run(function, [value for _, value in used])
            values |= {id(each): value for each, value in zip(computed, found, strict=True)}
        return [self._finish(values[id(each)], tensor) for each, tensor in zip(results, outputs, strict=True)]

    def _match(self, model: Any, function: Any, given: Any) -> list[Value]:
        """Return the values for the inputs of a model inside of a model, in the types that it declares."""
        taken = find_inputs(model)
        if isinstance(given, Mapping) and taken is not None:
            by_tensor = {id(each): given[name] for name, each in taken.items()}
            listed = [by_tensor[id(each)] for each in function.inputs]
        else:
            listed = keras.tree.flatten(given)
        values = []
        for value, tensor in zip(listed, function.inputs, strict=True):
            found = self._graph.cast(value, tensor.dtype)
            if value.rank == len(tensor.shape) + 1:
                found = self._graph.add("Squeeze", found, self._graph.integers(value.rank - 1))
            elif value.rank == len(tensor.shape) - 1:
                found = self._graph.add("Unsqueeze", found, self._graph.integers(value.rank))
            values.append(self._finish(found, tensor))
        return values

    def _cast_floats(
        self, layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Cast floats to the type of a layer, as Keras does before it calls the layer."""

        def cast(given: Any) -> Any:
            if isinstance(given, Value) and "float" in given.dtype and layer.autocast:
                return self._graph.cast(given, layer.compute_dtype)
            return given

        cast_all: tuple[tuple[Any, ...], dict[str, Any]] = keras.tree.map_structure(
            cast, (arguments, keywords)
        )
        return cast_all

    def _check(self, layer: Any, inputs: Sequence[Any]) -> None:
        if layer.compute_dtype not in _PRECISIONS:
            raise self._refuse(layer, f"the precision {layer.compute_dtype}")
        if getattr(layer, "quantization_mode", None) is not None:
            raise self._refuse(layer, f"quantization ({layer.quantization_mode})")
        # Keras passes masks of inputs as arguments, which are a part of the graph, but for these layers.
        hides_masks = isinstance(layer, keras.Model) or "query_mask" in layer.call_signature_parameters
        if hides_masks and any(getattr(each, "_keras_mask", None) is not None for each in inputs):
            raise self._refuse(
                layer, "inputs with a mask, as after Embedding(mask_zero=True); pass the mask as an argument"
            )

    @contextlib.contextmanager
    def _inside(self, layer: Any) -> Iterator[None]:
        before = self._graph.scope
        self._layers.append(layer)
        self._graph.scope = f"{before}/{layer.name}" if before else layer.name
        yield
        self._graph.scope = before
        self._layers.pop()

    def _refuse(self, operation: Any, got: str) -> OptionError:
        layer = next((each for each in reversed(self._layers)), operation)
        return OptionError(
            f"layer {layer.name!r} ({type(layer).__name__}) as ONNX",
            field=layer.name,
            expected="layers of operations that can be written as ONNX",
            got=got,
            advice=_ADVICE,
        )
