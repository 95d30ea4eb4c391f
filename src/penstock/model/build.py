"""Build the model for a pipeline.

In: a schema, a fitted pipeline, options. Out: a `keras.Model` whose inputs and outputs are named. The
statements of its description are executed one by one: names are looked up in a table, no text is evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import keras

from penstock.errors import OptionError
from penstock.foundation.program import (
    Attribute,
    Bind,
    Call,
    Constant,
    DictNode,
    ListNode,
    Name,
    Node,
    Operation,
    Return,
    Slice,
    Statement,
    Subscript,
)
from penstock.model.design import design_model
from penstock.model.options import ModelOptions
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

_MODULES: Final[Mapping[str, Any]] = {
    "keras": keras,
    "layers": keras.layers,
    "ops": keras.ops,
    "applications": keras.applications,
    "initializers": keras.initializers,
    "regularizers": keras.regularizers,
}
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    ">": operator.gt,
}


def build_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None = None) -> keras.Model:
    """Build the model for the inputs and targets of a pipeline.

    The model takes a dict with one array per input of the pipeline, and returns an array for one target, or a
    dict for several: probabilities of classes, or numbers as scaled in the batches.

    Args:
        schema: Schema of the data.
        pipeline: Pipeline fitted to data with this schema.
        options: Encoders and sizes.

    Raises:
        OptionError: There is no input or no target, or one that is not supported.
        UnknownNameError: The schema lacks a field that the pipeline reads.
        SchemaError: A field has another type than the pipeline was fitted to.

    Example:
        >>> import penstock as ps
        >>> pets = ps.open("pets/", target="adopted")
        >>> model = build_model(pets.schema, ps.Pipeline.fit(pets))
        >>> model.output_shape
        (None, 1)
    """
    chosen = (options or ModelOptions()).resolved()
    model = run_statements(design_model(schema, pipeline, chosen))
    model.built_from = chosen  # a run stores these options to rebuild the model, and no code
    return model


def run_statements(statements: Iterable[Statement]) -> keras.Model:
    """Execute the statements of a description, and return the model."""
    scope: dict[str, Any] = dict(_MODULES)
    for statement in statements:
        if isinstance(statement, Bind):
            _bind(statement.names[0], _evaluate(statement.value, scope), scope)
        elif isinstance(statement, Return):
            return _evaluate(statement.value, scope)
    raise TypeError("the description of a model does not return a model")


def _bind(name: str, value: Any, scope: dict[str, Any]) -> None:
    owner, _, attribute = name.rpartition(".")
    if owner:
        setattr(scope[owner], attribute, value)
    else:
        scope[name] = value


def _evaluate(node: Node | Slice, scope: Mapping[str, Any]) -> Any:
    return _EVALUATIONS[type(node)](node, scope)


def _call(node: Call, scope: Mapping[str, Any]) -> Any:
    arguments = [_evaluate(each, scope) for each in node.arguments]
    keywords = {name: _evaluate(each, scope) for name, each in node.keywords}
    function = node.function
    if isinstance(function, Attribute) and function.owner == Name("applications"):
        return _make_backbone(function.name, keywords)
    return _evaluate(function, scope)(*arguments, **keywords)


def _make_backbone(name: str, keywords: dict[str, Any]) -> keras.Model:
    try:
        return getattr(keras.applications, name)(**keywords)
    except (ValueError, OSError) as error:  # images that are too small, or weights of another model
        raise OptionError(
            f"image of ModelOptions: {name} for images of {keywords['input_shape']}",
            field="image",
            expected="images and weights that fit the model",
            got=str(error).strip().splitlines()[0].rstrip("."),
            advice="Use another image size, such as Image(size=224), or image='resnet'.",
        ) from error


def _index(node: Subscript, scope: Mapping[str, Any]) -> Any:
    keys = tuple(_evaluate(each, scope) for each in node.keys)
    return _evaluate(node.owner, scope)[keys if len(keys) > 1 else keys[0]]


def _operate(node: Operation, scope: Mapping[str, Any]) -> Any:
    if node.left is None:
        raise TypeError(f"unary operator {node.sign!r} is not supported")
    return _OPERATORS[node.sign](_evaluate(node.left, scope), _evaluate(node.right, scope))


def _list(node: ListNode, scope: Mapping[str, Any]) -> Any:
    items = [_evaluate(each, scope) for each in node.items]
    return tuple(items) if node.is_tuple else items


def _slice(node: Slice, scope: Mapping[str, Any]) -> slice:
    return slice(*(None if end is None else _evaluate(end, scope) for end in (node.start, node.stop)))


_EVALUATIONS: Final[Mapping[type, Callable[[Any, Mapping[str, Any]], Any]]] = {
    Constant: lambda node, _: node.value,
    Name: lambda node, scope: scope[node.text],
    Attribute: lambda node, scope: getattr(_evaluate(node.owner, scope), node.name),
    Call: _call,
    Subscript: _index,
    Operation: _operate,
    ListNode: _list,
    DictNode: lambda node, scope: {_evaluate(key, scope): _evaluate(item, scope) for key, item in node.items},
    Slice: _slice,
}
