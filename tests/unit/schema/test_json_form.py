"""The JSON form of a schema: what it looks like, and that nothing is lost."""

import json
import math

import numpy as np

from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.json_form import dump_fields, load_fields
from penstock.schema.schema import Schema

FIELDS = {
    "age": Number("int64", default=-1),
    "score": Number(default=math.nan),
    "breed": Category(values=("cat", "dog"), default="cat"),
    "title": Text(role="id", optional=True),
    "photo": Image("jpeg", default=b"\xff\xd8", key="image/encoded"),
    "blob": Bytes(),
    "words": Sequence("string", default=["a", "b"]),
    "boxes": Sequence("float32", (4,), "feature_list", default=[[0.0, -math.inf, 0.5, 1.0]]),
    "parts": Sequence("bytes", default=[b"\x00"]),
    "grid": Tensor((2, 1), "int16", "raw", default=[[1], [-2]], role="target"),
}

FORMS = {
    "age": {"type": "number", "dtype": "int64", "role": "input", "default": -1},
    "score": {"type": "number", "dtype": "float32", "role": "input", "default": {"float": "nan"}},
    "breed": {
        "type": "category",
        "dtype": "string",
        "values": ["cat", "dog"],
        "role": "input",
        "default": "cat",
    },
    "title": {"type": "text", "role": "id", "optional": True},
    "photo": {
        "type": "image",
        "format": "jpeg",
        "role": "input",
        "default": {"base64": "/9g="},
        "key": "image/encoded",
    },
    "blob": {"type": "bytes", "role": "input"},
    "words": {
        "type": "sequence",
        "dtype": "string",
        "shape": [],
        "stored": "feature",
        "role": "input",
        "default": ["a", "b"],
    },
    "boxes": {
        "type": "sequence",
        "dtype": "float32",
        "shape": [4],
        "stored": "feature_list",
        "role": "input",
        "default": [[0.0, {"float": "-inf"}, 0.5, 1.0]],
    },
    "parts": {
        "type": "sequence",
        "dtype": "bytes",
        "shape": [],
        "stored": "feature",
        "role": "input",
        "default": [{"base64": "AA=="}],
    },
    "grid": {
        "type": "tensor",
        "shape": [2, 1],
        "dtype": "int16",
        "encoding": "raw",
        "role": "target",
        "default": {"base64": "AQD+/w=="},
    },
}


def test_form_of_every_type_is_as_documented():
    assert dump_fields(FIELDS) == {"version": 1, "fields": FORMS}


def test_form_of_every_type_is_loaded_as_it_was():
    loaded = load_fields(json.loads(json.dumps({"version": 1, "fields": FORMS})))
    assert loaded == FIELDS
    assert list(loaded) == list(FIELDS)
    assert loaded["grid"].default.tolist() == [[1], [-2]]


def test_form_with_attributes_left_out_has_the_attributes_of_the_class():
    loaded = load_fields({"version": 1, "fields": {"a": {"type": "number"}, "b": {"type": "sequence"}}})
    assert loaded == {"a": Number(), "b": Sequence()}


def test_form_of_schema_without_fields_is_taken():
    assert Schema.from_json({"version": 1, "fields": {}}) == Schema({})


def test_form_of_tensor_default_keeps_every_bit():
    bits = np.array([0x7FC00123, 0x80000000, 1], np.uint32).view(np.float32)
    field = Tensor((3,), "float32", default=bits)
    loaded = load_fields(json.loads(json.dumps(dump_fields({"x": field}))))["x"]
    assert loaded.default.view(np.uint32).tolist() == [0x7FC00123, 0x80000000, 1]


def test_form_with_odd_names_is_loaded_as_it_was():
    fields = {name: Text() for name in ("", "a b", "\0", "ä/ö:", "x" * 65_536)}
    assert load_fields(json.loads(json.dumps(dump_fields(fields)))) == fields
