"""JSON with one value per line is what Python's own writer makes."""

import json
import math

import pytest

from penstock.foundation.json_text import write_json
from raising import raises_with

VALUES = [
    *(None, True, False, 0, -1, 10**30, 1.5, 1e300, -0.0, "", "a", 'q"\\\n\x00é😀\ud800'),
    *([], {}, [[]], [{}], {"": {}}, {"a": [], "b": {"c": [1, [2, {"d": None}]]}}, (1, 2), [True, "x", 0.5]),
    {2: "int", None: "none", True: "true", 1.5: "float"},
    {"shape": [3, 4], "type": "tensor", "nested": {"x": {"y": {"z": "deep"}}}},
]


@pytest.mark.parametrize("indent", [1, 4])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_text_is_that_of_json_dumps(value, indent):
    assert write_json(value, indent) == json.dumps(value, indent=indent)


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_number_that_json_lacks_is_refused(value):
    with raises_with(ValueError, "JSON"):
        write_json(value, 1)
