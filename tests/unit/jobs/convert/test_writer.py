"""Samples one by one: the same data set as a conversion makes, and the same errors."""

import numpy as np
import pytest

import penstock as ps
from penstock.errors import (
    CellError,
    FieldError,
    OptionError,
    PathError,
    SchemaError,
    UnknownNameError,
    WriteError,
)
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.format.manifest import load_manifest
from raising import containing, raises_with

SCHEMA = ps.Schema(
    {
        "row": Number("int64", role="id"),
        "word": Text(),
        "kind": Category(optional=True),
        "clicks": Sequence("int64"),
        "vector": Tensor((3,), "float64"),
    }
)


def sample(row):
    return {
        "row": row,
        "word": f"word {row}",
        "kind": None if row % 5 else "fifth",
        "clicks": list(range(row % 4)),
        "vector": np.full(3, row / 3),
    }


def test_samples_come_back_as_they_were_written(tmp_path):
    with ps.Writer(tmp_path / "out", SCHEMA, num_shards=2) as writer:
        for row in range(50):
            writer.write(sample(row))
    assert writer.num_samples == 50
    dataset = writer.dataset
    assert dataset.schema == SCHEMA
    found = {row["row"]: row for name in dataset.splits for row in dataset[name]}
    assert len(found) == 50
    for row in range(50):
        assert found[row]["word"] == f"word {row}"
        assert found[row]["clicks"].tolist() == list(range(row % 4))
        assert found[row]["vector"].tolist() == [row / 3] * 3
        assert found[row].get("kind") == (None if row % 5 else "fifth")
    assert load_manifest(tmp_path / "out").source[0]["rows"] == 50


def test_records_equal_a_conversion_of_the_same_samples(tmp_path):
    with ps.Writer(tmp_path / "written", SCHEMA) as writer:
        for row in range(50):
            writer.write(sample(row))
    converted = ps.convert([sample(row) for row in range(50)], tmp_path / "converted", schema=SCHEMA)
    for name in converted.splits:
        assert list(writer.dataset[name].records()) == list(converted[name].records())


def test_more_than_a_block_of_samples_is_written(tmp_path):
    with ps.Writer(tmp_path / "out", ps.Schema({"row": Number("int64")}), split={"all_rows": 1}) as writer:
        for row in range(20_000):
            writer.write({"row": row})
    column = writer.dataset["all_rows"].columns()["row"].values
    assert sorted(column.tolist()) == list(range(20_000))


def test_image_may_be_a_path_or_bytes(tmp_path):
    photo = tmp_path / "a.gif"
    data = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")
    photo.write_bytes(data)
    for number, value in enumerate((photo, str(photo), data)):
        out = tmp_path / str(number)
        with ps.Writer(out, ps.Schema({"photo": Image()}), split={"train": 1}) as writer:
            writer.write({"photo": value})
        assert next(iter(writer.dataset["train"]))["photo"] == data


def test_nothing_written_is_an_error_and_no_data_set(tmp_path):
    writer = ps.Writer(tmp_path / "out", SCHEMA)
    with raises_with(OptionError, got=containing(0, "rows")):
        writer.close()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "kind", "facts"),
    [
        ("no dict", FieldError, "2 'no dict'"),
        ({"wrod": "a"}, UnknownNameError, "'wrod' 'word'"),
    ],
)
def test_invalid_sample_is_refused_at_once_and_the_writer_continues(tmp_path, wrong, kind, facts):
    with ps.Writer(tmp_path / "out", SCHEMA) as writer:
        writer.write(sample(0))
        with raises_with(kind, facts):
            writer.write(wrong)
        writer.write(sample(1))
    assert sum(len(writer.dataset[name]) for name in writer.dataset.splits) == 2


@pytest.mark.parametrize(
    ("changed", "facts"),
    [
        ({"word": None}, "column 'word' row 3"),
        ({"row": "three"}, "'row' 3 Number 'three'"),
        ({"vector": np.zeros(4)}, "'vector' 3 4"),
    ],
)
def test_sample_that_does_not_fit_is_named_and_ends_the_writer(tmp_path, changed, facts):
    with raises_with(CellError, facts), ps.Writer(tmp_path / "out", SCHEMA) as writer:
        for row in range(5):
            writer.write({**sample(row), **(changed if row == 2 else {})})
    assert not (tmp_path / "out").exists()
    writer.close()
    with raises_with(WriteError, "closed"):
        writer.write(sample(0))


def test_sample_that_does_not_fit_can_be_collected(tmp_path):
    with ps.Writer(tmp_path / "out", SCHEMA, on_error="collect") as writer:
        for row in range(5):
            writer.write({**sample(row), **({"word": None} if row == 2 else {})})
    manifest = load_manifest(tmp_path / "out")
    assert manifest.rejects == {"count": 1, "by_column": {"word": 1}, "file": "rejects.jsonl"}
    assert manifest.num_records == 4


def test_writer_refuses_an_existing_folder_and_an_unknown_option(tmp_path):
    with ps.Writer(tmp_path / "out", SCHEMA) as writer:
        writer.write(sample(0))
    with raises_with(PathError, advice=containing("overwrite=True")):
        ps.Writer(tmp_path / "out", SCHEMA)
    with raises_with(OptionError, "'overwite' 'overwrite'"):
        ps.Writer(tmp_path / "out", SCHEMA, overwite=True)
    with ps.Writer(tmp_path / "out", SCHEMA, overwrite=True) as writer:
        writer.write(sample(1))
        assert len(list(ps.open(tmp_path / "out")["train"])) == 1  # the old one


@pytest.mark.parametrize("schema", [5, {}, {"a": 1}, None])
def test_invalid_schema_is_refused(tmp_path, schema):
    with pytest.raises(SchemaError, match="schema"):
        ps.Writer(tmp_path / "out", schema)
    assert list(tmp_path.iterdir()) == []


def test_options_that_the_schema_makes_needless_are_refused(tmp_path):
    with raises_with(OptionError, "drop"):
        ps.Writer(tmp_path / "out", SCHEMA, drop="word")


def test_field_that_names_the_splits_is_not_written(tmp_path):
    schema = ps.Schema({"row": Number("int64"), "part": Text()})
    with ps.Writer(tmp_path / "out", schema, split_by="part") as writer:
        for row in range(4):
            writer.write({"row": row, "part": "train" if row else "test"})
    assert list(writer.dataset.schema) == ["row"]
    assert [row["row"] for row in writer.dataset["test"]] == [0]


def test_samples_may_hold_raw_bytes(tmp_path):
    with ps.Writer(tmp_path / "out", ps.Schema({"data": Bytes()}), split={"train": 1}) as writer:
        writer.write({"data": b"\x00\xff"})
    assert next(iter(writer.dataset["train"]))["data"] == b"\x00\xff"


@pytest.mark.parametrize(
    ("field", "value", "got"),
    [
        (ps.fields.Number("int64"), "many", "'many'"),
        (ps.fields.Number(), [1.0], "[1.0]"),
        (ps.fields.Text(), ["a"], "['a']"),
        (ps.fields.Sequence("int64"), 7, "7"),
        (ps.fields.Tensor((2,), "float32"), np.zeros(3), "an array of shape (3,)"),
        (ps.fields.Bytes(), 3, "3"),
        (ps.fields.Number("int64"), None, "nothing"),
    ],
)
def test_sample_of_the_wrong_kind_is_refused_at_its_own_call(tmp_path, field, value, got):
    with pytest.raises(ps.errors.CellError) as caught, ps.Writer(tmp_path / "out", {"a": field}) as writer:
        writer.write({"a": value})
    assert (caught.value.field, caught.value.row, caught.value.got) == ("a", 1, got)
    assert not (tmp_path / "out").exists()


def test_array_that_is_used_again_is_written_as_it_was(tmp_path):
    row = np.zeros(2, np.float32)
    with ps.Writer(
        tmp_path / "out", {"a": Tensor((2,), "float32")}, split="train=1", shuffle=False
    ) as writer:
        for number in range(3):
            row[:] = number
            writer.write({"a": row})
    assert writer.dataset["train"].columns()["a"].values[:, 0].tolist() == [0, 1, 2]


def test_output_that_is_no_path_is_refused():
    with raises_with(OptionError, "out", got="5"):
        ps.convert({"a": [1]}, 5)
