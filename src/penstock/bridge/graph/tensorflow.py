"""Run a program by calling TensorFlow.

In: the statements of a program. Out: the values that it binds. Names are looked up in the scope of the
program and attributes on their owner: no code is evaluated from text.
"""

from __future__ import annotations

import operator
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

import tensorflow as tf

from penstock.foundation.program import (
    Attribute,
    Bind,
    Call,
    Constant,
    DefineConstant,
    DefineFunction,
    DictNode,
    Execute,
    If,
    Lambda,
    ListNode,
    Name,
    Node,
    Operation,
    Return,
    Slice,
    Statement,
    Subscript,
)

Scope: TypeAlias = MutableMapping[str, Any]

_SIGNS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "&": operator.and_,
    "|": operator.or_,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_PREFIXES: Final[dict[str, Callable[[Any], Any]]] = {"-": operator.neg, "~": operator.invert}


def make_dataset(statements: Iterable[Statement]) -> tf.data.Dataset:
    """Run a program and return its `tf.data.Dataset`."""
    return run_program(statements)["dataset"]


def run_program(statements: Iterable[Statement]) -> Scope:
    """Run a program and return the values of its names."""
    scope: Scope = {"tf": tf, "len": len}
    _run(statements, scope)
    return scope


def _run(statements: Iterable[Statement], scope: Scope) -> Any:
    """Run statements; return the value of the `Return` among them."""
    for statement in statements:
        if isinstance(statement, Bind):
            value = _evaluate(statement.value, scope)
            if len(statement.names) == 1:
                scope[statement.names[0]] = value
            else:
                scope.update(zip(statement.names, value, strict=True))
        elif isinstance(statement, DefineConstant):
            scope[statement.name] = _evaluate(statement.value, scope)
        elif isinstance(statement, Execute):
            _evaluate(statement.value, scope)
        elif isinstance(statement, DefineFunction):
            scope[statement.name] = _make_function(statement.parameters, statement.body, scope)
        elif isinstance(statement, If):
            is_true = _evaluate(statement.condition, scope)
            _run(statement.then if is_true else statement.otherwise, scope)
        elif isinstance(statement, Return):
            return _evaluate(statement.value, scope)
    return None


def _make_function(parameters: tuple[str, ...], body: tuple[Statement, ...], scope: Scope) -> Any:
    def call(*arguments: Any) -> Any:
        values = dict(zip(parameters, arguments, strict=True))
        return _run(body, ChainMap(values, scope))

    # It contains no Python control flow over tensors that AutoGraph would have to rewrite.
    return tf.autograph.experimental.do_not_convert(call)


def _evaluate(node: Node | Slice, scope: Scope) -> Any:
    return _EVALUATIONS[type(node)](node, scope)


def _call(node: Call, scope: Scope) -> Any:
    arguments = [_evaluate(each, scope) for each in node.arguments]
    keywords = {name: _evaluate(each, scope) for name, each in node.keywords}
    return _evaluate(node.function, scope)(*arguments, **keywords)


def _look_up(node: Subscript, scope: Scope) -> Any:
    keys = tuple(_evaluate(each, scope) for each in node.keys)
    return _evaluate(node.owner, scope)[keys if len(keys) > 1 else keys[0]]


def _operate(node: Operation, scope: Scope) -> Any:
    right = _evaluate(node.right, scope)
    if node.left is None:
        return _PREFIXES[node.sign](right)
    return _SIGNS[node.sign](_evaluate(node.left, scope), right)


def _list(node: ListNode, scope: Scope) -> Any:
    items = [_evaluate(each, scope) for each in node.items]
    return tuple(items) if node.is_tuple else items


def _slice(node: Slice, scope: Scope) -> slice:
    return slice(*(None if end is None else _evaluate(end, scope) for end in (node.start, node.stop)))


_EVALUATIONS: Final[dict[type, Callable[[Any, Scope], Any]]] = {
    Constant: lambda node, _: node.value,
    Name: lambda node, scope: scope[node.text],
    Attribute: lambda node, scope: getattr(_evaluate(node.owner, scope), node.name),
    Call: _call,
    Subscript: _look_up,
    Operation: _operate,
    ListNode: _list,
    DictNode: lambda node, scope: {_evaluate(key, scope): _evaluate(item, scope) for key, item in node.items},
    Lambda: lambda node, scope: _make_function(node.parameters, (Return(node.body),), scope),
    Slice: _slice,
}
