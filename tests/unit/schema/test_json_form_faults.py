"""The JSON form of a schema, attacked: the path of every fault."""

import copy
import math

import pytest

from penstock.errors import SchemaError
from penstock.schema import json_form
from penstock.schema.json_form import load_fields
from penstock.schema.schema import Schema
from raising import containing, raises_with

ROOT_FAULTS = [
    ([], "$", "object", "[]"),
    (None, "$", "object", ""),
    ({}, "$.version", "1", ""),
    ({"version": "1", "fields": {}}, "$.version", "1", "'1'"),
    ({"version": True, "fields": {}}, "$.version", "1", "True"),
    ({"version": 1.0, "fields": {}}, "$.version", "1", "1.0"),
    ({"version": 0, "fields": {}}, "$.version", "1", "0"),
    ({"version": 1}, "$.fields", "object", ""),
    ({"version": 1, "fields": []}, "$.fields", "object", "[]"),
    ({"version": 1, "fields": {}, "extra": 1}, "$.extra", "'version' 'fields'", "key"),
    ({"version": 1, "fields": {3: {}}}, "$.fields", "", "3"),
    ({"version": 1, "fields": {"\ud800": {}}}, '$.fields["\\ud800"]', "UTF-8", "'\\ud800'"),
]

FIELD_FAULTS = [
    (None, "", "object", ""),
    ("number", "", "object", "'number'"),
    ({}, ".type", "'number' 'category' 'text' 'image' 'bytes' 'sequence' 'tensor'", ""),
    ({"type": "float"}, ".type", "'number' 'category' 'text' 'image' 'bytes' 'sequence' 'tensor'", "'float'"),
    (
        {"type": ["number"]},
        ".type",
        "'number' 'category' 'text' 'image' 'bytes' 'sequence' 'tensor'",
        "['number']",
    ),
    ({"type": "number", "shape": [1]}, ".shape", "'type' 'dtype' 'role' 'default' 'optional' 'key'", "key"),
    ({"type": "number", "dtype": "float16"}, ".dtype", "'float32' 'int64' 'float64'", "'float16'"),
    ({"type": "number", "dtype": None}, ".dtype", "'float32' 'int64' 'float64'", "None"),
    ({"type": "number", "role": "label"}, ".role", "'input' 'target' 'weight' 'id'", "'label'"),
    ({"type": "number", "optional": 1}, ".optional", "True False", "1"),
    ({"type": "number", "key": 1}, ".key", "", "1"),
    ({"type": "number", "default": "1"}, ".default", "", "'1'"),
    ({"type": "number", "default": True}, ".default", "", "True"),
    ({"type": "number", "default": math.inf}, ".default", "JSON", "inf"),
    ({"type": "number", "default": {"float": "NaN"}}, ".default.float", "'nan' 'inf' '-inf'", "'NaN'"),
    ({"type": "number", "default": {}}, ".default.float", "'nan' 'inf' '-inf'", "nothing"),
    ({"type": "number", "default": {"x": 1}}, ".default.x", "'float'", "key"),
    ({"type": "number", "dtype": "int64", "default": 0.5}, ".default", "", "0.5"),
    ({"type": "number", "dtype": "int64", "default": {"float": "nan"}}, ".default", "", "'nan'"),
    ({"type": "category", "values": {"a": 1}}, ".values", "array", "{'a': 1}"),
    ({"type": "category", "values": ["a", "a"]}, ".values[1]", "", "'a'"),
    ({"type": "category", "values": ["a"], "default": "b"}, ".default", "", "'b'"),
    ({"type": "text", "default": 5}, ".default", "", "5"),
    ({"type": "image", "format": "tiff"}, ".format", "'jpeg' 'png' 'webp' 'gif' 'bmp'", "'tiff'"),
    ({"type": "image", "default": "abc"}, ".default", "object", "'abc'"),
    ({"type": "bytes", "default": {}}, ".default.base64", "", ""),
    ({"type": "bytes", "default": {"base64": 1}}, ".default.base64", "", "1"),
    ({"type": "bytes", "default": {"base64": "a"}}, ".default.base64", "base64", "'a'"),
    ({"type": "bytes", "default": {"base64": "ä==="}}, ".default.base64", "base64", "'ä==='"),
    ({"type": "bytes", "default": {"base64": "AA==", "x": 1}}, ".default.x", "'base64'", "key"),
    ({"type": "sequence", "default": 1}, ".default", "array", "1"),
    ({"type": "sequence", "default": [0, [1]]}, ".default[1]", "", "[1]"),
    ({"type": "sequence", "dtype": "bytes", "default": [[]]}, ".default[0]", "object", "[]"),
    (
        {"type": "sequence", "stored": "feature_list", "shape": None, "default": [1]},
        ".default[0]",
        "array",
        "1",
    ),
    (
        {"type": "sequence", "stored": "feature_list", "shape": [2], "default": [[1]]},
        ".default[0]",
        "step 2",
        "1",
    ),
    ({"type": "sequence", "shape": [2]}, ".shape", "()", "[2]"),
    ({"type": "sequence", "stored": "list"}, ".stored", "'feature' 'feature_list'", "'list'"),
    ({"type": "tensor"}, ".shape", "array", ""),
    ({"type": "tensor", "shape": None}, ".shape", "", "None"),
    ({"type": "tensor", "shape": {"0": 1}}, ".shape", "array", "{'0': 1}"),
    ({"type": "tensor", "shape": [2, 0]}, ".shape[1]", "", "0"),
    ({"type": "tensor", "shape": [2.0]}, ".shape[0]", "", "2.0"),
    ({"type": "tensor", "shape": [2, [2]]}, ".shape[1]", "", "[2]"),
    ({"type": "tensor", "shape": [2], "encoding": "zip"}, ".encoding", "'auto' 'list' 'raw'", "'zip'"),
    ({"type": "tensor", "shape": [1], "default": [1.0]}, ".default", "object", "[1.0]"),
    ({"type": "tensor", "shape": [1], "default": {"base64": "AA=="}}, ".default", "4 bytes", "1 bytes"),
]


@pytest.mark.parametrize(("document", "place", "expected", "got"), ROOT_FAULTS)
def test_form_with_fault_at_the_root_is_refused_with_its_path(document, place, expected, got):
    with raises_with(SchemaError, f"{place} {expected} {got}", field=place):
        load_fields(document)


@pytest.mark.parametrize(("declaration", "place", "expected", "got"), FIELD_FAULTS)
def test_form_with_fault_in_a_field_is_refused_with_its_path(declaration, place, expected, got):
    before = copy.deepcopy(declaration)
    place = f"$.fields.photo{place}"
    with raises_with(SchemaError, f"{place} {expected} {got}", field=place):
        Schema.from_json({"version": 1, "fields": {"fine": {"type": "text"}, "photo": declaration}})
    assert declaration == before


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        (
            {"a": {"type": "number", "role": "weight"}, "b": {"type": "number", "role": "weight"}},
            "$.fields.b.role weight 'a'",
        ),
        ({"a": {"type": "text", "role": "weight"}}, "$.fields.a.role weight text"),
        ({"a": {"type": "text"}, "b": {"type": "text", "key": "a"}}, "$.fields.b.key 'a' 'a'"),
    ],
)
def test_form_with_fields_in_conflict_is_refused_with_the_path(fields, facts):
    with raises_with(SchemaError, facts):
        Schema.from_json({"version": 1, "fields": fields})


def test_form_of_future_version_is_refused_with_advice():
    with raises_with(SchemaError, "$.version 1 2"):
        load_fields({"version": 2, "fields": {"a": {"type": "hologram"}}})


def test_form_as_text_is_refused_with_advice():
    with raises_with(SchemaError, "text json.loads", field="$"):
        load_fields('{"version": 1}')


def test_form_with_misspelt_key_names_the_nearest():
    with raises_with(SchemaError, "'optional'", field="$.fields.a.optionl"):
        load_fields({"version": 1, "fields": {"a": {"type": "text", "optionl": True}}})


def test_form_with_too_many_fields_is_refused(monkeypatch):
    monkeypatch.setattr(json_form, "MAX_FIELDS", 2)
    with raises_with(SchemaError, field="$.fields", expected=containing(2), got="3"):
        load_fields({"version": 1, "fields": {name: {"type": "text"} for name in "abc"}})


def test_form_nested_without_end_is_refused_not_followed():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with raises_with(SchemaError, field="$.fields.a.default[0]"):
        load_fields({"version": 1, "fields": {"a": {"type": "sequence", "default": nested}}})
    while nested:
        # Freed by hand: the interpreter would free it recursively.
        nested = nested.pop()  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a_1", "$.fields.a_1"),
        ("a b", '$.fields["a b"]'),
        ("", '$.fields[""]'),
        ("ä", '$.fields["\\u00e4"]'),
        ("x" * 500, '$.fields["' + "x" * 98 + '…"]'),
    ],
)
def test_path_with_an_odd_name_is_quoted(name, place):
    with pytest.raises(SchemaError) as caught:
        load_fields({"version": 1, "fields": {name: 1}})
    assert caught.value.field == place
