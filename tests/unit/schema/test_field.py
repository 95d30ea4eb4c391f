"""What all types of field have in common."""

import copy
import dataclasses
import doctest
import pickle

import numpy as np
import pytest

from penstock import fields
from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Field, Image, Number, Sequence, Tensor, Text
from penstock.schema import array, scalar
from raising import raises_with

FIELDS = [
    Number(),
    Number("int64", default=-1, role="weight"),
    Number(default=float("nan")),
    Category("int64", (0, 1), key="k"),
    Category(values=("a", "b"), default="a", role="target"),
    Text(optional=True, role="id"),
    Image("png", default=b"\x89PNG"),
    Bytes(key=""),
    Sequence("string", default=["a", "b"]),
    Sequence("float32", None, "feature_list", default=[[1.0], []]),
    Tensor((2, 2), "float64", default=[[0.0, -0.0], [float("nan"), 1e300]]),
    Tensor((), "bool", "raw"),
]


def test_attributes_by_default_are_those_of_a_required_input():
    field = Text()
    assert (field.role, field.default, field.optional, field.key) == ("input", None, False, None)


def test_default_given_makes_field_optional():
    assert Number(default=0.0).optional
    assert not Number().optional


def test_attribute_assigned_after_making_is_refused():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Number().role = "target"  # type: ignore[misc]


def test_base_class_alone_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Field()  # type: ignore[abstract]


def test_common_attributes_by_position_are_refused():
    with pytest.raises(TypeError, match="positional"):
        Text("target")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("attributes", "place", "facts"),
    [
        ({"role": "label"}, "role", "role Text 'input' 'target' 'weight' 'id' 'label'"),
        ({"role": None}, "role", "role Text 'input' 'target' 'weight' 'id' None"),
        ({"role": []}, "role", "role Text 'input' 'target' 'weight' 'id' []"),
        ({"optional": 1}, "optional", "optional Text True False 1"),
        ({"key": b"k"}, "key", "key Text b'k'"),
        ({"key": "\ud800"}, "key", "key Text UTF-8 '\\ud800'"),
    ],
)
def test_common_attribute_of_wrong_value_is_refused(attributes, place, facts):
    with raises_with(SchemaError, facts, field=place):
        Text(**attributes)


def test_wire_key_without_key_is_the_name():
    assert Text().wire_key("title") == "title"


def test_wire_key_with_empty_key_is_empty():
    assert Text(key="").wire_key("title") == ""


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_copies_of_field_are_equal(field):
    for copied in (copy.deepcopy(field), pickle.loads(pickle.dumps(field)), dataclasses.replace(field)):  # noqa: S301
        assert copied == field
        assert hash(copied) == hash(field)
        assert repr(copied) == repr(field)


def test_fields_of_different_declaration_are_unequal():
    assert len(set(FIELDS)) == len(FIELDS)
    assert Text() != Bytes()
    assert Text() != "Text()"
    assert Number(default=0.0) != Number(default=-0.0)
    assert Tensor((1,), default=[0]) != Tensor((1,), default=[-0.0])
    assert Tensor((1,), default=[0]) != Tensor((1,))


def test_repr_shows_only_attributes_that_were_passed():
    assert (
        repr(Number("int64", default=-1, role="weight")) == "Number(dtype='int64', role='weight', default=-1)"
    )
    assert repr(Image(optional=True)) == "Image(optional=True)"
    assert repr(Tensor((2,), "int8", default=[1, 2])) == "Tensor(shape=(2,), dtype='int8', default=[1, 2])"


def test_attribute_names_of_tensor_begin_with_its_own():
    assert Tensor.attribute_names() == ("shape", "dtype", "encoding", "role", "default", "optional", "key")


@pytest.mark.parametrize(
    ("field", "kind", "num_values", "text"),
    [
        (Number(), "float", 1, "scalar float32"),
        (Number("int64"), "int64", 1, "scalar int64"),
        (Category(), "bytes", 1, "scalar string"),
        (Category("int64", (3,)), "int64", 1, "scalar int64, 1 value"),
        (Category("int64", (3, 4)), "int64", 1, "scalar int64, 2 values"),
        (Text(), "bytes", 1, "scalar"),
        (Image(), "bytes", 1, "scalar"),
        (Image("webp"), "bytes", 1, "scalar webp"),
        (Bytes(), "bytes", 1, "scalar"),
        (Sequence(), "int64", None, "variable int64"),
        (Sequence("float32"), "float", None, "variable float32"),
        (Sequence("string"), "bytes", None, "variable string"),
        (Sequence("bytes", (), "feature_list"), "bytes", None, "variable steps of bytes"),
        (Sequence("int64", (3,), "feature_list"), "int64", None, "variable steps of 3 int64"),
        (Sequence("int64", None, "feature_list"), "int64", None, "variable steps of variable int64"),
        (Tensor((64, 64), "float32", "raw"), "bytes", 1, "64 x 64 float32 (raw)"),
        (Tensor((3,), "float16", "list"), "float", 3, "3 float16 (list)"),
        (Tensor((2, 3), "bool", "list"), "int64", 6, "2 x 3 bool (list)"),
        (Tensor((2, 3), "uint64"), "int64", 6, "2 x 3 uint64"),
        (Tensor((), "float64"), "bytes", 1, "scalar float64 (raw)"),
    ],
    ids=repr,
)
def test_field_has_kind_count_and_description(field, kind, num_values, text):
    assert (field.kind, field.num_values, field.describe()) == (kind, num_values, text)


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Number, "number"),
        (Category, "category"),
        (Text, "text"),
        (Image, "image"),
        (Bytes, "bytes"),
        (Sequence, "sequence"),
        (Tensor, "tensor"),
    ],
)
def test_type_name_of_class_is_its_word(cls, name):
    assert cls.type_name == name


def test_array_default_of_field_cannot_be_changed():
    given = np.zeros(2)
    field = Tensor((2,), default=given)
    given[0] = 5
    assert field.default.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        field.default[0] = 1


@pytest.mark.parametrize("module", [scalar, array])
def test_examples_in_docstrings_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_public_module_has_the_types_and_nothing_else():
    assert fields.__all__ == [
        "Bytes",
        "Category",
        "Date",
        "Field",
        "Image",
        "Number",
        "Role",
        "Sequence",
        "Tensor",
        "Text",
    ]
