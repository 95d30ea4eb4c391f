"""Told fields, one by one, held against the counts of their keys."""

import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.resolution import resolve_schema
from raising import mentions, raises_with

TOLD = [
    ("age", Category("int64"), Category("int64"), "told"),
    ("age", Number("int64", default=0), Number("int64", default=0), "told"),
    ("label", Number("int64"), Number("int64"), "told"),
    ("label", Category("int64", (0, 1, 2)), Category("int64", (0, 1, 2)), "told"),
    ("label", Category("int64", (1, 2)), Category("int64", (1, 2)), "1 2 0"),
    ("breed", Category(values=("cat",)), Category(values=("cat",)), "1 2 'dog'"),
    ("price", Number(), Number(optional=True), "told"),
    ("price", Number(default=1.0), Number(default=1.0), "told"),
    ("photo", Image(), Image("jpeg"), "told"),
    ("photo", Bytes(role="target"), Bytes(role="target"), "told"),
    ("pictures", Image(), Image(), "images 99 100"),
    ("pictures", Image("png"), Image("png"), "png 39 100"),
    ("breed", Text(), Text(), "told"),
    ("photo", Text(), Text(), "told"),
    ("raw", Tensor((2, 2)), Tensor((2, 2), "float32", "raw"), "told"),
    ("raw", Tensor((16,), "uint8"), Tensor((16,), "uint8", "raw"), "told"),
    ("raw", Tensor((2,), "float64"), Tensor((2,), "float64", "raw"), "told"),
    ("ragged_raw", Tensor((5,)), Tensor((5,), "float32", "raw"), "20 16 20"),
    ("grid", Tensor((2, 2)), Tensor((2, 2), "float32", "list"), "told"),
    ("grid", Tensor((2, 2), "float16"), Tensor((2, 2), "float16", "list"), "told"),
    ("flags", Tensor((4,), "bool"), Tensor((4,), "bool", "list"), "told"),
    ("either", Tensor((2, 2)), Tensor((2, 2), "float32", "list"), "90 10 4 1 4"),
    (
        "never",
        Tensor((3,), "uint8", "raw"),
        Tensor((3,), "uint8", "raw", optional=True),
        "told; no record has a kind set",
    ),
    ("grid", Sequence("float32"), Sequence("float32"), "told"),
    ("few", Sequence(), Sequence(), "told"),
    ("few", Number("int64"), Number("int64"), "1 1 3"),
    ("mixed", Number(), Number(), "10 int64 90"),
    ("never", Text(), Text(optional=True), "told; no record has a kind set"),
    ("never", Tensor((3,)), Tensor((3,), optional=True), "told; no record has a kind set"),
    ("", Number(role="weight"), Number(role="weight"), "told"),
]


@pytest.mark.parametrize(("name", "told", "field", "note"), TOLD)
def test_told_field_that_fits_wins(pets, name, told, field, note):
    schema, notes = resolve_schema(pets, fields={name: told})
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


@pytest.mark.parametrize(("name", "told", "facts"), MISFITS)
@pytest.mark.parametrize("argument", ["fields", "schema"])
def test_told_field_that_no_record_fits_is_refused(pets, name, told, facts, argument):
    with raises_with(SchemaError, facts, field=name):
        resolve_schema(pets, **{argument: {name: told}})


@pytest.mark.parametrize(
    ("told", "facts"),
    [
        ({"steps": Number("int64")}, "'steps' Number feature feature"),
        ({"boxes": Sequence("float32")}, "'boxes' Sequence 1 4"),
        ({"boxes": Sequence("string", None, "feature_list")}, "'boxes' Sequence 300"),
        ({"context/age": Number("int64"), "years": Text(key="age")}, "'years' 'age' 'context/age'"),
    ],
)
def test_told_field_that_no_list_fits_is_refused(series, told, facts):
    with raises_with(SchemaError, facts):
        resolve_schema(series, fields=told)
