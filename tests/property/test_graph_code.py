"""A program as code: Python reads from it the tree that was written."""

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.codegen.program import StatementBlock, Term, function, lift
from penstock.codegen.program_text import write_program

BINARY = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.BitAnd, ast.BitOr]
COMPARISONS = [ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq]
PREFIXES = [ast.USub, ast.Invert]

names = st.sampled_from(["a", "tf", "a_rather_long_name_of_something", "x1"])
constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**70),
    st.floats(0, allow_infinity=False),
    st.text(max_size=12),
    st.binary(max_size=12),
)
leaves = st.one_of(names.map(Term.name), constants.map(lambda value: Term(lift(value))))


def make_lambda(parameters: list[str], body: Term) -> Term:
    return function(*parameters, body=lambda *_: body)


def join(sign: type[ast.AST], left: Term, right: Term) -> Term:
    if sign in COMPARISONS:
        return Term(ast.Compare(left.node, [sign()], [right.node]))
    return Term(ast.BinOp(left.node, sign(), right.node))


def grow(terms: Any) -> Any:
    several = st.lists(terms, max_size=4)
    ends = st.none() | terms
    keys = st.one_of(terms, st.builds(slice, ends, ends))
    return st.one_of(
        st.builds(getattr, terms, names),
        st.builds(
            lambda made, given, named: made(*given, **named),
            terms,
            several,
            st.dictionaries(names, terms, max_size=3),
        ),
        st.builds(lambda made, given: made[given], terms, st.lists(keys, min_size=1, max_size=3).map(tuple)),
        st.builds(join, st.sampled_from([*BINARY, *COMPARISONS]), terms, terms),
        st.builds(lambda sign, made: Term(ast.UnaryOp(sign(), made.node)), st.sampled_from(PREFIXES), terms),
        several.map(lambda items: Term(lift(items))),
        several.map(lambda items: Term(lift(tuple(items)))),
        st.lists(st.tuples(terms, terms), max_size=3).map(
            lambda pairs: Term(ast.Dict([key.node for key, _ in pairs], [each.node for _, each in pairs]))
        ),
        st.builds(make_lambda, st.lists(names, max_size=2, unique=True), terms),
    )


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of a large tree, nobody asked for it
@settings(max_examples=100)
@given(st.recursive(leaves, grow, max_leaves=8))
def test_python_reads_from_code_the_tree_that_was_written(term):
    block = StatementBlock()
    block.bind("x", term)
    code = write_program(block.statements, "Words.", [])
    (statement,) = ast.parse(code).body[1:]
    assert ast.dump(statement) == ast.dump(block.statements[0])
