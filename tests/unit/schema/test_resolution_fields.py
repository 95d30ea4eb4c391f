"""Declared fields, one by one, compared with the counts of their keys."""

import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.resolution import resolve_schema
from raising import mentions, raises_with

DECLARED = [
    ("age", Category("int64"), Category("int64"), "declared"),
    ("age", Number("int64", default=0), Number("int64", default=0), "declared"),
    ("label", Number("int64"), Number("int64"), "declared"),
    ("label", Category("int64", (0, 1, 2)), Category("int64", (0, 1, 2)), "declared"),
    ("label", Category("int64", (1, 2)), Category("int64", (1, 2)), "1 2 0"),
    ("breed", Category(values=("cat",)), Category(values=("cat",)), "1 2 'dog'"),
    ("price", Number(), Number(optional=True), "declared"),
    ("price", Number(default=1.0), Number(default=1.0), "declared"),
    ("photo", Image(), Image("jpeg"), "declared"),
    ("photo", Bytes(role="target"), Bytes(role="target"), "declared"),
    ("pictures", Image(), Image(), "images 99 100"),
    ("pictures", Image("png"), Image("png"), "png 39 100"),
    ("breed", Text(), Text(), "declared"),
    ("photo", Text(), Text(), "declared"),
    ("raw", Tensor((2, 2)), Tensor((2, 2), "float32", "raw"), "declared"),
    ("raw", Tensor((16,), "uint8"), Tensor((16,), "uint8", "raw"), "declared"),
    ("raw", Tensor((2,), "float64"), Tensor((2,), "float64", "raw"), "declared"),
    ("ragged_raw", Tensor((5,)), Tensor((5,), "float32", "raw"), "20 16 20"),
    ("grid", Tensor((2, 2)), Tensor((2, 2), "float32", "list"), "declared"),
    ("grid", Tensor((2, 2), "float16"), Tensor((2, 2), "float16", "list"), "declared"),
    ("flags", Tensor((4,), "bool"), Tensor((4,), "bool", "list"), "declared"),
    ("either", Tensor((2, 2)), Tensor((2, 2), "float32", "list"), "90 10 4 1 4"),
    (
        "never",
        Tensor((3,), "uint8", "raw"),
        Tensor((3,), "uint8", "raw", optional=True),
        "declared; no record has a value",
    ),
    ("grid", Sequence("float32"), Sequence("float32"), "declared"),
    ("few", Sequence(), Sequence(), "declared"),
    ("few", Number("int64"), Number("int64"), "1 1 3"),
    ("mixed", Number(), Number(), "10 int64 90"),
    ("never", Text(), Text(optional=True), "declared; no record has a value"),
    ("never", Tensor((3,)), Tensor((3,), optional=True), "declared; no record has a value"),
    ("", Number(role="weight"), Number(role="weight"), "declared"),
]


@pytest.mark.parametrize(("name", "declared", "field", "note"), DECLARED)
def test_declared_field_that_fits_wins(pets, name, declared, field, note):
    schema, notes = resolve_schema(pets, fields={name: declared})
    assert schema[name] == field
    assert mentions(notes[name], note)
    inferred, _ = resolve_schema(pets)
    assert {other: schema[other] for other in schema if other != name} == {
        other: inferred[other] for other in inferred if other != name
    }


MISFITS = [
    ("age", Number(), "'age' Number 100 int64"),
    ("label", Category(), "'label' Category 100 int64"),
    ("photo", Number("int64"), "'photo' Number int64 100"),
    ("mixed", Text(), "'mixed' Text 10 int64 90"),
    ("grid", Number(), "'grid' Number 1 4"),
    ("grid", Tensor((2, 3)), "'grid' Tensor 6 4"),
    ("grid", Tensor((4,), "int32"), "'grid' Tensor int64 100"),
    ("grid", Tensor((4,), "float64"), "'grid' Tensor 100"),
    ("few", Tensor((4,), "int64"), "'few' Tensor 4 1 3"),
    ("photo", Tensor((64, 64)), "'photo' Tensor 16384 64 64 float32 500 900"),
    ("raw", Image(), "'raw' Image 100"),
    ("photo", Image("gif"), "'photo' Image gif 100 jpeg"),
    ("age", Sequence("int64", (), "feature_list"), "'age' Sequence feature list"),
]


@pytest.mark.parametrize(("name", "declared", "facts"), MISFITS)
@pytest.mark.parametrize("argument", ["fields", "schema"])
def test_declared_field_that_no_record_fits_is_refused(pets, name, declared, facts, argument):
    with raises_with(SchemaError, facts, field=name):
        resolve_schema(pets, **{argument: {name: declared}})


@pytest.mark.parametrize(
    ("declared", "facts"),
    [
        ({"steps": Number("int64")}, "'steps' Number feature feature"),
        ({"boxes": Sequence("float32")}, "'boxes' Sequence 1 4"),
        ({"boxes": Sequence("string", None, "feature_list")}, "'boxes' Sequence 300"),
        ({"context/age": Number("int64"), "years": Text(key="age")}, "'years' 'age' 'context/age'"),
    ],
)
def test_declared_field_that_no_list_fits_is_refused(series, declared, facts):
    with raises_with(SchemaError, facts):
        resolve_schema(series, fields=declared)
