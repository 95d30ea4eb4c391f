import numpy as np
import pytest

from penstock import Schema
from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema.comparison import compare_schemas, merge_schemas
from raising import containing, mentions, raises_with

LIST = Tensor((2, 3), "int32", "list")
STEPS = Sequence("float32", (3,), "feature_list")

# old, new, what changed, whether it reads, why
CHANGES = [
    (Number("int64"), Number(), "int64 float32", False, "1 int64"),
    (Number(), Number("float64"), "float32 float64", False, "1 bytes"),
    (Number("int64"), Category("int64"), "int64 category int64", True, ""),
    (Category("int64"), Number("int64"), "category int64 int64", True, ""),
    (Category(), Category("int64"), "category category int64", False, "1 bytes 1 int64"),
    (Category(), Text(), "category text", True, ""),
    (Text(), Category(), "text category", True, ""),
    (Text(), Bytes(), "text bytes", True, ""),
    (Bytes(), Text(), "bytes text", False, "bytes text"),
    (Text(), Image(), "text image", False, "text image"),
    (Image("jpeg"), Bytes(), "image jpeg bytes", True, ""),
    (Text(), Number("float64"), "text float64", False, ""),
    (Number("int64"), Sequence("int64"), "int64 sequence int64", True, ""),
    (Sequence("int64"), Number("int64"), "sequence int64 int64", False, "int64"),
    (Number("int64"), Text(), "int64 text", False, "1 int64 1 bytes"),
    (Image("jpeg"), Image("png"), "jpeg png", False, ""),
    (Image("jpeg"), Image(), "jpeg", True, ""),
    (LIST, Tensor((2, 3), "int64", "list"), "int32 int64", True, ""),
    (LIST, Tensor((2, 3), "int8", "list"), "int32 int8", False, ""),
    (LIST, Tensor((3, 2), "int32", "list"), "shape (2, 3) (3, 2)", True, ""),
    (LIST, Tensor((2, 4), "int32", "list"), "shape (2, 3) (2, 4)", False, ""),
    (LIST, Tensor((2, 3), "int32", "raw"), "list raw", False, "6 int64 1 bytes"),
    (Tensor((2,), "int8", "raw"), Tensor((2,), "int16", "raw"), "int8 int16", False, ""),
    (Sequence("string"), Sequence("bytes"), "string bytes", True, "text"),
    (Sequence("bytes"), Sequence("string"), "bytes string", False, "bytes"),
    (STEPS, Sequence("float32"), "feature_list feature", False, "feature_list"),
    (STEPS, Sequence("float32", None, "feature_list"), "steps shape (3,) None", True, "length"),
    (Sequence("float32", None, "feature_list"), STEPS, "steps shape None (3,)", False, ""),
    (Text(), Text(role="target"), "role input target", True, ""),
    (Text(optional=True), Text(), "optional required", False, ""),
    (Text(), Text(optional=True), "required optional", True, ""),
    (Text(default="a"), Text(default="b"), "default 'a' 'b'", True, ""),
    (Text(), Text(key="t"), "key 'x' 't'", False, "key"),
    (Category(values=("a",)), Category(values=("a", "b")), "'b' added", True, ""),
    (Category(values=("a", "b")), Category(values=("a",)), "'b' removed", True, ""),
    (Category(values=("a",)), Category(), "values", True, ""),
    (Category("int64", tuple(range(9))), Category("int64", (0,)), "8 1 removed", True, ""),
]


@pytest.mark.parametrize(("old", "new", "what", "is_readable", "facts"), CHANGES)
def test_changed_field_is_described(old, new, what, is_readable, facts):
    found = compare_schemas(Schema({"x": old}), Schema({"x": new}))
    (change,) = found.changes
    assert (change.field, change.is_readable) == ("x", is_readable)
    assert mentions(change.what, what)
    assert mentions(change.why, facts) if facts else change.why
    assert found.is_readable is is_readable


@pytest.mark.parametrize("field", [change[0] for change in CHANGES])
def test_schema_compared_with_itself_has_no_difference(field):
    schema = Schema({"x": field})
    assert compare_schemas(schema, schema).changes == ()
    assert mentions(compare_schemas(schema, schema), "difference")
    assert merge_schemas([schema, schema]) == dict(schema)


@pytest.mark.parametrize(
    ("field", "is_readable", "why"),
    [
        (Number(default=2.0), True, "default 2.0"),
        (Tensor((1,), default=np.ones(1, "float32")), True, "default [1.0]"),
        (Number(optional=True), True, "optional"),
        (Number(), False, "required default"),
    ],
)
def test_added_field_reads_if_old_records_may_lack_it(field, is_readable, why):
    found = compare_schemas(Schema({"a": Text()}), Schema({"a": Text(), "b": field}))
    (change,) = found.changes
    assert (change.field, change.what, change.is_readable) == ("b", "added", is_readable)
    assert mentions(change.why, why) if why else change.why


def test_removed_field_is_passed_over():
    found = compare_schemas(Schema({"a": Text(), "b": Text()}), Schema({"a": Text()}))
    assert mentions(found, "'b'")


def test_field_of_another_name_and_the_same_key_was_renamed():
    found = compare_schemas(Schema({"a": Text()}), Schema({"b": Text(key="a")}))
    assert mentions(found, "'b' 'a' 'a'")


def test_several_changes_of_a_field_are_all_described():
    found = compare_schemas(Schema({"a": Text(optional=True)}), Schema({"a": Number(role="target")}))
    assert [change.what for change in found.changes] == [
        containing("text", "float32"),
        containing("input", "target"),
        containing("optional", "required"),
    ]


def test_nan_default_is_the_same_default():
    schema = Schema({"a": Number(default=float("nan"))})
    assert compare_schemas(schema, Schema({"a": Number(default=float("nan"))})).changes == ()


def test_schema_compares_itself_with_a_later_one():
    old, new = Schema({"a": Text()}), Schema({"a": Text(), "b": Number()})
    assert old.compare(new) == compare_schemas(old, new)
    assert not old.compare(new).is_readable
    assert mentions(str(new.compare(old)), "'b'")


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
    assert merge_schemas([Schema({"x": one}), Schema({"x": other})]) == {"x": merged}
    assert merge_schemas([Schema({"x": other}), Schema({"x": one})]) == {"x": merged}


@pytest.mark.parametrize(
    ("one", "other", "facts"),
    [
        (Text(), Number(), "'x' text float32"),
        (Number(), Number("int64"), "'x' float32 int64"),
        (Tensor((2,)), Tensor((3,)), "'x' tensor 2 float32 tensor 3 float32"),
        (Text(), Text(role="id"), "'x' role input role"),
        (Text(key="a"), Text(key="b"), "'x' 'a' 'b'"),
        (Text(default="a"), Text(default="b"), "'x' 'a' 'b'"),
        (STEPS, Sequence("float32"), "'x' 3 float32 float32"),
    ],
)
def test_merging_fields_that_differ_shows_the_difference(one, other, facts):
    with raises_with(SchemaError, facts):
        merge_schemas([Schema({"x": one}), Schema({"x": other})], ["old", "new"])


def test_merged_schema_has_all_fields_that_may_be_lacking():
    one, other = Schema({"a": Text()}), Schema({"a": Text(), "b": Number(default=1.0)})
    assert merge_schemas([one, other]) == dict(other)
    assert merge_schemas([other, one]) == dict(other)


def test_merging_a_required_field_that_one_lacks_is_refused():
    with raises_with(SchemaError, "'b' 1 2"):
        merge_schemas([Schema({"a": Text(), "b": Number()}), Schema({"a": Text()})])


def test_merging_many_differences_shows_the_first():
    one = Schema({f"f{i}": Text() for i in range(9)})
    other = Schema({f"f{i}": Number() for i in range(9)})
    with raises_with(SchemaError, "'f4'") as caught:
        merge_schemas([one, other])
    assert "field 'f5'" not in str(caught.value)
    assert mentions(caught.value, "4")
