"""The YAML loader: what it reads, and how it names lines; `tests/faults/` has the faults."""

import inspect
import sys

import pytest

from penstock.errors import SchemaError
from penstock.foundation.safe_yaml import MAX_DEPTH, MAX_NUMBER_CHARS, parse_yaml


def test_deepest_text_and_quoted_values_are_read():
    form, lines = parse_yaml("a: " + "[" * 31 + "]" * 31 + "\nb: !!str 5\nc: '2026-02-30'\n'<<': 1\n")
    assert (form["b"], form["c"], form["<<"]) == ("5", "2026-02-30", 1)
    assert (lines["$.b"], lines["$.a[0][0]"], lines['$["<<"]']) == (2, 1, 4)


def test_longest_number_is_read():
    form, _ = parse_yaml("a: " + "9" * MAX_NUMBER_CHARS)
    assert form["a"] == int("9" * MAX_NUMBER_CHARS)


def test_empty_text_is_nothing():
    assert parse_yaml("# only a comment\n") == (None, {})


def test_lines_are_named_from_the_given_root():
    assert parse_yaml("a: {b: 1}\nc: [2]\n", root="")[1] == {"a": 1, "a.b": 1, "c": 2, "c[0]": 2}


def test_stack_that_is_nearly_full_is_not_an_internal_error():
    def call(depth):
        return parse_yaml("fields: " + "[" * 30 + "]" * 30) if not depth else call(depth - 1)

    left = sys.getrecursionlimit() - len(inspect.stack(0)) - 45
    with pytest.raises(SchemaError) as caught:
        call(left)
    assert str(MAX_DEPTH) in caught.value.expected
