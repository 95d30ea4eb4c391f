"""Records as Arrow tables: the same values as samples have, with types that Parquet keeps."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.decode import split_reader as module
from penstock.decode.arrow import SCHEMA_KEY
from penstock.errors import FieldError, UnknownNameError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from raising import raises_with
from record_files import example, write_plain
from wire.example import Feature, SequenceExample, write_sequence_example

SCHEMA = ps.Schema(
    {
        "f": Number(),
        "i": Number("int64", optional=True),
        "d": Number("float64"),
        "t": Text(optional=True),
        "known": Text(default="none"),
        "b": Bytes(),
        "image": Image(),
        "c": Category("int64"),
        "ints": Sequence("int64", optional=True),
        "words": Sequence("string"),
        "floats": Sequence("float32"),
        "matrix": Tensor((2, 2), "float32", "list"),
        "pixels": Tensor((2, 3), "uint8", "raw", optional=True),
        "flags": Tensor((2,), "bool", "list"),
        "one": Tensor((), "int16", "raw"),
    }
)


def row(number: int) -> bytes:
    facts = {
        "f": number / 2,
        "d": np.float64(number / 3).tobytes(),
        "b": bytes([255, number]),
        "image": b"\x89PNG\r\n\x1a\n" + bytes(number),
        "c": number,
        "words": Feature("bytes", [b"a", "é".encode()][: number % 3]),
        "floats": Feature("float", [0.5] * number),
        "matrix": [1.0, 2.0, 3.0, float(number)],
        "flags": [number % 2, 1],
        "one": np.int16(-number).tobytes(),
    }
    if number % 2:
        facts |= {"i": -number, "t": f"text {number}", "known": "known", "ints": list(range(number))}
        facts |= {"pixels": np.arange(6, dtype=np.uint8).tobytes()}
    return example(**facts)


@pytest.fixture
def dataset(tmp_path):
    write_plain(tmp_path / "train.tfrecord", [row(number) for number in range(5)])
    write_plain(tmp_path / "test.tfrecord", [row(5)])
    return ps.open(tmp_path, schema=SCHEMA)


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def as_samples(table: pa.Table) -> list[dict]:
    tensors = {
        name: table[name].combine_chunks()
        for name in table.column_names
        if isinstance(table.schema.field(name).type, pa.FixedShapeTensorType)
    }
    storage = {name: array.storage.to_pylist() for name, array in tensors.items()}
    samples = []
    for number, sample in enumerate(table.drop(list(tensors)).to_pylist()):
        for name, values in storage.items():
            shape = table.schema.field(name).type.shape
            sample[name] = None if values[number] is None else np.reshape(values[number], shape).tolist()
        samples.append({name: value for name, value in sample.items() if value is not None})
    return samples


def test_table_holds_the_values_of_the_samples(dataset):
    table = dataset["train"].to_arrow()
    expected = [{name: plain(value) for name, value in sample.items()} for sample in dataset["train"]]
    assert as_samples(table) == expected
    assert table["t"].null_count == 3
    assert table["pixels"].null_count == 3
    assert table["known"].to_pylist() == ["none", "known", "none", "known", "none"]


def test_types_are_the_types_of_the_fields(dataset):
    types = {field.name: str(field.type) for field in dataset["train"].to_arrow().schema}
    assert {name: types[name] for name in ("f", "i", "d", "t", "b", "image", "c", "one")} == {
        "f": "float",
        "i": "int64",
        "d": "double",
        "t": "large_string",
        "b": "large_binary",
        "image": "large_binary",
        "c": "int64",
        "one": "int16",
    }
    assert types["words"] == "large_list<item: large_string>"
    assert types["pixels"].startswith("extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[2,3]")
    kept = json.loads(dataset["train"].to_arrow().schema.metadata[SCHEMA_KEY])
    assert ps.Schema.from_json(kept) == SCHEMA


def test_data_set_gives_one_split_or_all(dataset):
    assert dataset.to_arrow().num_rows == 6
    assert dataset.to_arrow("test", ["c"]).to_pylist() == [{"c": 5}]
    assert dataset.to_arrow(fields="c")["c"].to_pylist() == [0, 1, 2, 3, 4, 5]
    with raises_with(UnknownNameError, "split", field="tset"):
        dataset.to_arrow("tset")
    with raises_with(UnknownNameError, field="cc", got="'cc'"):
        dataset.to_arrow(fields=["cc"])


def test_table_of_all_splits_names_the_split_of_each_row(dataset):
    assert dataset.to_arrow()["split"].to_pylist() == ["train"] * 5 + ["test"]
    assert json.loads(dataset.to_arrow().schema.metadata[SCHEMA_KEY]) == SCHEMA.to_json()
    assert "split" not in dataset.to_arrow("train").column_names
    assert dataset.to_arrow(fields=["c"]).column_names == ["c"]


def test_table_of_files_without_splits_or_with_a_field_of_that_name_has_no_other_column(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(a=1)])
    assert ps.open(path).to_arrow().to_pylist() == [{"a": 1}]
    path = write_plain(tmp_path / "train.tfrecord", [example(split=7)])
    assert ps.open(path).to_arrow().to_pylist() == [{"split": 7}]


def test_parquet_keeps_it_all(dataset, tmp_path):
    table = dataset.to_arrow()
    pq.write_table(table, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(table)


def test_batches_stream_and_are_the_table(dataset, monkeypatch):
    monkeypatch.setattr(module, "_ARROW_ROWS", 2)
    batches = list(dataset["train"].iter_arrow())
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    assert pa.Table.from_batches(batches).equals(dataset["train"].to_arrow())


def test_split_of_no_records_is_an_empty_table_of_all_fields(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [])
    table = ps.open(path, schema=ps.Schema({"c": Number("int64")}))["all"].to_arrow()
    assert (table.num_rows, table.column_names) == (0, ["c"])


def test_feature_lists_are_lists_of_lists(tmp_path):
    payload = write_sequence_example(
        SequenceExample(
            {},
            {
                "ids": [Feature("int64", [1]), Feature("int64", [2])],
                "pairs": [Feature("float", [1.0, 2.0])],
                "ragged": [Feature("int64", []), Feature("int64", [1, 2])],
                "words": [Feature("bytes", [b"a", b"b"])],
            },
        )
    )
    schema = ps.Schema(
        {
            "ids": Sequence("int64", (), "feature_list"),
            "pairs": Sequence("float32", (2,), "feature_list"),
            "ragged": Sequence("int64", None, "feature_list"),
            "words": Sequence("string", None, "feature_list"),
        }
    )
    path = write_plain(tmp_path / "a.tfrecord", [payload, payload])
    sample = {"ids": [1, 2], "pairs": [[1.0, 2.0]], "ragged": [[], [1, 2]], "words": [["a", "b"]]}
    assert ps.open(path, schema=schema)["all"].to_arrow().to_pylist() == [sample, sample]


def test_text_that_is_no_utf8_is_refused_by_name(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(t=b"\xff")])
    split = ps.open(path, schema=ps.Schema({"t": Text()}))["all"]
    with raises_with(FieldError, "UTF8 Declare", field="t"):
        split.to_arrow()


def test_bad_records_are_left_out_by_the_policy(tmp_path):
    path = write_plain(tmp_path / "a.tfrecord", [example(c=1), example(c="x"), example(c=3)])
    split = ps.open(path, schema=ps.Schema({"c": Number("int64", optional=True)}), on_error="skip")["all"]
    assert split.to_arrow()["c"].to_pylist() == [1, 3]
    assert split.num_skipped == 1
