"""Told fields, one by one, held against the counts of their keys."""

import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.resolution import resolve_schema

TOLD = [
    ("age", Category("int64"), Category("int64"), "told"),
    ("age", Number("int64", default=0), Number("int64", default=0), "told"),
    ("label", Number("int64"), Number("int64"), "told"),
    ("label", Category("int64", (0, 1, 2)), Category("int64", (0, 1, 2)), "told"),
    (
        "label",
        Category("int64", (1, 2)),
        Category("int64", (1, 2)),
        "told; 1 of 2 distinct values were not told, such as 0",
    ),
    (
        "breed",
        Category(values=("cat",)),
        Category(values=("cat",)),
        "told; 1 of 2 distinct values were not told, such as 'dog'",
    ),
    ("price", Number(), Number(optional=True), "told"),
    ("price", Number(default=1.0), Number(default=1.0), "told"),
    ("photo", Image(), Image("jpeg"), "told"),
    ("photo", Bytes(role="target"), Bytes(role="target"), "told"),
    ("pictures", Image(), Image(), "told; encoded images, but only 99 of 100 values are"),
    ("pictures", Image("png"), Image("png"), "told; png images, but only 39 of 100 values are"),
    ("breed", Text(), Text(), "told"),
    ("photo", Text(), Text(), "told"),
    ("raw", Tensor((2, 2)), Tensor((2, 2), "float32", "raw"), "told"),
    ("raw", Tensor((16,), "uint8"), Tensor((16,), "uint8", "raw"), "told"),
    ("raw", Tensor((2,), "float64"), Tensor((2,), "float64", "raw"), "told"),
    (
        "ragged_raw",
        Tensor((5,)),
        Tensor((5,), "float32", "raw"),
        "told; 20 bytes, but there are 16 to 20",
    ),
    ("grid", Tensor((2, 2)), Tensor((2, 2), "float32", "list"), "told"),
    ("grid", Tensor((2, 2), "float16"), Tensor((2, 2), "float16", "list"), "told"),
    ("flags", Tensor((4,), "bool"), Tensor((4,), "bool", "list"), "told"),
    (
        "either",
        Tensor((2, 2)),
        Tensor((2, 2), "float32", "list"),
        "told; float, but there are 90 float, 10 bytes; 4 values a record, but there are 1 to 4",
    ),
    (
        "never",
        Tensor((3,), "uint8", "raw"),
        Tensor((3,), "uint8", "raw", optional=True),
        "told; no record has a kind set",
    ),
    ("grid", Sequence("float32"), Sequence("float32"), "told"),
    ("few", Sequence(), Sequence(), "told"),
    ("few", Number("int64"), Number("int64"), "told; 1 value a record, but there are 1 to 3"),
    ("mixed", Number(), Number(), "told; float, but there are 10 int64, 90 float"),
    ("never", Text(), Text(optional=True), "told; no record has a kind set"),
    ("never", Tensor((3,)), Tensor((3,), optional=True), "told; no record has a kind set"),
    ("", Number(role="weight"), Number(role="weight"), "told"),
]


@pytest.mark.parametrize(("name", "told", "field", "note"), TOLD)
def test_told_field_that_fits_wins(pets, name, told, field, note):
    schema, notes = resolve_schema(pets, fields={name: told})
    assert schema[name] == field
    assert notes[name] == note
    inferred, _ = resolve_schema(pets)
    assert {other: schema[other] for other in schema if other != name} == {
        other: inferred[other] for other in inferred if other != name
    }


MISFITS = [
    (
        "age",
        Number(),
        "field 'age' as Number: expected float values in the records, got 100 int64. Inference takes it "
        "for number, scalar int64.",
    ),
    (
        "label",
        Category(),
        "field 'label' as Category: expected bytes values in the records, got 100 int64. Inference takes "
        "it for category, scalar int64, 2 values.",
    ),
    (
        "photo",
        Number("int64"),
        "field 'photo' as Number: expected int64 values in the records, got 100 bytes. Inference takes it "
        "for image, scalar jpeg.",
    ),
    (
        "mixed",
        Text(),
        "field 'mixed' as Text: expected bytes values in the records, got 10 int64, 90 float.",
    ),
    (
        "grid",
        Number(),
        "field 'grid' as Number: expected 1 value a record, got 4. Inference takes it for tensor, 4 "
        "float32 (list).",
    ),
    (
        "grid",
        Tensor((2, 3)),
        "field 'grid' as Tensor: expected 6 values a record, got 4. Inference takes it for tensor, 4 "
        "float32 (list).",
    ),
    (
        "grid",
        Tensor((4,), "int32"),
        "field 'grid' as Tensor: expected int64 values in the records, got 100 float. Inference takes it "
        "for tensor, 4 float32 (list).",
    ),
    (
        "grid",
        Tensor((4,), "float64"),
        "field 'grid' as Tensor: expected bytes values in the records, got 100 float. Inference takes it "
        "for tensor, 4 float32 (list).",
    ),
    (
        "few",
        Tensor((4,), "int64"),
        "field 'few' as Tensor: expected 4 values a record, got 1 to 3. Inference takes it for sequence, "
        "variable int64.",
    ),
    (
        "photo",
        Tensor((64, 64)),
        "field 'photo' as Tensor: expected 16384 bytes, for 64 x 64 float32 (raw), got 500 to 900. "
        "Inference takes it for image, scalar jpeg.",
    ),
    (
        "raw",
        Image(),
        "field 'raw' as Image: expected encoded images, got 100 values of no known format. Pixels that are "
        "not encoded are Tensor(shape, 'uint8', 'raw').",
    ),
    (
        "photo",
        Image("gif"),
        "field 'photo' as Image: expected gif images, got 100 jpeg. Inference takes it for image, scalar "
        "jpeg.",
    ),
    (
        "age",
        Sequence("int64", (), "feature_list"),
        "field 'age' as Sequence: expected a feature list, got a feature. Inference takes it for number, "
        "scalar int64.",
    ),
]


@pytest.mark.parametrize(("name", "told", "message"), MISFITS)
@pytest.mark.parametrize("argument", ["fields", "schema"])
def test_told_field_that_no_record_fits_is_refused(pets, name, told, message, argument):
    with pytest.raises(SchemaError) as caught:
        resolve_schema(pets, **{argument: {name: told}})
    assert str(caught.value) == message
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            {"steps": Number("int64")},
            "field 'steps' as Number: expected a feature, got a feature list. Declare it as a Sequence.",
        ),
        (
            {"boxes": Sequence("float32")},
            "field 'boxes' as Sequence: expected 1 value a step, got 4. Inference takes it for sequence, "
            "variable steps of 4 float32.",
        ),
        (
            {"boxes": Sequence("string", None, "feature_list")},
            "field 'boxes' as Sequence: expected bytes values in the records, got 300 float. Inference "
            "takes it for sequence, variable steps of 4 float32.",
        ),
        (
            {"context/age": Number("int64"), "years": Text(key="age")},
            "key of field 'years': expected a key of its own, got 'age', which is the key of 'context/age' "
            "too.",
        ),
    ],
)
def test_told_field_that_no_list_fits_is_refused(series, told, message):
    with pytest.raises(SchemaError) as caught:
        resolve_schema(series, fields=told)
    assert str(caught.value) == message
