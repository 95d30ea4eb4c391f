"""Raw inputs of a SavedModel: their names, and rows as the values of a request."""

import datetime
import json
import math

import numpy as np
import pytest

import penstock as ps
from penstock.bridge.graph.program import write_fields
from penstock.bridge.graph.site import Page
from penstock.export.raw_inputs import RawInput, RawReader, encode_rows, loosen_schema, name_tensor
from penstock.schema.declaration import find_forms
from penstock.transform.pipeline import without_targets


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("age", "age"),
        ("petal_cm", "petal_cm"),
        ("Marital status", "Marital_status"),
        ("größe", "gr_e"),
        ("2nd/home?", "field_2nd_home"),
        ("…", "field"),
        ("_private", "private"),
    ],
)
def test_name_of_a_tensor_is_plain(name, expected):
    assert name_tensor(name, ["other"]) == expected


def test_name_of_a_tensor_is_unique():
    assert name_tensor("a b", ["a_b", "a_b_2"]) == "a_b_3"


def test_values_are_encoded_with_placeholders_for_missing_ones():
    inputs = {
        "age": RawInput("age", "age", "float32", (), "value", "", "NaN"),
        "kind": RawInput("kind", "kind", "string", (), "value", "", "<missing>"),
        "photo": RawInput("photo", "photo", "string", (), "value", "", ""),
    }
    rows = [{"age": np.float32(1.5), "kind": "", "photo": b"\xff\xd8"}, {"age": None, "kind": None}]
    found = encode_rows(inputs, rows)
    assert found["age"][0] == 1.5
    assert math.isnan(found["age"][1])
    assert found["kind"] == ["", "<missing>"]
    assert found["photo"] == [{"b64": "/9g="}, ""]
    json.dumps(found)


def test_lists_are_padded_and_have_lengths():
    inputs = {
        "tags": RawInput("tags", "tags", "string", (None,), "list", ""),
        "tags_length": RawInput("tags_length", "tags", "int64", (), "length", ""),
    }
    found = encode_rows(inputs, [{"tags": ["a", "b"]}, {"tags": []}, {"tags": None}, {}])
    assert found == {"tags": [["a", "b"], ["", ""], ["", ""], ["", ""]], "tags_length": [2, 0, 0, 0]}


def test_batch_of_empty_lists_has_one_column():
    inputs = {"x": RawInput("x", "x", "float32", (None, 3), "list", "")}
    assert encode_rows(inputs, [{"x": []}])["x"] == [[[0, 0, 0]]]


def test_lists_of_lists_have_two_lengths():
    inputs = {
        "x": RawInput("x", "x", "int64", (None, None), "list", ""),
        "n": RawInput("n", "x", "int64", (), "length", ""),
        "m": RawInput("m", "x", "int64", (None,), "step_length", ""),
    }
    found = encode_rows(inputs, [{"x": [[1, 2], [], [3]]}, {"x": [[4]]}])
    assert found["x"] == [[[1, 2], [0, 0], [3, 0]], [[4, 0], [0, 0], [0, 0]]]
    assert found["n"] == [3, 1]
    assert found["m"] == [[2, 0, 1], [1, 0, 0]]


def test_arrays_have_a_mask_of_the_rows_that_have_one():
    inputs = {
        "e": RawInput("e", "e", "float32", (2,), "array", ""),
        "e_present": RawInput("e_present", "e", "bool", (), "present", ""),
    }
    found = encode_rows(inputs, [{"e": np.array([1, 2], np.float32)}, {"e": None}])
    assert found == {"e": [[1.0, 2.0], [0.0, 0.0]], "e_present": [True, False]}


def test_name_of_a_date_says_its_unit(tmp_path):
    """A date of the raw data is a number here, which its type alone does not show."""
    days = [datetime.date(2024, 1, 1 + n) for n in range(20)]
    times = [datetime.datetime(2024, 1, 1, n) for n in range(20)]
    rows = {"seen on": days, "at": times, "age": np.arange(20.0), "sold": ["no", "yes"] * 10}
    data = ps.convert(rows, tmp_path / "set", target="sold", split="train=1.0")
    pipeline = without_targets(ps.Pipeline.fit(data))
    reader = RawReader(pipeline, find_forms(data.manifest.plan))
    write_fields(Page(reader=reader), loosen_schema(pipeline), pipeline)
    assert set(reader.inputs) == {"seen_on_days_since_1970", "at_microseconds_since_1970", "age"}
    date = reader.inputs["seen_on_days_since_1970"]
    assert date.field == "seen on"
    assert "days since 1970-01-01" in date.meaning
    assert encode_rows({"d": date}, [{"seen on": 19723}]) == {"d": [19723]}


def test_input_is_restored_from_its_json_form():
    made = RawInput("a_b", "a b", "float64", (None, 3), "list", "lists", None)
    assert RawInput.from_json("a_b", json.loads(json.dumps(made.to_json()))) == made
