"""A program as code: Python reads from it the tree that was written."""

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.foundation.program import (
    Attribute,
    Bind,
    Call,
    Constant,
    DictNode,
    Lambda,
    ListNode,
    Name,
    Operation,
    Slice,
    Subscript,
)
from penstock.foundation.program_text import write_program

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
PREFIXES = {ast.USub: "-", ast.Invert: "~"}


def read(node: ast.AST) -> Any:  # noqa: PLR0911, PLR0912 - one case a kind
    """Return the tree that Python's own parser found."""
    match node:
        case ast.Name(id=name):
            return Name(name)
        case ast.Constant(value=value):
            return Constant(value)
        case ast.Attribute(value=owner, attr=name):
            return Attribute(read(owner), name)
        case ast.Call(func=function, args=arguments, keywords=keywords):
            named = tuple((each.arg, read(each.value)) for each in keywords)
            return Call(read(function), tuple(map(read, arguments)), named)
        case ast.Slice(lower=start, upper=stop):
            return Slice(start and read(start), stop and read(stop))
        case ast.Subscript(value=owner, slice=ast.Tuple(elts=keys)):
            return Subscript(read(owner), tuple(map(read, keys)))
        case ast.Subscript(value=owner, slice=key):
            return Subscript(read(owner), (read(key),))
        case ast.BinOp(left=left, op=sign, right=right):
            return Operation(SIGNS[type(sign)], read(left), read(right))
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            return Operation(SIGNS[type(sign)], read(left), read(right))
        case ast.UnaryOp(op=sign, operand=right):
            return Operation(PREFIXES[type(sign)], None, read(right))
        case ast.List(elts=items):
            return ListNode(tuple(map(read, items)))
        case ast.Tuple(elts=items):
            return ListNode(tuple(map(read, items)), is_tuple=True)
        case ast.Dict(keys=keys, values=values):
            return DictNode(tuple(zip(map(read, keys), map(read, values), strict=True)))
        case ast.Lambda(args=parameters, body=body):
            return Lambda(tuple(each.arg for each in parameters.args), read(body))
    raise AssertionError(ast.dump(node))


names = st.sampled_from(["a", "tf", "a_rather_long_name_of_something", "x1"])
constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**70),
    st.floats(0, allow_infinity=False),
    st.text(max_size=12),
    st.binary(max_size=12),
)
leaves = st.one_of(names.map(Name), constants.map(Constant))


def grow(nodes: Any) -> Any:
    several = st.lists(nodes, max_size=4).map(tuple)
    named = st.lists(st.tuples(names, nodes), max_size=3, unique_by=lambda item: item[0]).map(tuple)
    keys = st.one_of(nodes, st.builds(Slice, st.none() | nodes, st.none() | nodes))
    return st.one_of(
        st.builds(Attribute, nodes, names),
        st.builds(Call, nodes, several, named),
        st.builds(Subscript, nodes, st.lists(keys, min_size=2, max_size=3).map(tuple)),
        st.builds(Subscript, names.map(Name), st.tuples(names.map(Name))),
        st.builds(Operation, st.sampled_from(list(SIGNS.values())), nodes, nodes),
        st.builds(Operation, st.sampled_from(list(PREFIXES.values())), st.none(), nodes),
        st.builds(ListNode, several, st.booleans()),
        st.builds(DictNode, st.lists(st.tuples(nodes, nodes), max_size=3).map(tuple)),
        st.builds(Lambda, st.lists(names, max_size=2, unique=True).map(tuple), nodes),
    )


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of a large tree, nobody asked for it
@settings(max_examples=100)
@given(st.recursive(leaves, grow, max_leaves=8))
def test_python_reads_from_code_the_tree_that_was_written(node):
    code = write_program([Bind(("x",), node)], "Words.", [])
    (statement,) = ast.parse(code).body[1:]
    assert isinstance(statement, ast.Assign)
    assert read(statement.value) == node
