"""A program as code: signs, brackets, lines, constants."""

import ast

import pytest

from penstock.codegen.program import StatementBlock, Term, define_function, function
from penstock.codegen.program_text import Layout, write_program

tf, a, b, c = (Term.name(name) for name in ("tf", "a", "b", "c"))


def write(*statements) -> str:
    """Return the code of a program, without its head."""
    text = write_program(statements, "Words.", ["import tensorflow as tf"])
    ast.parse(text)
    head = '"""Words."""\n\nimport tensorflow as tf\n\n'
    assert text.startswith(head)
    return text.removeprefix(head)


def write_value(value) -> str:
    block = StatementBlock()
    block.bind("x", value)
    return write(*block.statements).removeprefix("x = ").rstrip("\n")


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ((a - b) * c, "(a - b) * c"),
        (a - (b - c), "a - (b - c)"),
        (a - b - c, "a - b - c"),
        (-(-a // 4) * 4, "-(-a // 4) * 4"),
        (-(a + b), "-(a + b)"),
        (a / (b * c), "a / (b * c)"),
        (~(a < b) & (b >= 0) | c, "~(a < b) & (b >= 0) | c"),
        (a & (b | c), "a & (b | c)"),
        (a.equals(1) & b.differs(2), "(a == 1) & (b != 2)"),
        ((a > 0).sum(), "(a > 0).sum()"),
        ((-a)[:, -3:], "(-a)[:, -3:]"),
        (a[1:, "k", b], 'a[1:, "k", b]'),
        (a - -0.5, "a - -0.5"),
        (tf.f(a, [1, (2,)], k={"b": b}), 'tf.f(a, [1, (2,)], k={"b": b})'),
        (tf.f(function("x", "y", body=lambda x, y: x + y)), "tf.f(lambda x, y: x + y)"),
        (tf.f(function(body=lambda: a)), "tf.f(lambda: a)"),
    ],
)
def test_expression_is_written_with_no_more_brackets_than_it_needs(term, text):
    assert write_value(term) == text


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -7,
        2**63,
        0.1,
        -1e-300,
        "plain",
        "it's",
        'a "b"',
        "back\\slash",
        "new\nline",
        "Ünï",
        b"\0\xff",
        "",
    ],
)
def test_constant_is_written_as_python_reads_it(value):
    assert ast.literal_eval(write_value(value)) == value


def test_numbers_that_python_has_no_form_for_are_made():
    assert write_value([float("inf"), -float("inf")]) == '[float("inf"), float("-inf")]'
    assert write_value(float("nan")) == 'float("nan")'


def test_long_call_has_a_line_an_argument():
    term = tf.some.function(
        a.with_a_long_name, [b] * 3, keyword="a text of some length", other=c + 12345678901
    )
    assert write_value(term).splitlines() == [
        "tf.some.function(",
        "    a.with_a_long_name,",
        "    [b, b, b],",
        '    keyword="a text of some length",',
        "    other=c + 12345678901,",
        ")",
    ]


def test_long_list_of_constants_fills_its_lines():
    lines = write_value(list(range(1000, 1100))).splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert max(map(len, lines)) <= 100
    assert len(lines) < 10


def test_long_operation_stands_in_brackets():
    names = [Term.name(f"quite_a_long_name_{number}") for number in range(5)]
    total = names[0]
    for name in names[1:]:
        total = total * 2 + name
    text = write_value(total)
    assert text.startswith("(\n    ")
    assert ast.unparse(ast.parse(text)) == ast.unparse(ast.parse(" ".join(text.split())))
    block = StatementBlock()
    block.bind("f", function("x", body=lambda x: total + x))
    assert write(*block.statements).startswith("f = lambda x: (")


def test_functions_choices_and_comments_have_their_places():
    inner = StatementBlock()
    inner.define_function("half", "x", body=lambda x: x / 2)
    inner.note("Commented. " * 12)
    inner.bind(("p", "q"), a)
    inner.execute(tf.check(a))
    block = StatementBlock()
    block.define_constant("NAMES", ["x"], tf.read("names"))
    block.statements.append(define_function("make", ["a"], "Make it.", inner.finish([a, b])))
    then, otherwise = StatementBlock(), StatementBlock()
    then.bind("d.e", 1)
    otherwise.bind("d.e", 2)
    block.choose(c, then, otherwise)
    lines = write_program(block.statements, "Words.", []).splitlines()
    assert lines[3:] == [
        'NAMES = tf.read("names")',
        "",
        "",
        "def make(a):",
        '    """Make it."""',
        "",
        "    def half(x):",
        "        return x / 2",
        "",
        "    # " + ("Commented. " * 8).strip(),
        "    # " + ("Commented. " * 4).strip(),
        "    p, q = a",
        "    tf.check(a)",
        "",
        "    return [a, b]",
        "",
        "",
        "if c:",
        "    d.e = 1",
        "else:",
        "    d.e = 2",
    ]


def test_layout_sets_width_margin_blank_lines_and_broken_operations():
    block = StatementBlock()
    block.note("A section.")
    block.bind("x", tf.f(a + b, [c]))
    block.note("Within the section.", opens_section=False)
    make = define_function("make", (), "Make it.", block.finish(a), tf.Tensor.node)
    layout = Layout(width=20, margin=0, parts_return=False, breaks_operations=False)
    assert write_program([make], "Words.", ["import tensorflow as tf"], layout).splitlines()[4:] == [
        "",
        "def make() -> tf.Tensor:",
        '    """Make it."""',
        "",
        "    # A section.",
        "    x = tf.f(",
        "        a + b,",
        "        [c],",
        "    )",
        "    # Within the section.",
        "    return a",
    ]
    block = StatementBlock()
    block.bind("x", tf.f(a.some_long_name + b.other_long_name))
    wide, narrow = (
        write_program(block.statements, "Words.", [], Layout(width=20, breaks_operations=each)).splitlines()
        for each in (False, True)
    )
    assert wide[3:-1] == ["x = tf.f(", "    a.some_long_name + b.other_long_name,"]
    assert narrow[3:-1] == ["x = tf.f(", "    a.some_long_name", "    + b.other_long_name,"]


def test_term_has_no_truth_value_and_no_items():
    for misuse in (bool, list):
        with pytest.raises(TypeError):
            misuse(a)
    with pytest.raises(TypeError):
        tf.f(object())
    with pytest.raises(AttributeError):
        a._private  # noqa: B018
