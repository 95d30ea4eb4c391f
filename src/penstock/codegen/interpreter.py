"""Run generated code by walking its syntax tree.

In: statements, and the values of the names that they use. Out: the value that they return, and the names that
they bind. Names are looked up in a scope and attributes on their owner: no text is evaluated.
"""

from __future__ import annotations

import ast
import operator
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from penstock.codegen.program import Comment

Scope: TypeAlias = MutableMapping[str, Any]
_Function: TypeAlias = Callable[..., Any]

_OPERATORS: Final[Mapping[type, _Function]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}


def _return_unchanged(function: _Function) -> _Function:
    return function


@dataclass(frozen=True)
class Interpreter:
    """Runs statements in a scope.

    Attributes:
        scope: Values of the names that the code may use; names that it binds are added.
        wrap: Makes of each function of the code the function that is called.
    """

    scope: Scope
    wrap: Callable[[_Function], _Function] = _return_unchanged

    def run(self, statements: Iterable[ast.stmt]) -> Any:
        """Run statements; return the value of the first `return`, or None."""
        listed = list(statements)
        for number, statement in enumerate(listed, start=1):
            match statement:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self.evaluate(value))
                case ast.Expr(value=value):
                    self.evaluate(value)
                case ast.FunctionDef(name=name, args=parameters, body=body):
                    self.scope[name] = self._make_function(parameters, body)
                case ast.If(test=test, body=body, orelse=otherwise):
                    return self.run([*(body if self.evaluate(test) else otherwise), *listed[number:]])
                case ast.Return(value=ast.expr() as value):
                    return self.evaluate(value)
                case Comment():
                    pass
                case _:
                    raise TypeError(f"generated code has no {type(statement).__name__}")
        return None

    def evaluate(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        evaluate = _EVALUATIONS.get(type(node))
        if evaluate is None:
            raise TypeError(f"generated code has no {type(node).__name__}")
        return evaluate(self, node)

    def _assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
            case ast.Attribute(value=owner, attr=name):
                setattr(self.evaluate(owner), name, value)
            case ast.Tuple(elts=targets):
                for each, item in zip(targets, value, strict=True):
                    self._assign(each, item)
            case _:
                raise TypeError(f"generated code has no {type(target).__name__} that is assigned")

    def _make_function(self, parameters: ast.arguments, body: Iterable[ast.stmt]) -> _Function:
        names = [each.arg for each in parameters.args]

        def call(*arguments: Any) -> Any:
            values = dict(zip(names, arguments, strict=True))
            return replace(self, scope=ChainMap(values, self.scope)).run(body)

        return self.wrap(call)

    def _call(self, node: ast.Call) -> Any:
        arguments = [self.evaluate(each) for each in node.args]
        keywords = {str(each.arg): self.evaluate(each.value) for each in node.keywords}
        return self.evaluate(node.func)(*arguments, **keywords)

    def _operate(self, sign: ast.AST, *operands: ast.expr) -> Any:
        return _OPERATORS[type(sign)](*map(self.evaluate, operands))

    def _list(self, items: Iterable[ast.expr]) -> list[Any]:
        return [self.evaluate(each) for each in items]

    def _slice(self, node: ast.Slice) -> slice:
        return slice(*(None if end is None else self.evaluate(end) for end in (node.lower, node.upper)))


_EVALUATIONS: Final[Mapping[type, Callable[[Interpreter, Any], Any]]] = {
    ast.Constant: lambda _, node: node.value,
    ast.Name: lambda this, node: this.scope[node.id],
    ast.Attribute: lambda this, node: getattr(this.evaluate(node.value), node.attr),
    ast.Call: Interpreter._call,
    ast.Subscript: lambda this, node: this.evaluate(node.value)[this.evaluate(node.slice)],
    ast.Slice: Interpreter._slice,
    ast.BinOp: lambda this, node: this._operate(node.op, node.left, node.right),
    ast.Compare: lambda this, node: this._operate(node.ops[0], node.left, node.comparators[0]),
    ast.UnaryOp: lambda this, node: this._operate(node.op, node.operand),
    ast.List: lambda this, node: this._list(node.elts),
    ast.Tuple: lambda this, node: tuple(this._list(node.elts)),
    ast.Dict: lambda this, node: dict(zip(this._list(node.keys), this._list(node.values), strict=True)),
    ast.Lambda: lambda this, node: this._make_function(node.args, [ast.Return(node.body)]),
}
