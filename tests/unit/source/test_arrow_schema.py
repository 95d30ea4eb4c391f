"""The schema in the metadata of an Arrow table comes back as the fields of a source."""

import pyarrow as pa
import pytest

from penstock import Schema
from penstock.decode.arrow import arrow_schema
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.settings.groups import TextFiles
from penstock.source.arrow_schema import read_carried
from penstock.source.opening import open_source

FIELDS = {
    "key": Text(role="id"),
    "y": Category("int64", (0, 1, 2), role="target"),
    "breed": Category(values=("lab", "tabby"), optional=True),
    "fee": Number("float64"),
    "age": Number("int64", default=3),
    "weight": Number(role="weight"),
    "photo": Image("png"),
    "blob": Bytes(),
    "matrix": Tensor((2, 3), "int16", "raw"),
    "flags": Tensor((4,), "bool", "raw"),
    "one": Tensor((), "uint8", "raw"),
    "words": Sequence("string"),
    "steps": Sequence("float32", (2,), "feature_list"),
    "loose": Sequence("int64", None, "feature_list"),
}


def test_every_field_comes_back_from_the_table_that_was_made_of_it():
    schema = Schema(FIELDS)
    assert read_carried(arrow_schema(schema)) == FIELDS


@pytest.mark.parametrize("name", FIELDS)
def test_column_of_another_type_is_left_to_the_data(name):
    schema = arrow_schema(Schema(FIELDS))
    at = schema.get_field_index(name)
    changed = schema.set(at, pa.field(name, pa.date32()))
    assert read_carried(changed) == {other: field for other, field in FIELDS.items() if other != name}


def test_column_that_is_gone_is_not_declared():
    schema = arrow_schema(Schema(FIELDS)).remove(0)
    assert "key" not in read_carried(schema)


@pytest.mark.parametrize("carried", [b"{", b"[]", b"\xff", b"[" * 100_000, b'{"version": 99, "fields": {}}'])
def test_metadata_that_are_no_schema_count_as_none(carried):
    schema = pa.schema([("a", pa.int64())], {b"penstock.schema": carried})
    assert read_carried(schema) == {}


def test_table_and_file_declare_their_fields(tmp_path):
    fields = {"y": Category("int64", (0, 1), role="target"), "key": Text(role="id")}
    target = arrow_schema(Schema(fields))
    table = pa.table({"y": [0, 1], "key": pa.array(["a", "b"], pa.large_string())}, schema=target)
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, target) as writer:
        writer.write_table(table)
    assert open_source(table, TextFiles()).declared == fields
    assert open_source(path, TextFiles()).declared == fields


def test_files_that_carry_different_schemas_declare_nothing(tmp_path):
    for name, role in (("a", "target"), ("b", "input")):
        target = arrow_schema(Schema({"y": Number("int64", role=role)}))
        with (
            pa.OSFile(str(tmp_path / f"{name}.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, target) as writer,
        ):
            writer.write_table(pa.table({"y": [1, 2]}, schema=target))
    assert open_source([tmp_path / "a.arrow", tmp_path / "b.arrow"], TextFiles()).declared == {}
