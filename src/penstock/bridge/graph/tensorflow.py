"""Run a program by calling TensorFlow.

In: the statements of a program. Out: the values that it binds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

import tensorflow as tf

from penstock.codegen.interpreter import Interpreter, Scope


def make_dataset(statements: Iterable[ast.stmt]) -> tf.data.Dataset:
    """Run a program and return its `tf.data.Dataset`."""
    return run_program(statements)["dataset"]


def run_program(statements: Iterable[ast.stmt]) -> Scope:
    """Run a program and return the values of its names."""
    scope: Scope = {"tf": tf, "len": len}
    # Functions contain no Python control flow over tensors that AutoGraph would have to rewrite.
    Interpreter(scope, tf.autograph.experimental.do_not_convert).run(statements)
    return scope
