"""Lengths of rows: of a sequence, of a text, or as the caller measures."""

import numpy as np
import pytest

from penstock.decode.losses import Losses
from penstock.errors import OptionError, UnknownNameError
from penstock.fields import Image, Number, Sequence, Text
from penstock.filter import scan as scan_module
from penstock.filter.scan import row_lengths
from penstock.read.opened_files import open_files
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from raising import raises_with
from record_files import example, feature, flip, write_plain
from wire.example import Feature, SequenceExample, write_sequence_example
from wire.frame import write_record

NUM_ROWS = 10
SCHEMA = Schema(
    {
        "tokens": Sequence("int64"),
        "tags": Sequence("string", optional=True),
        "usual": Sequence("int64", default=(1, 2, 3)),
        "text": Text(optional=True),
        "age": Number("int64"),
    }
)


def payload_of(row: int) -> bytes:
    facts = {"tokens": Feature("int64", list(range(row))), "age": row}
    if row % 2:
        facts |= {"tags": feature(["x"] * row), "text": "ä b " * row, "usual": Feature("int64", [])}
    return example(**facts)


def open_rows(path, on_error="raise"):
    (rows,) = open_files(path, ReadOptions(), on_error).splits.values()
    return rows


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_module, "_BLOCK_ROWS", 3)
    return open_rows(write_plain(tmp_path / "data.tfrecord", [payload_of(row) for row in range(NUM_ROWS)]))


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("tokens", list(range(NUM_ROWS))),
        ("tags", [row if row % 2 else 0 for row in range(NUM_ROWS)]),
        ("usual", [0 if row % 2 else 3 for row in range(NUM_ROWS)]),
        ("text", [row * len("ä b ".encode()) if row % 2 else 0 for row in range(NUM_ROWS)]),
    ],
)
def test_length_is_the_number_of_values_or_of_bytes_and_0_where_it_is_missing(
    rows, field, expected, num_threads
):
    found = row_lengths(rows, SCHEMA, field, Losses("raise", 0), num_threads=num_threads)
    assert found.dtype == np.int32
    assert found.tolist() == expected


def test_length_may_be_measured_by_the_caller(rows):
    def count_words(column):
        return np.array([len(text.split()) for text in column.tolist()])

    found = row_lengths(rows, SCHEMA, "text", Losses("raise", 0), measure=count_words)
    assert found.tolist() == [2 * row if row % 2 else 0 for row in range(NUM_ROWS)]


def test_length_of_a_missing_row_is_0_with_any_measure(rows):
    found = row_lengths(
        rows, SCHEMA, "text", Losses("raise", 0), measure=lambda column: np.full(len(column), 9)
    )
    assert found.tolist() == [9 if row % 2 else 0 for row in range(NUM_ROWS)]


def test_length_of_a_feature_list_is_the_number_of_its_steps(tmp_path):
    payloads = [
        write_sequence_example(SequenceExample({}, {"steps": [Feature("int64", [1, 2])] * row}))
        for row in range(5)
    ]
    rows = open_rows(write_plain(tmp_path / "data.tfrecord", payloads))
    for shape in ((2,), None):
        schema = Schema({"steps": Sequence("int64", shape, "feature_list", optional=True)})
        assert row_lengths(rows, schema, "steps", Losses("raise", 0)).tolist() == list(range(5))


def test_bad_record_that_is_skipped_has_the_length_0(tmp_path):
    frames = [write_record(payload_of(row)) for row in range(NUM_ROWS)]
    frames[4] = flip(frames[4], 15)
    path = tmp_path / "data.tfrecord"
    path.write_bytes(b"".join(frames))
    losses = Losses("collect", 1)
    found = row_lengths(open_rows(path, "collect"), SCHEMA, "tokens", losses)
    assert found.tolist() == [0 if row == 4 else row for row in range(NUM_ROWS)]
    assert len(losses) == 1


def test_field_without_a_length_is_refused(rows):
    with raises_with(OptionError, "length 'age' sequence text"):
        row_lengths(rows, SCHEMA, "age", Losses("raise", 0))
    with raises_with(OptionError, "length 'photo' image"):
        row_lengths(rows, Schema({"photo": Image()}), "photo", Losses("raise", 0))
    with raises_with(UnknownNameError, field="token", got="'token'"):
        row_lengths(rows, SCHEMA, "token", Losses("raise", 0))
