"""The schema as a mapping, its roles, and what it refuses."""

import doctest
import pickle
import struct

import pytest

from penstock.errors import PayloadError, SchemaError, UnknownNameError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.schema import schema as module
from penstock.schema.schema import Schema
from raising import containing, raises_with

PETS = Schema(
    {
        "photo": Image("jpeg"),
        "age": Number("int64", optional=True),
        "label": Category("int64", (0, 1), role="target"),
        "name": Text(role="id"),
        "importance": Number(role="weight"),
    }
)


def test_schema_is_a_mapping_that_keeps_its_order():
    assert list(PETS) == ["photo", "age", "label", "name", "importance"]
    assert PETS["photo"] == Image("jpeg")
    assert len(PETS) == 5
    assert "photo" in PETS
    assert "foto" not in PETS
    assert PETS.get("foto") is None
    assert dict(PETS)["name"] == Text(role="id")


def test_schema_is_not_changed_by_the_dict_it_was_made_from():
    fields = {"a": Text()}
    schema = Schema(fields)
    fields["b"] = Text()
    assert list(schema) == ["a"]


def test_schema_of_same_fields_in_another_order_is_equal():
    other = Schema({name: PETS[name] for name in reversed(list(PETS))})
    assert other == PETS
    assert hash(other) == hash(PETS)
    assert other.fingerprint() == PETS.fingerprint()
    assert Schema({}) != PETS
    assert dict(PETS) != PETS
    assert PETS.fingerprint() != PETS.select(["photo"]).fingerprint()


def test_fingerprint_of_schema_equals_earlier_versions():
    # Manifests and checkpoints will hold it.
    schema = Schema({"a": Number("int64", default=1)})
    assert schema.fingerprint() == "974770b3e68b1fb266514c40bf8a118198b08fe700ebd929b28a345787ca0c16"


def test_schema_after_pickling_is_equal():
    assert pickle.loads(pickle.dumps(PETS)) == PETS  # noqa: S301


def test_roles_of_schema_are_names():
    assert PETS.inputs == ("photo", "age")
    assert PETS.targets == ("label",)
    assert PETS.weight == "importance"
    assert PETS.id == "name"
    assert Schema({}).weight is None
    assert Schema({}).id is None


def test_with_roles_moves_roles_and_frees_the_old_fields():
    schema = PETS.with_roles(target=["age", "photo"], weight="label", id="importance")
    assert schema.targets == ("photo", "age")
    assert schema.weight == "label"
    assert schema.id == "importance"
    assert schema.inputs == ("name",)
    assert list(schema) == list(PETS)


def test_with_roles_of_none_leaves_schema_as_it_is():
    assert PETS.with_roles() == PETS


def test_with_roles_of_no_target_frees_all():
    assert PETS.with_roles(target=()).targets == ()


def test_with_roles_of_unknown_name_names_the_nearest():
    with raises_with(UnknownNameError, "'lable' 'label'", field="lable"):
        PETS.with_roles(target="lable")


def test_with_roles_of_two_roles_for_a_field_is_refused():
    with raises_with(SchemaError, "'age' 'target' 'weight'"):
        PETS.with_roles(target=["age", "age"], weight="age")


def test_replace_exchanges_declarations_in_place():
    schema = PETS.replace({"age": Number("float32")})
    assert schema["age"] == Number("float32")
    assert list(schema) == list(PETS)
    assert PETS["age"] == Number("int64", optional=True)


def test_select_gives_fields_in_the_order_asked():
    assert list(PETS.select(["name", "photo"])) == ["name", "photo"]
    assert list(PETS.select("age")) == ["age"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: PETS["imporance"],
        lambda: PETS.replace({"imporance": Number()}),
        lambda: PETS.select(["age", "imporance"]),
        lambda: PETS.with_roles(weight="imporance"),
        lambda: PETS.with_roles(id="imporance"),
    ],
)
def test_unknown_name_anywhere_names_the_nearest(call):
    with raises_with(UnknownNameError, field="imporance", advice=containing("'importance'")):
        call()


def test_unknown_name_without_a_near_one_lists_fields():
    with raises_with(UnknownNameError, "'zzz' 'photo' 'age' 'label' 'name' 'importance'"):
        PETS["zzz"]
    with raises_with(UnknownNameError, field="zzz", got="'zzz'"):
        Schema({})["zzz"]


@pytest.mark.parametrize(
    ("fields", "name", "facts"),
    [
        ({"a": Text(role="id"), "b": Text(role="id")}, "b", "role 'b' 'a'"),
        ({"a": Number(role="weight"), "b": Number(role="weight")}, "b", "role 'b' weight 'a'"),
        ({"a": Category(role="weight")}, "a", "role 'a' weight category"),
        ({"a": Text(), "b": Bytes(key="a")}, "b", "'b' 'a' 'a'"),
        ({"a": 1}, "field 'a'", "'a' 1 ps.fields.Number('int64')"),
        ({1: Text()}, "a name", "1"),
    ],
)
def test_schema_of_fields_in_conflict_is_refused(fields, name, facts):
    with raises_with(SchemaError, facts, field=name):
        Schema(fields)


def test_schema_with_feature_and_list_of_one_key_is_taken():
    fields = {"tokens": Sequence("int64", (), "feature_list"), "context/tokens": Text(key="tokens")}
    assert list(Schema(fields)) == ["tokens", "context/tokens"]


@pytest.mark.parametrize(
    "field", [Number("int64"), Category("int64"), Sequence("float32"), Tensor((3,), "float32", "raw")]
)
def test_weight_of_any_numbers_is_taken(field):
    assert Schema({"w": field}).with_roles(weight="w").weight == "w"


def test_repr_of_schema_makes_it_again():
    names = {"Schema": Schema, "Image": Image, "Number": Number, "Category": Category, "Text": Text}
    assert eval(repr(PETS), names) == PETS  # noqa: S307


def test_str_of_schema_is_a_table():
    schema = Schema(
        {"photo": Image("jpeg"), "age": Number("int64", optional=True), "a\x1b[2J": Text(role="id")}
    )
    assert str(schema) == "\n".join(
        [
            "field       type    role   values",
            "photo       image   input  scalar jpeg",
            "age         number  input  scalar int64, optional",
            r"'a\x1b[2J'  text    id     scalar",
        ]
    )


def test_str_of_long_name_is_cut():
    assert str(Schema({"x" * 1000: Text()})).splitlines()[1].startswith("x" * 59 + "…  text")


def test_examples_in_docstring_run():
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_infer_from_payloads_looks_at_all():
    pytest.importorskip("penstock._native")
    # Example{features{feature{key: "n" value{int64_list{value: [i]}}}}}
    payloads = [bytes.fromhex("0a0c0a0a0a016e12051a030a01") + struct.pack("B", i) for i in range(100)]
    assert Schema.infer(payloads) == Schema({"n": Number("int64")})


def test_infer_from_payloads_that_are_no_examples_is_refused():
    pytest.importorskip("penstock._native")
    with raises_with(PayloadError, expected="Examples"):
        Schema.infer([b"\xff\xff"])
