"""What was declared, held against what was counted."""

import pytest

from penstock.errors import PayloadError, SchemaError, UnknownNameError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.resolution import resolve_schema
from penstock.schema.schema import Schema
from raising import containing, mentions, raises_with


def test_nothing_declared_gives_the_inferred_schema(pets):
    schema, notes = resolve_schema(pets)
    assert schema["age"] == Number("int64")
    assert schema["photo"] == Image("jpeg")
    assert "mixed" not in schema
    assert mentions(notes["mixed"], "10 int64 90")
    assert schema.targets == ()


def test_declared_field_of_unknown_name_names_the_nearest(pets):
    with raises_with(UnknownNameError, field="foto", advice=containing("'photo'")):
        resolve_schema(pets, fields={"foto": Image(optional=True)})


def test_declared_field_of_unknown_key_names_the_nearest(pets):
    with raises_with(UnknownNameError, field="foto", advice=containing("'photo'")):
        resolve_schema(pets, fields={"picture": Image(key="foto")})


def test_declared_field_with_key_replaces_the_inferred(pets):
    schema, notes = resolve_schema(pets, fields={"picture": Image(key="photo"), "unnamed": Number(key="")})
    inferred, _ = resolve_schema(pets)
    renamed = {"photo": "picture", "": "unnamed"}
    assert list(schema) == [renamed.get(name, name) for name in inferred]
    assert schema["picture"] == Image("jpeg", key="photo")
    assert schema["unnamed"] == Number(key="")
    assert "photo" not in notes
    assert notes["picture"] == "declared"


def test_declared_field_with_the_name_of_another_key_is_refused(pets):
    with raises_with(SchemaError, "'raw' 'raw' key"):
        resolve_schema(pets, fields={"raw": Image(key="photo")})


def test_declared_fields_with_names_exchanged_are_taken(pets):
    schema, _ = resolve_schema(pets, fields={"raw": Image(key="photo"), "photo": Bytes(key="raw")})
    assert schema["raw"] == Image("jpeg", key="photo")
    assert schema["photo"] == Bytes(key="raw")


def test_declared_field_of_a_list_is_a_feature_list(series):
    declared = {"steps": Sequence(role="target"), "boxes": Sequence("float32", (4,), "feature_list")}
    schema, notes = resolve_schema(series, fields=declared)
    assert schema["steps"] == Sequence("int64", (), "feature_list", role="target")
    assert schema["boxes"] == Sequence("float32", (4,), "feature_list", optional=True)
    assert (notes["steps"], notes["boxes"]) == ("declared", "declared")


def test_declared_field_by_context_name_keeps_the_key(series):
    schema, _ = resolve_schema(series, fields={"context/age": Category("int64")})
    assert schema["context/age"] == Category("int64", key="age")
    assert schema["age"] == Sequence("int64", (), "feature_list")


def test_declared_field_by_name_of_both_is_the_list(series):
    schema, _ = resolve_schema(series, fields={"age": Sequence(role="target")})
    assert schema["age"] == Sequence("int64", (), "feature_list", role="target")


def test_complete_schema_with_keys_of_both_kinds_is_taken_as_it_is(series):
    schema, _ = resolve_schema(series, schema={"age": Number("int64")})
    assert schema == Schema({"age": Number("int64")})
    listed, _ = resolve_schema(series, schema={"age": Sequence("int64", (), "feature_list")})
    assert listed == Schema({"age": Sequence("int64", (), "feature_list")})


def test_whole_schema_of_inference_is_resolved_as_it_is(series):
    inferred, _ = resolve_schema(series)
    schema, notes = resolve_schema(series, schema=Schema.from_json(inferred.to_json()))
    assert schema == inferred
    assert list(schema) == list(inferred)
    assert set(notes) == set(inferred)


def test_whole_schema_leaves_other_keys_unread(pets):
    schema, notes = resolve_schema(pets, schema=Schema({"grid": Tensor((2, 2)), "age": Number("int64")}))
    assert schema == Schema({"grid": Tensor((2, 2), "float32", "list"), "age": Number("int64")})
    assert list(schema) == ["grid", "age"]
    assert notes == {"grid": "declared", "age": "declared"}


def test_whole_schema_keeps_required_fields(pets):
    schema, notes = resolve_schema(pets, schema={"price": Number(), "photo": Image()})
    assert schema == Schema({"price": Number(), "photo": Image()})
    assert mentions(notes["price"], "required 10 100")


def test_whole_schema_with_optional_field_that_never_occurs_is_taken(pets):
    declared = {"age": Number("int64"), "colour": Text(default=""), "label": Text(key="tint", optional=True)}
    schema, notes = resolve_schema(pets, schema=declared)
    assert schema == Schema(declared)
    assert notes["colour"] == containing("records")


def test_whole_schema_with_required_field_that_never_occurs_is_refused(pets):
    with raises_with(UnknownNameError, field="gird", advice=containing("'grid'")):
        resolve_schema(pets, schema={"gird": Tensor((4,))})


def test_fields_beside_whole_schema_count_before_it(pets):
    schema, _ = resolve_schema(
        pets, schema={"age": Number("int64"), "photo": Image()}, fields={"photo": Bytes(), "price": Number()}
    )
    assert schema == Schema({"age": Number("int64"), "photo": Bytes(), "price": Number(optional=True)})


def test_field_beside_whole_schema_keeps_its_key(pets):
    schema, _ = resolve_schema(pets, schema={"picture": Image(key="photo")}, fields={"picture": Bytes()})
    assert schema == Schema({"picture": Bytes(key="photo")})


def test_roles_declared_count_before_those_declared(pets):
    schema, _ = resolve_schema(
        pets, fields={"age": Number("int64", role="target")}, target=["label"], weight="price", id="breed"
    )
    assert schema.targets == ("label",)
    assert schema.weight == "price"
    assert schema.id == "breed"
    assert schema["age"].role == "input"


def test_role_of_unknown_name_names_the_nearest(pets):
    with raises_with(UnknownNameError, field="lable", advice=containing("'label'")):
        resolve_schema(pets, target="lable")


def test_role_of_a_field_that_is_left_out_is_refused_with_the_reason(pets):
    with raises_with(SchemaError, "'mixed' 10 int64 90"):
        resolve_schema(pets, target="mixed")
    assert resolve_schema(pets, fields={"mixed": Number()}, target="mixed").schema.targets == ("mixed",)


@pytest.mark.parametrize(
    "declared",
    [{"schema": {"a": Text()}}, {"fields": {"a": Text()}}, {"target": "a"}, {"weight": "a"}, {"id": "a"}],
)
def test_anything_declared_of_records_that_are_no_examples_is_refused(survey, declared):
    with raises_with(PayloadError, "Examples"):
        resolve_schema(survey(unparsable=100), **declared)


def test_nothing_declared_of_records_that_are_no_examples_is_a_schema_without_fields(survey):
    assert resolve_schema(survey(unparsable=100)) == (Schema({}), {})


def test_fields_declared_of_no_records_are_taken_as_they_are(survey):
    schema, notes = resolve_schema(survey(records=0), fields={"a": Text(), "b": Number()}, target="b")
    assert schema == Schema({"a": Text(), "b": Number(role="target")})
    assert notes["a"] == containing("record")


def test_fields_declared_that_are_no_fields_are_refused(pets):
    with raises_with(SchemaError, "'age'", field="field 'age'", got="'int64'"):
        resolve_schema(pets, fields={"age": "int64"})
