"""Rows that do not fit: raised, skipped, collected, counted, and too many."""

import json
import logging

import pytest

import penstock as ps
from penstock.errors import CellError, TooManySkippedError
from penstock.fields import Number, Text
from penstock.format.manifest import load_manifest
from raising import containing, mentions, raises_with

SCHEMA = ps.Schema({"name": Text(), "age": Number("int64"), "fee": Number()})


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("name,age,fee\nRex,3,1\nAda,old,2\nBo,1,free\nKim,young,none\nZoe,9,5\n")
    return path


def convert(source, out, on_error, **options):
    return ps.convert(source, out, schema=SCHEMA, on_error=on_error, **options)


def names(dataset):
    return sorted(row["name"] for split in dataset.splits for row in dataset[split])


def test_first_fault_is_raised_by_default(source, tmp_path):
    with pytest.raises(CellError) as caught:
        ps.convert(source, tmp_path / "out", schema=SCHEMA)
    error = caught.value
    assert (error.path, error.field, error.row, error.line) == (str(source), "age", 2, 3)
    assert (error.expected, error.got) == (containing("number"), "'old'")
    assert mentions(error.advice, "missing=('', ")


def test_skipped_rows_are_logged_and_counted_and_leave_no_file(source, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "penstock"):
        dataset = convert(source, tmp_path / "out", "skip")
    assert names(dataset) == ["Rex", "Zoe"]
    skipped = [line for line in caplog.messages if str(source) in line]
    assert len(skipped) == 3
    assert "column 'fee' in row 3 (line 4): expected a number, got 'free'" in skipped[1]
    assert load_manifest(tmp_path / "out").rejects == {
        "count": 3,
        "by_column": {"age": 2, "fee": 2},
        "file": None,
    }
    assert not (tmp_path / "out" / "rejects.jsonl").exists()


def test_collected_rows_are_written_down_with_every_reason(source, tmp_path):
    dataset = convert(source, tmp_path / "out", "collect")
    assert names(dataset) == ["Rex", "Zoe"]
    lines = (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["row"] for each in found] == [1, 2, 3]
    assert found[0]["sample"] == {"name": "Ada", "age": "old", "fee": "2"}
    (reason,) = found[0]["reasons"]
    assert (reason["column"], reason["expected"], reason["got"]) == ("age", containing("number"), "'old'")
    assert mentions(reason["error"], "row 2 (line 3)")
    assert [reason["column"] for reason in found[2]["reasons"]] == ["age", "fee"]
    assert load_manifest(tmp_path / "out").rejects == {
        "count": 3,
        "by_column": {"age": 2, "fee": 2},
        "file": "rejects.jsonl",
    }


def test_sound_rows_leave_no_file(tmp_path):
    ps.convert({"a": [1, 2]}, tmp_path / "out", on_error="collect")
    assert not (tmp_path / "out" / "rejects.jsonl").exists()
    assert load_manifest(tmp_path / "out").rejects == {"count": 0, "by_column": {}, "file": None}


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_more_rejects_than_allowed_end_the_run(source, tmp_path, on_error):
    with raises_with(TooManySkippedError, "rows 2 3") as caught:
        convert(source, tmp_path / "out", on_error, max_skipped=2)
    assert mentions(caught.value, "max_skipped")
    assert not (tmp_path / "out").exists()
    assert names(convert(source, tmp_path / "out", on_error, max_skipped=3)) == ["Rex", "Zoe"]


def test_rejected_values_of_any_kind_can_be_written_down(tmp_path):
    rows = [
        {"age": 1, "data": b"ok", "list": [1.5, float("nan")], "text": "é"},
        {"age": None, "data": b"\x00" * 50, "list": [float("inf")], "text": "x" * 5000},
        {"age": None, "data": b"\x00" * 500, "list": [], "text": None},
    ]
    fields = ps.Schema(
        {
            "age": Number("int64"),
            "data": ps.fields.Bytes(),
            "list": ps.fields.Sequence("float32"),
            "text": Text(optional=True),
        }
    )
    ps.convert(rows, tmp_path / "out", schema=fields, on_error="collect")
    found = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_bytes().splitlines()]
    assert found[0]["sample"]["data"]["bytes"] == 50
    assert found[1]["sample"]["data"] == {"bytes": 500}
    assert found[0]["sample"]["list"] == ["inf"]
    assert found[0]["sample"]["text"] == "x" * 1000 + "…"


def test_data_set_with_rejects_can_be_overwritten(source, tmp_path):
    convert(source, tmp_path / "out", "collect")
    assert names(convert(source, tmp_path / "out", "skip", overwrite=True)) == ["Rex", "Zoe"]
    assert not (tmp_path / "out" / "rejects.jsonl").exists()
