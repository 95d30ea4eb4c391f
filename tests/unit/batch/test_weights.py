"""Weights of rows: by the value of a field, or said by a field."""

import math

import numpy as np
import pytest

from penstock.batch.weights import class_weights, example_weights
from penstock.decode.losses import Losses
from penstock.errors import FieldError, MissingFieldError, OptionError, UnknownNameError
from penstock.fields import Category, Number, Text
from penstock.filter import scan as scan_module
from penstock.read.opened_files import open_files
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from raising import containing, mentions, raises_with
from record_files import example, flip, write_plain
from wire.frame import write_record

SCHEMA = Schema(
    {
        "breed": Category(values=("manx", "persian", "siamese"), optional=True),
        "code": Category("int64"),
        "name": Text(),
        "weight": Number("float32", optional=True),
        "count": Number("int64", default=2),
    }
)
BREEDS = ["siamese", "manx", "manx", None, "persian", "manx"]
MANX = "weight of 'manx' in field 'breed': expected a number of at least 0"
WEIGHTS = [0.5, 0.0, 2.0, 1.0, 4.0, 0.25]


def payload_of(row: int, weight: float | None) -> bytes:
    facts = {"code": row - 2, "name": f"n{row}"}
    if BREEDS[row] is not None:
        facts["breed"] = BREEDS[row]
    if weight is not None:
        facts["weight"] = weight
    if row % 2:
        facts["count"] = row
    return example(**facts)


def open_rows(path, payloads, on_error="raise"):
    write_plain(path / "data.tfrecord", payloads)
    (rows,) = open_files(path, ReadOptions(), on_error).splits.values()
    return rows


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_module, "_BLOCK_ROWS", 2)
    return open_rows(tmp_path, [payload_of(row, WEIGHTS[row]) for row in range(6)])


def by_class(rows, field, weights, **options):
    return class_weights(rows, SCHEMA, field, weights, Losses("raise", 0), **options).tolist()


@pytest.mark.parametrize(
    ("field", "weights", "expected"),
    [
        ("breed", {"siamese": 5, "manx": 0.5}, [5, 0.5, 0.5, 1, 1, 0.5]),
        ("breed", {"persian": 3, None: 0}, [1, 1, 1, 0, 3, 1]),
        ("code", {3: 9, -2: 7}, [7, 1, 1, 1, 1, 9]),
        ("name", {"n4": 2}, [1, 1, 1, 1, 2, 1]),
        ("count", {2: 0, 5: 8}, [0, 1, 0, 1, 0, 8]),  # the default is a value as any other
        ("breed", {None: 4}, [1, 1, 1, 4, 1, 1]),
        ("count", {None: 4}, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_class_weight_is_the_weight_of_the_value_or_1(rows, field, weights, expected):
    assert by_class(rows, field, weights) == expected
    assert by_class(rows, field, weights, num_threads=3) == expected


def test_class_weight_of_a_value_that_only_the_schema_knows_is_no_fault(tmp_path):
    rows = open_rows(tmp_path, [payload_of(0, 1.0)])
    assert by_class(rows, "breed", {"manx": 5}) == [1]


@pytest.mark.parametrize(
    ("field", "weights", "facts"),
    [
        ("breed", {"siamse": 2}, "weight 'siamse' 'breed' 'siamese'"),
        ("code", {77: 2}, "weight 77 'code'"),
        ("breed", {3: 2}, "weights 'breed' 3"),
        ("code", {"3": 2}, "weights 'code' '3'"),
        ("breed", {"manx": -1}, "weight 'manx' 'breed' 0 -1"),
        ("breed", {"manx": math.nan}, "weight 'manx' 'breed' 0 nan"),
        ("breed", {"manx": "2"}, "weight 'manx' 'breed' 0 '2'"),
        ("breed", {}, "weights 'breed' {}"),
        ("breed", [1, 2], "weights 'breed' [1, 2]"),
        ("weight", {1: 2}, "weights 'weight' category float32"),
        ("breed", {"manx": 0, "siamese": 0, "persian": 0, None: 0}, "weights 'breed' 0"),
    ],
)
def test_class_weights_that_cannot_be_are_refused(rows, field, weights, facts):
    with raises_with(OptionError, facts):
        by_class(rows, field, weights)


def test_weights_by_a_field_that_does_not_exist_name_the_nearest(rows):
    with raises_with(UnknownNameError, field="bred", advice=containing("'breed'")):
        by_class(rows, "bred", {"manx": 1})
    with raises_with(UnknownNameError, field="weigth", advice=containing("'weight'")):
        example_weights(rows, SCHEMA, "weigth", Losses("raise", 0))


@pytest.mark.parametrize("num_threads", [1, 3])
def test_example_weight_is_the_value_of_the_field(rows, num_threads):
    found = example_weights(rows, SCHEMA, "weight", Losses("raise", 0), num_threads=num_threads)
    assert found.tolist() == WEIGHTS
    assert found.dtype == np.float64
    assert example_weights(rows, SCHEMA, "count", Losses("raise", 0)).tolist() == [2, 1, 2, 3, 2, 5]


@pytest.mark.parametrize(
    ("weight", "kind", "got"),
    [
        (-0.5, FieldError, "-0.5"),
        (math.nan, FieldError, "nan"),
        (math.inf, FieldError, "inf"),
        (None, MissingFieldError, "none"),
    ],
)
def test_example_weight_that_cannot_be_is_a_bad_record(tmp_path, weight, kind, got):
    payloads = [payload_of(row, weight if row in (2, 4) else 1.0) for row in range(6)]
    rows = open_rows(tmp_path, payloads)
    with pytest.raises(kind) as caught:
        example_weights(rows, SCHEMA, "weight", Losses("raise", 0))
    offset = sum(len(payload) + 16 for payload in payloads[:2])
    assert mentions(caught.value, f"{tmp_path / 'data.tfrecord'} 'weight' 2 {offset} 0 {got} on_error='skip'")
    assert (caught.value.field, caught.value.record) == ("weight", 2)
    losses = Losses("collect", 2)
    assert example_weights(rows, SCHEMA, "weight", losses).tolist() == [1, 1, 0, 1, 0, 1]
    assert [error.record for error in losses.errors()] == [2, 4]


def test_record_that_cannot_be_read_weighs_nothing_and_is_counted_once(tmp_path):
    frames = [write_record(payload_of(row, 1.0)) for row in range(6)]
    frames[1] = flip(frames[1], 15)
    (tmp_path / "data.tfrecord").write_bytes(b"".join(frames))
    (rows,) = open_files(tmp_path, ReadOptions(), "collect").splits.values()
    losses = Losses("collect", 1)
    assert example_weights(rows, SCHEMA, "weight", losses).tolist() == [1, 0, 1, 1, 1, 1]
    assert class_weights(rows, SCHEMA, "breed", {"manx": 3}, losses).tolist() == [1, 0, 3, 1, 1, 3]
    assert len(losses) == 1


def test_example_weights_that_are_all_zero_are_refused(tmp_path):
    rows = open_rows(tmp_path, [payload_of(row, 0.0) for row in range(3)])
    with raises_with(OptionError, "'weight'", expected=containing(0)):
        example_weights(rows, SCHEMA, "weight", Losses("raise", 0))


def test_example_weights_by_a_field_without_numbers_are_refused(rows):
    with raises_with(OptionError, "'name'"):
        example_weights(rows, SCHEMA, "name", Losses("raise", 0))
