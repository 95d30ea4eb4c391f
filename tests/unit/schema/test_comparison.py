import numpy as np
import pytest

from penstock import Schema
from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.comparison import compare_schemas
from penstock.schema.merge import merge_schemas

LIST = Tensor((2, 3), "int32", "list")
STEPS = Sequence("float32", (3,), "feature_list")

# old, new, what changed, whether it reads, why
CHANGES = [
    (
        Number("int64"),
        Number(),
        "number int64 became number float32",
        False,
        "old records hold 1 int64 value, not",
    ),
    (Number(), Number("float64"), "number float32 became number float64 (raw)", False, "not 1 bytes value"),
    (
        Number("int64"),
        Category("int64"),
        "number int64 became category int64",
        True,
        "records hold both alike",
    ),
    (
        Category("int64"),
        Number("int64"),
        "category int64 became number int64",
        True,
        "records hold both alike",
    ),
    (
        Category(),
        Category("int64"),
        "category string became category int64",
        False,
        "hold 1 bytes value, not 1 int64",
    ),
    (Category(), Text(), "category string became text", True, "records hold both alike"),
    (Text(), Category(), "text became category string", True, "records hold both alike"),
    (Text(), Bytes(), "text became bytes", True, "records hold both alike"),
    (Bytes(), Text(), "bytes became text", False, "not every bytes value is of type text"),
    (Text(), Image(), "text became image", False, "not every text value is of type image"),
    (Image("jpeg"), Bytes(), "image jpeg became bytes", True, "records hold both alike"),
    (Text(), Number("float64"), "text became number float64 (raw)", False, "old records hold"),
    (
        Number("int64"),
        Sequence("int64"),
        "number int64 became sequence variable int64",
        True,
        "hold both alike",
    ),
    (
        Sequence("int64"),
        Number("int64"),
        "sequence variable int64 became number int64",
        False,
        "any number of int64",
    ),
    (
        Number("int64"),
        Text(),
        "number int64 became text",
        False,
        "old records hold 1 int64 value, not 1 bytes value",
    ),
    (Image("jpeg"), Image("png"), "format jpeg became png", False, "old records hold other formats"),
    (Image("jpeg"), Image(), "format jpeg became any", True, "any format is read"),
    (
        LIST,
        Tensor((2, 3), "int64", "list"),
        "int32 widened to int64",
        True,
        "every old value is one of the new",
    ),
    (LIST, Tensor((2, 3), "int8", "list"), "int32 became int8", False, "old values need not be such"),
    (
        LIST,
        Tensor((3, 2), "int32", "list"),
        "shape (2, 3) became (3, 2)",
        True,
        "number of elements is the same",
    ),
    (
        LIST,
        Tensor((2, 4), "int32", "list"),
        "shape (2, 3) became (2, 4)",
        False,
        "another number of elements",
    ),
    (
        LIST,
        Tensor((2, 3), "int32", "raw"),
        "encoding list became raw",
        False,
        "6 int64 values, not 1 bytes value",
    ),
    (
        Tensor((2,), "int8", "raw"),
        Tensor((2,), "int16", "raw"),
        "int8 became int16",
        False,
        "need not be such",
    ),
    (Sequence("string"), Sequence("bytes"), "string widened to bytes", True, "every text is a byte string"),
    (Sequence("bytes"), Sequence("string"), "bytes became string", False, "old records hold bytes values"),
    (STEPS, Sequence("float32"), "feature_list became feature", False, "old records hold a feature_list"),
    (STEPS, Sequence("float32", None, "feature_list"), "steps of shape (3,) became None", True, "any length"),
    (
        Sequence("float32", None, "feature_list"),
        STEPS,
        "steps of shape None became (3,)",
        False,
        "other lengths",
    ),
    (Text(), Text(role="target"), "role input became target", True, "records have no roles"),
    (Text(optional=True), Text(), "optional became required", False, "old records may lack it"),
    (Text(), Text(optional=True), "required became optional", True, "all old records have it"),
    (Text(default="a"), Text(default="b"), "default 'a' became 'b'", True, "get the new one"),
    (Text(), Text(key="t"), "key 'x' became 't'", False, "old records hold it under the old key"),
    (Category(values=("a",)), Category(values=("a", "b")), "'b' added", True, "old records do not hold them"),
    (Category(values=("a", "b")), Category(values=("a",)), "'b' removed", True, "and they are read"),
    (Category(values=("a",)), Category(), "its values are not known any more", True, "refuse nothing"),
    (
        Category("int64", tuple(range(9))),
        Category("int64", (0,)),
        "8 values such as 1 removed",
        True,
        "old records may hold them",
    ),
]


@pytest.mark.parametrize(("old", "new", "what", "is_readable", "why"), CHANGES)
def test_changed_field_is_told_in_words(old, new, what, is_readable, why):
    found = compare_schemas(Schema({"x": old}), Schema({"x": new}))
    (change,) = found.changes
    assert (change.field, change.what, change.is_readable) == ("x", what, is_readable)
    assert why in change.why
    assert found.is_readable is is_readable


@pytest.mark.parametrize("field", [change[0] for change in CHANGES])
def test_schema_compared_with_itself_has_no_difference(field):
    schema = Schema({"x": field})
    assert compare_schemas(schema, schema).changes == ()
    assert str(compare_schemas(schema, schema)) == "no difference"
    assert merge_schemas([schema, schema]) == schema


@pytest.mark.parametrize(
    ("field", "is_readable", "why"),
    [
        (Number(default=2.0), True, "old records get the default 2.0"),
        (Tensor((1,), default=np.ones(1, "float32")), True, "old records get the default [1.0]"),
        (Number(optional=True), True, "it is optional, and old records lack it"),
        (Number(), False, "it is required, and old records lack it; give it a default"),
    ],
)
def test_added_field_reads_if_old_records_may_lack_it(field, is_readable, why):
    found = compare_schemas(Schema({"a": Text()}), Schema({"a": Text(), "b": field}))
    assert [(each.field, each.what, each.is_readable, each.why) for each in found.changes] == [
        ("b", "added", is_readable, why)
    ]


def test_removed_field_is_passed_over():
    found = compare_schemas(Schema({"a": Text(), "b": Text()}), Schema({"a": Text()}))
    assert str(found) == "'b': removed: reads: old records hold it, and it is passed over"


def test_field_of_another_name_and_the_same_key_was_renamed():
    found = compare_schemas(Schema({"a": Text()}), Schema({"b": Text(key="a")}))
    assert str(found) == "'b': renamed from 'a': reads: its key 'a' is the same"


def test_several_changes_of_a_field_are_all_told():
    found = compare_schemas(Schema({"a": Text(optional=True)}), Schema({"a": Number(role="target")}))
    assert [change.what for change in found.changes] == [
        "text became number float32",
        "role input became target",
        "optional became required",
    ]


def test_nan_default_is_the_same_default():
    schema = Schema({"a": Number(default=float("nan"))})
    assert compare_schemas(schema, Schema({"a": Number(default=float("nan"))})).changes == ()


def test_schema_compares_itself_with_a_later_one():
    old, new = Schema({"a": Text()}), Schema({"a": Text(), "b": Number()})
    assert old.compare(new) == compare_schemas(old, new)
    assert not old.compare(new).is_readable
    assert str(new.compare(old)) == "'b': removed: reads: old records hold it, and it is passed over"


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (Category(values=("a",)), Category(values=("b",)), Category(values=("a", "b"))),
        (Category(values=("a",)), Category(), Category()),
        (Image("jpeg"), Image("png"), Image()),
        (Text(optional=True), Text(), Text(optional=True)),
        (Text(default="a"), Text(), Text(default="a")),
        (STEPS, Sequence("float32", (2,), "feature_list"), Sequence("float32", None, "feature_list")),
        (Tensor((2,)), Tensor((2,), encoding="list"), Tensor((2,), encoding="list")),
    ],
)
def test_merged_field_reads_records_of_both(one, other, merged):
    assert merge_schemas([Schema({"x": one}), Schema({"x": other})]) == Schema({"x": merged})
    assert merge_schemas([Schema({"x": other}), Schema({"x": one})]) == Schema({"x": merged})


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (Text(), Number(), "field 'x': text, number float32 (old, new)"),
        (Number(), Number("int64"), "field 'x': number float32, number int64 (old, new)"),
        (Tensor((2,)), Tensor((3,)), "field 'x': tensor 2 float32, tensor 3 float32 (old, new)"),
        (Text(), Text(role="id"), "field 'x': role input, role id (old, new)"),
        (Text(key="a"), Text(key="b"), "field 'x': key 'a', key 'b' (old, new)"),
        (Text(default="a"), Text(default="b"), "field 'x': default 'a', default 'b' (old, new)"),
        (
            STEPS,
            Sequence("float32"),
            "field 'x': sequence variable steps of 3 float32, sequence variable float32",
        ),
    ],
)
def test_merging_fields_that_differ_shows_the_difference(one, other, message):
    with pytest.raises(SchemaError) as caught:
        merge_schemas([Schema({"x": one}), Schema({"x": other})], ["old", "new"])
    assert message in str(caught.value)


def test_merged_schema_has_all_fields_that_may_be_lacking():
    one, other = Schema({"a": Text()}), Schema({"a": Text(), "b": Number(default=1.0)})
    assert merge_schemas([one, other]) == other
    assert merge_schemas([other, one]) == other


def test_merging_a_required_field_that_one_lacks_is_refused():
    with pytest.raises(SchemaError) as caught:
        merge_schemas([Schema({"a": Text(), "b": Number()}), Schema({"a": Text()})])
    assert "field 'b': required in schema 1, absent from schema 2" in str(caught.value)


def test_merging_many_differences_shows_the_first():
    one = Schema({f"f{i}": Text() for i in range(9)})
    other = Schema({f"f{i}": Number() for i in range(9)})
    with pytest.raises(SchemaError) as caught:
        merge_schemas([one, other])
    assert "field 'f4'" in str(caught.value)
    assert "field 'f5'" not in str(caught.value)
    assert "; and 4 more" in str(caught.value)
