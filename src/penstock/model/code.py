"""Write the model for a pipeline as plain Keras code, for users to edit.

In: a schema, a fitted pipeline, options. Out: the text of a module with a function `build`, which needs only
Keras and returns the same model as `build_model`.
"""

from __future__ import annotations

import ast
from typing import Final

from penstock.codegen.program import define_function
from penstock.codegen.program_text import Layout, write_program
from penstock.model.blueprint import KERAS
from penstock.model.design import design_model
from penstock.schema.schema import Schema
from penstock.settings.model import ModelOptions
from penstock.transform.pipeline import Pipeline

_MODULES: Final = ("applications", "initializers", "layers", "ops", "regularizers")
_LAYOUT: Final = Layout(width=110, margin=0, parts_return=False, breaks_operations=False)
_DOCSTRING: Final = """A model of several inputs by name, in Keras alone: yours to edit.

Penstock wrote it. Train it with: penstock train DATASET --model model.py:build
"""


def write_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None = None) -> str:
    """Return the code of the model that `build_model` builds.

    The code defines a function `build() -> keras.Model`, with the same layers and names, and weights in the
    same order.
    """
    body = design_model(schema, pipeline, options)
    build = define_function("build", (), "Return the model, not compiled.", body, KERAS.Model.node)
    names = {node.id for node in ast.walk(build) if isinstance(node, ast.Name)}
    used = ", ".join(name for name in _MODULES if name in names)
    modules = ["import keras", f"from keras import {used}"]
    return write_program([build], _DOCSTRING, modules, _LAYOUT)
