"""Generated code is run as Python would run it, but only with the nodes that it may have."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.codegen.interpreter import Interpreter
from penstock.codegen.program import StatementBlock, Term, define_function, function

a, b, log = (Term.name(name) for name in ("a", "b", "log"))


def check_alike(block: StatementBlock, **scope) -> dict:
    """Check that the interpreter binds the values that Python binds, and return them."""
    found, expected = dict(scope), {}
    Interpreter(found).run(block.statements)
    module = ast.fix_missing_locations(ast.Module(block.statements, []))
    exec(compile(ast.unparse(module), "code", "exec"), dict(scope), expected)  # noqa: S102 - written above
    for name, value in expected.items():
        if not callable(value):
            np.testing.assert_array_equal(found[name], value)
    return found


def test_every_expression_has_the_value_that_python_gives_it():
    block = StatementBlock()
    for number, term in enumerate(
        (a + b, a - b, a * b, a / b, a // b, a & b, a | b, a < b, a <= b, a > b, a >= b, -a, ~a)
    ):
        block.bind(f"x{number}", term)
    block.bind("equal", a.equals(b))
    block.bind("different", a.differs(b))
    block.bind("part", a[1:])
    block.bind("parts", a.reshape(1, -1)[:, :2])
    block.bind("shown", {"key": [a.size, (b.max(),)], 1: None})
    block.bind(("first", "second"), (a.sum(axis=0), b[0]))
    double = block.bind("double", function("x", body=lambda x: x * 2))
    block.bind("doubled", double(a))
    half = block.define_function("half", "x", body=lambda x: x // 2 + b)
    block.bind("halved", half(a))
    found = check_alike(block, a=np.array([4, 5, 6]), b=np.array([3, 5, 7]))
    assert found["shown"] == {"key": [3, (7,)], 1: None}


def test_arguments_of_functions_hide_names_and_are_not_kept():
    block = StatementBlock()
    inner = StatementBlock()
    inner.bind("b", a + 1)
    block.statements.append(define_function("f", ["a"], "Add one.", inner.finish(Term.name("b") * 10)))
    block.bind("c", Term.name("f")(5))
    found = check_alike(block, a=1, b=2)
    assert (found["a"], found["b"], found["c"]) == (1, 2, 60)


@pytest.mark.parametrize("is_chosen", [True, False])
def test_choice_runs_one_block_and_a_return_in_it_ends_the_function(is_chosen):
    then, otherwise, block = StatementBlock(), StatementBlock(), StatementBlock()
    then.execute(log("then"))
    then.statements = then.finish(1)
    otherwise.execute(log("otherwise"))
    block.choose(a, then, otherwise)
    block.execute(log("after"))
    calls: list[str] = []
    result = Interpreter({"a": is_chosen, "log": calls.append}).run(block.finish(2))
    assert (result, calls) == ((1, ["then"]) if is_chosen else (2, ["otherwise", "after"]))


def test_attribute_is_assigned_and_comments_and_sources_of_long_constants_are_not_run():
    block = StatementBlock()
    block.note("Comment.")
    block.bind("model.trainable", False)
    block.define_constant("WORDS", ["a"], Term.name("file").read())
    model = SimpleNamespace(trainable=True)
    scope = {"model": model}
    Interpreter(scope).run(block.statements)
    assert (model.trainable, scope["WORDS"]) == (False, ["a"])


def test_functions_are_wrapped_where_they_are_defined():
    block = StatementBlock()
    block.define_function("f", "x", body=lambda x: x + 1)
    block.bind("g", function("x", body=lambda x: x + 2))
    scope = {}
    Interpreter(scope, lambda plain: lambda *given: -plain(*given)).run(block.statements)
    assert (scope["f"](1), scope["g"](1)) == (-2, -3)


@pytest.mark.parametrize(
    "code",
    [
        "import os",
        "for x in a: pass",
        "del a",
        "a = b = 1",
        "a[0] = 1",
        "[x] = a",
        "x = f'{a}'",
        "x = [y for y in a]",
        "x = a if b else 1",
    ],
)
def test_other_python_code_is_refused(code):
    with pytest.raises(TypeError, match="generated code has no"):
        Interpreter({"a": [1], "b": 2}).run(ast.parse(code).body)


def test_names_outside_the_scope_are_unknown():
    with pytest.raises(KeyError):
        Interpreter({}).run(ast.parse("x = open").body)
