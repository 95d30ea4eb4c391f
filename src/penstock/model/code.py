"""Write the model for a pipeline as plain Keras code, for users to edit.

In: a schema, a fitted pipeline, options. Out: the text of a module with a function `build`, which needs only
Keras and returns the same model as `build_model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Final

from penstock.foundation.program import (
    Bind,
    Call,
    Comment,
    Constant,
    DictNode,
    ListNode,
    Name,
    Node,
    Operation,
    Return,
    Slice,
    Statement,
)
from penstock.foundation.program_text import write_flat
from penstock.model.blueprint import Remark
from penstock.model.design import design_model
from penstock.model.options import ModelOptions
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

_WIDTH: Final = 110
_STEP: Final = "    "
_SHORT: Final = 50
_BLANK: Final = "\0"  # stands for a blank inside of a value, at which no line may end
_MODULES: Final = ("applications", "initializers", "layers", "ops", "regularizers")
_HEAD: Final = '''"""A model of several inputs by name, in Keras alone: yours to edit.

Penstock wrote it. Train it with: penstock train DATASET --model model.py:build
"""
'''


def write_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None = None) -> str:
    """Return the code of the model that `build_model` builds.

    The code defines a function `build() -> keras.Model`, with the same layers and names, and weights in the
    same order.

    Args:
        schema: Schema of the data.
        pipeline: Pipeline fitted to data with this schema.
        options: Encoders and sizes.

    Raises:
        OptionError: There is no input or no target, or one that is not supported.
        UnknownNameError: The schema lacks a field that the pipeline reads.
        SchemaError: A field has another type than the pipeline was fitted to.
    """
    return write_statements(design_model(schema, pipeline, options))


def write_statements(statements: Iterable[Statement]) -> str:
    """Return the text of a module whose function `build` has these statements."""
    lines = [line for statement in statements for line in _write_statement(statement)]
    used = [name for name in _MODULES if any(f"{name}." in line for line in lines)]
    head = [*_HEAD.splitlines(), "", "import keras", f"from keras import {', '.join(used)}", "", ""]
    opening = ["def build() -> keras.Model:", f'{_STEP}"""Return the model, not compiled."""']
    return "\n".join([*head, *opening, *lines, ""])


def _write_statement(statement: Statement) -> Iterator[str]:
    if isinstance(statement, Comment):
        if not isinstance(statement, Remark):
            yield ""
        # Line breaks in names of fields must not turn a comment into code.
        words = " ".join(statement.text.split())
        yield from wrap(words, _WIDTH - 10, initial_indent=f"{_STEP}# ", subsequent_indent=f"{_STEP}# ")
    elif isinstance(statement, Bind):
        yield from f"{_STEP}{_write_binding(statement.names[0], statement.value)}".splitlines()
    elif isinstance(statement, Return):
        yield f"{_STEP}return {_write(statement.value, _STEP, 7)}"


def _write_binding(name: str, value: Node) -> str:
    head = f"{name} = "
    flat = write_flat(value)
    if isinstance(value, Operation) and len(_STEP) + len(head) + len(flat) > _WIDTH:
        return f"{head}(\n{_STEP * 2}{flat}\n{_STEP})"
    return f"{head}{_write(value, _STEP, len(head))}"


def _write(node: Node | Slice, indent: str, taken: int) -> str:
    """Return a value that begins `taken` characters after an indent, on several lines if it is too long."""
    flat = write_flat(node)
    # One character less, as a comma may follow.
    if len(indent) + taken + len(flat) < _WIDTH:
        return flat
    if isinstance(node, Call):
        return _break_call(node, indent, taken)
    if isinstance(node, DictNode):
        parts = [
            f"{write_flat(key)}: {_write(item, indent + _STEP, len(write_flat(key)) + 2)}"
            for key, item in node.items
        ]
        return _break("{", parts, "}", indent)
    if isinstance(node, ListNode):
        ends = "()" if node.is_tuple else "[]"
        if all(isinstance(each, Constant) for each in node.items):
            return _fill(ends[0], map(write_flat, node.items), ends[1], indent)
        return _break(ends[0], [_write(each, indent + _STEP, 0) for each in node.items], ends[1], indent)
    return flat


def _break_call(node: Call, indent: str, taken: int) -> str:
    function, inner = node.function, indent + _STEP
    tail = write_flat(Call(Name(""), node.arguments, node.keywords))
    if isinstance(function, Call) and len(tail) <= _SHORT:
        # In `layers.Dense(…)(x)`, the arguments of the layer are the long part.
        return f"{_break_call(function, indent, taken)}{tail}"
    parts = [_write(each, inner, 0) for each in node.arguments]
    parts += [f"{name}={_write(each, inner, len(name) + 1)}" for name, each in node.keywords]
    return _break(f"{_write(function, indent, taken)}(", parts, ")", indent)


def _fill(start: str, parts: Iterable[str], end: str, indent: str) -> str:
    """Return numbers or texts in as few lines as possible."""
    inner = indent + _STEP
    text = " ".join(f"{part.replace(' ', _BLANK)}," for part in parts)
    lines = wrap(text, _WIDTH, initial_indent=inner, subsequent_indent=inner, break_long_words=False)
    return "\n".join([start, *lines, f"{indent}{end}"]).replace(_BLANK, " ")


def _break(start: str, parts: Iterable[str], end: str, indent: str) -> str:
    return "\n".join([start, *(f"{indent}{_STEP}{part}," for part in parts), f"{indent}{end}"])
