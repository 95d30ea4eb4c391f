"""What `help()` and the reference show of settings."""

import typing

import penstock as ps
from penstock.settings.groups import Execution
from penstock.settings.loading import OpenCall


def test_types_of_a_function_equal_types_of_its_settings():
    types = typing.get_type_hints(ps.open)
    assert {"target", "schema", "on_error"} <= set(types)
    assert OpenCall not in types.values()


def test_docstring_of_a_group_has_texts_and_usual_defaults():
    text = " ".join(Execution.__doc__.split())
    assert "num_threads: Number of threads, or of tasks on Ray." in text
    assert "Default: one per core." in text
