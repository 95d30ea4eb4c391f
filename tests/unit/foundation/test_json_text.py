"""JSON text: one value per line as Python's own writer makes it, and how deep a text is nested."""

import json
import math

import pytest

from penstock.foundation.json_text import find_deep, is_deep, write_json
from raising import raises_with

VALUES = [
    *(None, True, False, 0, -1, 10**30, 1.5, 1e300, -0.0, "", "a", 'q"\\\n\x00é😀\ud800'),
    *([], {}, [[]], [{}], {"": {}}, {"a": [], "b": {"c": [1, [2, {"d": None}]]}}, (1, 2), [True, "x", 0.5]),
    {2: "int", None: "none", True: "true", 1.5: "float"},
    {"shape": [3, 4], "type": "tensor", "nested": {"x": {"y": {"z": "deep"}}}},
]


@pytest.mark.parametrize("indent", [1, 4])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_text_equals_json_dumps(value, indent):
    assert write_json(value, indent) == json.dumps(value, indent=indent)


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_number_that_json_lacks_is_refused(value):
    with raises_with(ValueError, "JSON"):
        write_json(value, 1)


def nest(depth):
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(("depth", "wanted"), [(0, False), (100, False), (101, True), (100_000, True)])
def test_text_is_deep_from_101_levels(depth, wanted):
    assert is_deep(nest(depth)) is wanted
    assert is_deep(b"[" * depth) is wanted


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n"])
def test_location_of_deep_json_is_the_number_of_lines_before_it(end):
    line = b'{"a":' + nest(100) + b"}"
    shallow = b'{"a":' + nest(99) + b"}"
    assert find_deep(end.join([shallow] * 5)) is None
    assert find_deep(end.join([shallow, shallow, line, shallow])) == 2 * end.count(b"\n")


@pytest.mark.parametrize(
    "text", ["[" * 200, "]" * 200, '"' + "[" * 200, '\\"' + "[" * 200, "\\", '\\\\"' + "{" * 200, "\n[" * 200]
)
def test_brackets_in_strings_do_not_count_nor_hide_others(text):
    cell = json.dumps({text: text}).encode()
    assert not is_deep(cell)
    assert is_deep(b"[" * 100 + cell + b"]" * 100)
    assert not is_deep(b"[" * 99 + cell + b"]" * 99)


def test_many_brackets_on_one_level_are_not_deep():
    assert not is_deep(json.dumps([[{"x": [i]}] for i in range(1000)]).encode())


def test_quote_that_is_not_closed_hides_no_other_line():
    assert find_deep(b'{"a": "\n' + nest(200)) == 1
